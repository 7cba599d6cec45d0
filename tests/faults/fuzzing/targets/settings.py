"""Files that operators write: the configuration, and the agents."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from recollect.providers.openai.registry import AgentRegistry
from recollect.providers.openai.registry.descriptor import AgentConfigError, read_descriptor
from recollect.server.settings import SettingsError, load_settings

from ..supply import Supply
from ..target import Check, check_told

_VARIABLES = ("RECOLLECT_SERVER__PORT", "RECOLLECT_URL", "RECOLLECT_TENANTS__A__AUDIT_DAYS", "RECOLLECT_")
_ASK_FOR_CODE = b"tools"  # a name that is imported: to try any of them would run whatever is installed


@contextmanager
def open_settings() -> Iterator[Check]:
    """Any file is a configuration, or a file of agents, or is refused by the name of the setting."""
    with TemporaryDirectory(prefix="recollect-fuzzing-") as folder:
        path = Path(folder) / "file.toml"

        def check(data: bytes) -> None:
            supply = Supply(data)
            kind = supply.number(3)
            environment = {}
            if kind == 1:
                name = supply.choose(_VARIABLES)
                environment[name + supply.text()] = supply.text()
            path.write_bytes(supply.rest())
            if kind == 2:
                _check_agents(path)
            else:
                _check_settings(path, environment)

        yield check


def _check_settings(path: Path, environment: dict[str, str]) -> None:
    try:
        settings = load_settings(path, environment)
    except SettingsError as error:
        check_told(error)
        return
    assert settings.limits_for("a")


def _check_agents(path: Path) -> None:
    if _ASK_FOR_CODE in path.read_bytes():
        return
    try:
        assert AgentRegistry.from_toml(path).names()
    except AgentConfigError as error:
        check_told(error)


def check_descriptors(data: bytes) -> None:
    """A table of anything is an agent, or is refused by the name of the field."""
    supply = Supply(data)
    table = {supply.choose(_DESCRIBED): supply.value() for _ in range(supply.number(6))}
    try:
        read_descriptor(supply.choose(("helper", "", "a b", "x" * 65)), table)
    except AgentConfigError as error:
        check_told(error)


_DESCRIBED = (
    "instructions",
    "model",
    "description",
    "tools",
    "handoffs",
    "memory_strategy_defaults",
    "memory_injection_default",
    "model_settings",
    "max_turns",
    "other",
)
