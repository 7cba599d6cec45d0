"""The configuration: a file, the environment, and what is refused."""

import re
import tomllib
from pathlib import Path

import pytest

from recollect.memory.extraction import OpenAIExtractor, build_extractor
from recollect.server.settings import Settings, SettingsError, load_settings, setting_names

ROOT = Path(__file__).parents[2]


def _file(folder: Path, text: str) -> Path:
    path = folder / "recollect.toml"
    path.write_text(text, "utf-8")
    return path


def _refusal(path: Path | None, environment: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as refused:
        load_settings(path, environment)
    assert refused.value.__cause__ is None or not isinstance(refused.value.__cause__, tomllib.TOMLDecodeError)
    return str(refused.value)


def test_without_a_file_and_without_variables_the_service_is_embedded_and_local() -> None:
    settings = load_settings(None, {})
    assert settings == Settings()
    assert settings.server.host == "127.0.0.1"
    assert settings.database.url == "recollect.db"
    assert settings.memory.extractor == "offline"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, '[server]\nport = 1000\nhost = "0.0.0.0"\n')
    settings = load_settings(path, {"RECOLLECT_SERVER__PORT": "2000"})
    assert (settings.server.port, settings.server.host) == (2000, "0.0.0.0")


def test_a_variable_names_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "[server]\nport = 1000\n")
    assert load_settings(None, {"RECOLLECT_CONFIG": str(path)}).server.port == 1000


def test_a_path_that_is_given_wins_over_the_variable(tmp_path: Path) -> None:
    path = _file(tmp_path, "[server]\nport = 1000\n")
    assert load_settings(path, {"RECOLLECT_CONFIG": "/nowhere.toml"}).server.port == 1000


def test_the_short_variable_sets_the_database_and_the_full_one_wins_over_it() -> None:
    assert load_settings(None, {"RECOLLECT_URL": "a.db"}).database.url == "a.db"
    both = {"RECOLLECT_URL": "a.db", "RECOLLECT_DATABASE__URL": "b.db"}
    assert load_settings(None, both).database.url == "b.db"


def test_variables_of_others_are_left_alone() -> None:
    others = {"RECOLLECT_TEST_POSTGRES_URL": "x", "RECOLLECT_BENCH_PYTHON": "y", "PATH": "z", "A__B": "c"}
    others |= {"RECOLLECT_USER": "ada", "RECOLLECT_AGENT": "assistant", "RECOLLECT_LOCOMO": "locomo.json"}
    assert load_settings(None, others) == Settings()


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("RECOLLECT_PORT", "; server.port is RECOLLECT_SERVER__PORT"),
        ("RECOLLECT_SERVER_PORT", "; server.port is RECOLLECT_SERVER__PORT"),
        ("RECOLLECT_SERVR_HOST", "; server.host is RECOLLECT_SERVER__HOST"),
        ("RECOLLECT_CHAT_API_KEY", "; chat.api_key is RECOLLECT_CHAT__API_KEY"),
        ("RECOLLECT_SECRET", ""),
    ],
)
def test_a_variable_that_is_no_setting_is_refused_with_the_one_that_was_meant(
    variable: str, meant: str
) -> None:
    assert _refusal(None, {variable: "planted"}) == f"unknown setting {variable}{meant}"


def test_every_variable_that_the_package_reads_is_known() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    read = {name for source in sources for name in re.findall(r"RECOLLECT_[A-Z0-9_]*[A-Z0-9]\b", source)}
    assert "RECOLLECT_USER" in read
    alone = {name for name in read if "__" not in name} - {"RECOLLECT_CONFIG"}
    assert load_settings(None, dict.fromkeys(alone, "x")).database.url == "x"


def test_every_kind_of_value_can_come_from_the_environment() -> None:
    settings = load_settings(
        None,
        {
            "RECOLLECT_SERVER__CORS_ORIGINS": "https://a.example, https://b.example",
            "RECOLLECT_DATABASE__CREATE_TABLES": "true",
            "RECOLLECT_CHAT__API_KEY": "sk-planted",
            "RECOLLECT_CHAT__AGENTS_FILE": "agents.toml",
            "RECOLLECT_LIMITS__TOKENS_PER_DAY": "none",
            "RECOLLECT_MEMORY__QUIET_SECONDS": "1.5",
        },
    )
    assert settings.server.cors_origins == ("https://a.example", "https://b.example")
    assert settings.database.create_tables is True
    assert settings.chat.api_key is not None
    assert settings.chat.api_key.get_secret_value() == "sk-planted"
    assert settings.chat.agents_file == Path("agents.toml")
    assert settings.limits.tokens_per_day is None
    assert settings.memory.quiet_seconds == 1.5


def test_a_tenant_has_its_own_limits_and_those_of_all_where_it_has_none(tmp_path: Path) -> None:
    text = "[limits]\nrequests_per_minute = 60\ntokens_per_day = 1000\n"
    text += '[tenants.acme]\nrequests_per_minute = 600\n[tenants.free]\ntokens_per_day = "none"\n'
    settings = load_settings(_file(tmp_path, text), {"RECOLLECT_TENANTS__Big_One__RETENTION_DAYS": "30"})
    acme, free = settings.limits_for("acme"), settings.limits_for("free")
    assert (acme.requests_per_minute, acme.tokens_per_day) == (600, 1000)
    assert (free.requests_per_minute, free.tokens_per_day) == (60, None)
    assert settings.limits_for("Big_One").retention_days == 30
    assert settings.limits_for("unknown") == settings.limits


@pytest.mark.parametrize(
    ("text", "variable", "said"),
    [
        ("[server]\nprot = 1\n", None, "unknown setting server.prot; [server] has host, port"),
        ("[srever]\nport = 1\n", None, "unknown setting srever; the configuration has server, database"),
        (
            "[tenants.a]\nrequests = 1\n",
            None,
            "unknown setting tenants.a.requests; [tenants] has requests_",
        ),
        ("", "RECOLLECT_SERVER__PROT", "unknown setting RECOLLECT_SERVER__PROT; [server] has host, port"),
        ("", "RECOLLECT_SREVER__PORT", "unknown setting RECOLLECT_SREVER__PORT; the configuration has s"),
        ("", "RECOLLECT_SERVER__PORT__X", "unknown setting RECOLLECT_SERVER__PORT__X; [server] has host"),
        ("", "RECOLLECT___", "unknown setting RECOLLECT___"),
    ],
)
def test_a_setting_that_is_not_there_is_refused_by_name_with_those_that_are(
    tmp_path: Path, text: str, variable: str | None, said: str
) -> None:
    environment = {variable: "planted-value"} if variable else {}
    refusal = _refusal(_file(tmp_path, text), environment)
    assert refusal.startswith(said)
    assert "planted" not in refusal


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RECOLLECT_SERVER__PORT", "planted"),
        ("RECOLLECT_SERVER__PORT", "70000"),
        ("RECOLLECT_SERVER__GRACE_SECONDS", "-1"),
        ("RECOLLECT_MEMORY__EXTRACTOR", "planted:gpt"),
        ("RECOLLECT_MEMORY__EMBEDDER", "planted"),
        ("RECOLLECT_LIMITS__RETENTION_DAYS", "0"),
        ("RECOLLECT_TENANTS__acme__RETENTION_DAYS", "planted"),
        ("RECOLLECT_LOGGING__FORMAT", "planted"),
        ("RECOLLECT_DATABASE__URL", ""),
        ("RECOLLECT_TELEMETRY__METRICS", "planted"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_it_was_given_under_and_not_shown(
    variable: str, value: str
) -> None:
    refusal = _refusal(None, {variable: value})
    assert refusal.startswith(f"invalid setting {variable}: ")
    assert "planted" not in refusal


def test_a_value_of_another_type_is_refused_by_its_name_in_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "[server]\ncors_origins = 7\n")
    assert _refusal(path, {}).startswith("invalid setting server.cors_origins: ")


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    path = _file(tmp_path, "[server]\nport = -1\n[logging]\ncolour = true\n")
    refusal = _refusal(path, {})
    assert "invalid setting server.port" in refusal
    assert "unknown setting logging.colour" in refusal


def test_a_file_that_is_not_there_or_not_toml_is_told_without_its_text(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in _refusal(tmp_path / "none.toml", {})
    assert "cannot be read: Is a directory" in _refusal(tmp_path, {})
    broken = _refusal(_file(tmp_path, '[chat]\napi_key = "sk-planted\n'), {})
    assert "is not TOML, at line 2" in broken
    assert "planted" not in broken
    path = tmp_path / "latin.toml"
    path.write_bytes(b'[chat]\nmodel = "\xe9"\n')
    assert "is not UTF-8" in _refusal(path, {})


def test_secrets_are_not_in_what_settings_say_of_themselves() -> None:
    settings = load_settings(
        None, {"RECOLLECT_URL": "postgresql://me:planted@host/name", "RECOLLECT_CHAT__API_KEY": "sk-planted"}
    )
    assert "planted" not in f"{settings} {settings!r} {settings.chat!r} {settings.database!r}"


def test_what_a_model_notes_is_a_setting(tmp_path: Path) -> None:
    file = tmp_path / "recollect.toml"
    file.write_text('[memory]\ninclude = ["pets"]\n[memory.kinds]\nroom = "a room they like"\n')
    variables = {"RECOLLECT_MEMORY__EXCLUDE": "prices, salaries", "RECOLLECT_MEMORY__TRUST": "low"}
    memory = load_settings(file, variables).memory
    assert memory.extraction() == {
        "trust": "low",
        "include": ("pets",),
        "exclude": ("prices", "salaries"),
        "kinds": {"room": "a room they like"},
    }
    kinds = {"RECOLLECT_MEMORY__KINDS": "room=a room they like, diet = what they eat"}
    assert load_settings(None, kinds).memory.kinds == {"room": "a room they like", "diet": "what they eat"}
    extractor = build_extractor("openai:model", **memory.extraction(), api_key="none")
    assert isinstance(extractor, OpenAIExtractor)
    assert extractor.infers_after == 0, "never with low trust"


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, field in setting_names().items() if not field.description] == []


def test_the_page_lists_every_setting_with_its_default_and_nothing_else() -> None:
    rows = _rows_of_page()
    assert {name: row[1] for name, row in rows.items()} == {
        name: _default(field.default) for name, field in setting_names().items()
    }


def test_the_page_says_of_every_setting_what_the_model_says() -> None:
    rows = _rows_of_page()
    assert {name: row[2] for name, row in rows.items()} == {
        name: field.description for name, field in setting_names().items()
    }


def _rows_of_page() -> dict[str, list[str]]:
    page = (ROOT / "docs/reference/configuration.md").read_text("utf-8")
    cells = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in row] for row in cells]
    return {row[0].strip("`"): row for row in rows if "." in row[0]}


def _default(value: object) -> str:
    if value is None:
        return "none"
    shown = "[]" if value == () else str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{shown}`"


def test_the_example_is_what_the_service_does_without_it() -> None:
    example = ROOT / "recollect.example.toml"
    assert load_settings(example, {}) == Settings()


def test_the_example_names_every_setting() -> None:
    text = (ROOT / "recollect.example.toml").read_text("utf-8")
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    uncommented = uncommented.replace("# [tenants.NAME]", "[tenants.NAME]")
    found = tomllib.loads(uncommented)
    tenants = {f"tenants.NAME.{name}" for name in found.pop("tenants")["NAME"]}
    named = {f"{section}.{name}" for section, values in found.items() for name in values} | tenants
    assert named == set(setting_names())
