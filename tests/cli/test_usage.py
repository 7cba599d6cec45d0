"""Wrong usage says what would be right; every command has help, examples and a place in the reference."""

import argparse
import ast
import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli import COMMANDS, _parser, main
from recollect.cli.arguments import option_names, subcommands_of, walk
from recollect.cli.reference import page
from recollect.server.settings import Settings
from recollect.server.transport.key_check import key_command

from ..server.operations.kit import serving
from .conftest import Run, learn

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
OF_THE_SPECIFICATION = (
    "serve demo sessions memory remember recall forget import export erase migrate backup keys runs worker"
    " bench doctor mcp"
)
OWN = {"Host": "localhost"}
ALL = _parser()
PARSERS = {path: parser for path, parser in walk(ALL) if path}
LEAVES = {path: parser for path, parser in PARSERS.items() if not subcommands_of(parser)}
WITHOUT_DATA = {
    "demo",
    "serve",
    "mcp",
    "capture",
    "completion",
}  # they print nothing that a program would read


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("sesions list", "unknown value 'sesions'; did you mean sessions?"),
        ("sessions lst", "unknown value 'lst'; did you mean list?"),
        ("sessions list --jsno", "unknown option '--jsno'; did you mean --json?"),
        ("sessions list --jso=1", "unknown option '--jso'; did you mean --json?"),
        ("memory show --type evnt", "unknown value 'evnt'; did you mean event?"),
        ("memory show --type xyz", "use one of profile, event, mind"),
        ("recall where is she", "'is' is an unexpected argument; quote text that contains spaces"),
        ("runs list --limit 0", "must be a whole number of at least 1"),
        ("runs list --limit many", "must be a whole number of at least 1"),
        ("runs retry", "pass a run id, or --failed"),
        ("runs retry abc --failed", "pass a run id, or --failed"),
        ("recall something", "no user given: pass --user"),
        ("erase", "no user given: pass --user"),
        ("sessions list --js", "unknown option '--js'"),
        ("completion tcsh", "use one of bash, zsh, fish"),
        ("memory list --url :memory:", "must be a file or a server"),
    ],
)
def test_wrong_usage_says_what_would_be_right(run: Run, arguments: str, hint: str) -> None:
    ended = run(*arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert hint in ended.told


def test_a_wrong_word_cannot_act_on_the_terminal(run: Run) -> None:
    ended = run("sessions", "list", "--\x1b[31mred")
    assert ended.code == 2
    assert "\x1b" not in ended.told


def test_all_commands_of_the_specification_are_there() -> None:
    assert set(OF_THE_SPECIFICATION.split()) <= set(COMMANDS)


def test_what_the_help_of_all_says_is_what_each_says_of_itself() -> None:
    assert ALL.format_help() == _parser("none of them").format_help()


@pytest.mark.parametrize("path", [path for path in PARSERS if path != ("completion",)], ids=" ".join)
def test_the_help_of_each_command_has_examples_that_it_takes(path: tuple[str, ...]) -> None:
    assert PARSERS[path].description
    examples = (PARSERS[path].epilog or "").removeprefix("examples:\n").splitlines()
    told = [line.strip().partition("  ")[0].partition(" > ")[0] for line in examples]
    commands = [shlex.split(line)[1:] for line in told if line.startswith("recollect ")]
    assert commands
    for words in commands:
        assert tuple(words[: len(path)]) == path
        ALL.parse_args(words)


@pytest.mark.parametrize("path", [path for path in LEAVES if path[0] not in WITHOUT_DATA], ids=" ".join)
def test_each_command_that_tells_something_can_tell_it_as_json(path: tuple[str, ...]) -> None:
    assert "--json" in option_names(LEAVES[path])


def test_every_command_and_option_stands_in_the_reference() -> None:
    sections = PAGE.read_text("utf-8").split("\n#")
    for path, parser in PARSERS.items():
        heading = f" `recollect {' '.join(path)}`"
        found = [each for each in sections if each.splitlines()[0].endswith(heading)]
        assert len(found) == 1, path
        told = [name for name in option_names(parser) if name != "--help"]
        assert [name for name in told if f"| `{name}" not in found[0]] == []


def test_the_reference_is_as_the_parser_makes_it() -> None:
    assert PAGE.read_text("utf-8") == page(), "make it again: python -m recollect.cli.reference"


def test_help_loads_no_more_than_it_needs() -> None:
    script = (
        "import sys; from recollect.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(ended.stderr.split()) & {"asyncio", "sqlite3", "numpy", "pydantic", "json", "pathlib"}


def test_a_parser_of_others_takes_our_commands() -> None:
    from recollect.cli.services import add_worker_parser

    parser = argparse.ArgumentParser()
    add_worker_parser(parser.add_subparsers())
    assert parser.parse_args(["worker", "--until-idle"]).until_idle


def test_bench_without_the_benchmarks_names_the_source_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in an installed wheel, which does not contain the benchmarks."""
    for name in [each for each in sys.modules if each.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    elsewhere = [each for each in sys.path if not (Path(each or ".") / "benchmarks").is_dir()]
    monkeypatch.setattr("sys.path", elsewhere)
    monkeypatch.setattr("recollect.cli.bench._SOURCES", tmp_path)
    assert main(["bench", "vectors"]) == 1
    assert "Run this command from a source checkout" in capsys.readouterr().err


# --- hints and places ---


SOURCES = Path(__file__).parents[2] / "src" / "recollect"
HINT = re.compile(r"`(recollect [a-z][^`…{}]*)`")


def hints() -> list[str]:
    """The commands that error messages, notes and descriptions name, without those with a placeholder."""
    found = set()
    for file in SOURCES.rglob("*.py"):
        for each in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                found |= set(HINT.findall(each.value))
    return sorted(each for each in found if not re.search(r"\b[A-Z]{2,}\b", each))


ARGUMENTS = {  # what a sentence names without its arguments, as "shown by `recollect recall`"
    "recollect export": "export --all",
    "recollect erase": "erase --user ada",
    "recollect forget": "forget an-id",
    "recollect import": "import file.jsonl",
    "recollect import jsonl": "import jsonl file.jsonl",
    "recollect import langgraph": "import langgraph file.db",
    "recollect keys": "keys list",
    "recollect keys create": "keys create --scope admin",
    "recollect memory": "memory list",
    "recollect recall": "recall words --user ada",
    "recollect remember": "remember words --user ada",
    "recollect runs": "runs list",
    "recollect sessions": "sessions list",
    "recollect completion": "completion bash",
    "recollect backup": "backup copy.db",
    "recollect bench": "bench recall chats.json",
    "recollect copy": "copy a.db b.db",
    "recollect mcp install": "mcp install claude-code",
}


@pytest.mark.parametrize("hint", hints())
def test_a_command_that_a_text_names_can_be_typed(hint: str) -> None:
    words = shlex.split(ARGUMENTS.get(hint, hint.removeprefix("recollect ")).partition(" > ")[0])
    assert callable(_parser(words[0]).parse_args(words).run)


@pytest.mark.parametrize("place", ["", "elsewhere.db", "a folder/x.db"])
def test_the_hint_at_the_start_makes_a_key_for_the_data_that_is_there(
    run: Run, folder: Path, place: str
) -> None:
    (folder / "a folder").mkdir()
    url = place or "recollect.db"
    learn(url)
    made = run(*shlex.split(key_command(url))[1:])
    assert made.code == 0, made.told
    settings = Settings.model_validate({"database": {"url": url}, "memory": {"workers": 0}})

    async def see() -> tuple[int, int]:
        async with serving(url, settings.model_dump()) as served:
            open_ = await served.client.get("/v1/users")
            keyed = await served.client.get(
                "/v1/users", headers={"Authorization": f"Bearer {made.out.strip()}"}
            )
            return open_.status_code, len(keyed.json()["items"])

    assert asyncio.run(see()) == (401, 1)


def test_a_first_key_that_hides_the_data_says_so(run: Run) -> None:
    learn()
    hiding = run("keys", "create", "--tenant", "acme", "--scope", "admin")
    assert hiding.code == 0
    note, command = hiding.told.splitlines()[0].split(": ")
    assert "cannot access the data that was stored without a key" in note
    assert run(*shlex.split(command)[1:]).code == 0
    assert "cannot access" not in run("keys", "create", "--tenant", "other", "--scope", "read").told


def test_the_version_is_printed(run: Run) -> None:
    ended = run("--version")
    assert ended.code == 0
    assert re.fullmatch(r"recollect \d\S*, Python 3\.\S+, SQLite \S+\n", ended.out)


@pytest.mark.parametrize(
    "command",
    [
        ["remember", "Ada sails.", "--user", "ada"],
        ["keys", "create", "--scope", "read"],
        ["serve", "--port", "0"],
        ["import", "jsonl", "lines.jsonl"],
    ],
)
def test_a_missing_folder_is_not_created(run: Run, folder: Path, command: list[str]) -> None:
    (folder / "lines.jsonl").write_text('{"kind": "entries", "data": {"text": "x", "user_id": "ada"}}\n')
    ended = run(*command, "--url", "none/x.db")
    assert (ended.code, ended.out) == (3, "")
    assert "no folder none" in ended.told
    assert not (folder / "none").exists()


@pytest.mark.parametrize(
    "command", [["worker", "--until-idle"], ["keys", "list"], ["keys", "revoke", "0" * 32], ["recall", "x"]]
)
def test_a_missing_file_is_not_created(run: Run, folder: Path, command: list[str]) -> None:
    user = ["--user", "ada"] if command[0] == "recall" else []
    ended = run(*command, *user, "--url", "nofile.db")
    assert (ended.code, ended.out) == (3, "")
    assert "no database at nofile.db" in ended.told
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("recall x --user ada --since soon", "argument --since: must be a date such as 2026-05-07"),
        ("recall x --user ada --until 2026-13", "argument --until: must be a date such as 2026-05-07"),
        ("remember x --user ada --date soon", "argument --date: must be a date such as 2026-05-07"),
        ("remember x --user ada --expires soon", "argument --expires: must be a date such as 2026-05-07"),
    ],
)
def test_a_wrong_date_names_its_option(run: Run, command: str, message: str) -> None:
    ended = run(*command.split())
    assert ended.code == 2
    assert message in ended.told


def test_another_database_server_is_refused_without_asking_for_a_package() -> None:
    script = (
        "import sys; sys.modules['sqlalchemy'] = None\n"  # Python then treats it as not installed
        "from recollect.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for scheme in ("mysql", "mariadb+aiomysql"):
        command = ["memory", "list", "--url", f"{scheme}://root@127.0.0.1/x"]
        ended = subprocess.run(
            [sys.executable, "-c", script, *command], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1
        assert f"only SQLite and PostgreSQL are supported here, not {scheme}://" in ended.stderr


def test_an_empty_list_of_sessions_says_where_the_chats_are(run: Run, folder: Path) -> None:
    async def chat() -> None:
        given = {"chat": {}, "memory": {"workers": 0, "embedder": "none"}}
        async with serving(str(folder / "recollect.db"), given) as served:
            said = await served.client.post(
                "/v1/chat", json={"user_id": "ada", "message": "Hello."}, headers=OWN
            )
            assert said.status_code == 200, said.text

    learn()
    assert run("sessions", "list").told == "no sessions\n"
    asyncio.run(chat())
    assert run("sessions", "list").told == "no sessions here, but the service has chats: add --chats\n"
    assert run("sessions", "list", "--json").json == []
    assert len(run("sessions", "list", "--chats", "--json").json) == 1
