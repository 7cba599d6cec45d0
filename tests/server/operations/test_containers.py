"""The files for containers say nothing that is not so: nobody can build them here, so they are read."""

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from recollect.cli import _parser
from recollect.server.learner import STOP_TIMEOUT
from recollect.server.routes import operations
from recollect.server.settings import Settings, load_settings
from recollect.server.transport.runner import INTERRUPTION_SECONDS

ROOT = Path(__file__).parents[3]
SECRET = re.compile("KEY|PASSWORD|SECRET|TOKEN", re.IGNORECASE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


# --- reading them ---


def _instructions() -> list[tuple[str, str]]:
    """Each instruction of the container file, with what it is given."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Containerfile").read_text("utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, given) for name, _, given in (line.partition(" ") for line in lines)]


def _given(instruction: str) -> list[str]:
    return [given for name, given in _instructions() if name == instruction]


def _final() -> dict[str, str]:
    """What the last stage says; for instructions that count once."""
    found = _instructions()
    last = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    return dict(found[last:])


def _variables() -> dict[str, str]:
    return dict(part.split("=", 1) for part in shlex.split(" ".join(_given("ENV"))))


def _compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    return found


def _ours() -> dict[str, dict[str, Any]]:
    """The services of the compose file that run this package."""
    return {name: each for name, each in _compose()["services"].items() if "build" in each}


def _instances() -> dict[str, dict[str, Any]]:
    return {name: each for name, each in _ours().items() if each["command"] == ["serve"]}


def _settings(variables: Mapping[str, str | None]) -> Settings:
    """What the service makes of variables; those that are handed on have a value that fits all of them."""
    handed_on = {"RECOLLECT_MEMORY__EXTRACTOR": "offline", "RECOLLECT_CHAT__MODEL": "gpt"}
    return load_settings(None, {name: value or handed_on.get(name, "") for name, value in variables.items()})


def _checked_place(command: list[str]) -> tuple[int, str]:
    """The port and the path that a health check asks."""
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)'", command[2])
    assert found is not None
    return int(found[1]), found[2]


def _paths() -> set[str]:
    return {route.path for route in operations.router.routes}  # type: ignore[attr-defined]


# --- the container file ---


def test_everything_that_is_copied_is_there() -> None:
    stages = {given.split()[-1] for given in _given("FROM") if " AS " in given}
    for given in _given("COPY"):
        first, *rest = given.split()
        if first.startswith("--from="):
            assert first.removeprefix("--from=") in stages
            continue
        for source in [first, *rest][:-1]:
            assert (ROOT / source).exists(), source


def test_what_the_package_is_built_from_is_copied() -> None:
    copied = {source for given in _given("COPY") for source in given.split()[:-1]}
    assert {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "src"} <= copied


def test_the_extras_that_are_installed_exist() -> None:
    [extras] = re.findall(r"\.\[([a-z,]+)\]", " ".join(_given("RUN")))
    assert set(extras.split(",")) == {"server", "postgres", "openai", "anthropic"}
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_python_is_one_that_is_supported() -> None:
    for given in _given("FROM"):
        version = re.fullmatch(r"python:(3\.\d+)-slim( AS \w+)?", given)
        assert version is not None
        assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def test_its_settings_are_known_and_its_ports_are_one() -> None:
    settings = _settings(_variables())
    assert settings.server.host == "0.0.0.0"
    assert settings.database.url.startswith(_final()["VOLUME"] + "/")
    check = json.loads(_final()["HEALTHCHECK"].partition("CMD ")[2])
    port, path = _checked_place(check)
    assert {settings.server.port, int(_final()["EXPOSE"])} == {port}
    assert path in _paths()


def test_it_runs_a_command_that_there_is_and_not_as_root() -> None:
    final = _final()
    assert json.loads(final["ENTRYPOINT"]) == list(PROJECT["scripts"])
    _parser().parse_args(json.loads(final["CMD"]))
    assert int(final["USER"]) >= 1000
    assert f"--uid {final['USER']} " in final["RUN"]


def test_it_holds_no_secret() -> None:
    assert [name for name in _variables() if SECRET.search(name)] == []
    assert _given("ARG") == []


# --- the compose file ---


def test_two_instances_share_a_postgresql_with_pgvector() -> None:
    assert len(_instances()) == 2
    assert "pgvector" in _compose()["services"]["postgres"]["image"]
    urls = {_settings(each["environment"]).database.url for each in _ours().values()}
    assert len(urls) == 1
    database = _compose()["services"]["postgres"]["environment"]
    user, name = database["POSTGRES_USER"], database["POSTGRES_DB"]
    assert re.fullmatch(rf"postgresql://{user}:\$\{{[^}}]+\}}@postgres:5432/{name}", urls.pop())


@pytest.mark.parametrize("name", list(_ours()))
def test_each_of_ours_is_built_here_and_runs_a_command_with_known_settings(name: str) -> None:
    service = _ours()[name]
    assert (ROOT / service["build"]["context"] / service["build"]["dockerfile"]).exists()
    _parser().parse_args(service["command"])
    _settings(service["environment"])


def test_secrets_come_from_the_environment() -> None:
    for service in _compose()["services"].values():
        for name, value in service["environment"].items():
            if SECRET.search(name) or "@" in str(value):
                assert value is None or re.search(r"\$\{POSTGRES_PASSWORD:\?", value), name


def test_each_waits_for_what_it_needs() -> None:
    services = _compose()["services"]
    assert services["migrate"]["command"] == ["migrate"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "pg_isready" in services["postgres"]["healthcheck"]["test"][1]
    for instance in _instances().values():
        assert instance["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_the_ports_of_the_instances_are_those_that_they_listen_on() -> None:
    inside = _settings(_variables()).server.port
    outside = []
    for instance in _instances().values():
        [published] = instance["ports"]
        address, port, target = published.split(":")
        assert (address, int(target)) == ("127.0.0.1", inside), "without TLS, for this machine alone"
        assert _checked_place(instance["healthcheck"]["test"][1:]) == (inside, "/readyz")
        outside.append(port)
    assert len(set(outside)) == len(outside)


def test_instances_are_given_the_time_that_they_take_to_stop() -> None:
    for instance in _instances().values():
        seconds = int(instance["stop_grace_period"].removesuffix("s"))
        assert seconds > Settings().server.grace_seconds + INTERRUPTION_SECONDS + STOP_TIMEOUT


def test_data_is_on_a_volume_that_is_declared() -> None:
    [mounted] = _compose()["services"]["postgres"]["volumes"]
    assert mounted.partition(":")[0] in _compose()["volumes"]
