"""The descriptor of an agent, from a file or from code. It is validated before an agent is built."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ....errors import RecollectError
from ....strategies.configuration import strategy_from_config

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_TOOL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class AgentConfigError(RecollectError, ValueError):
    """A descriptor is invalid. The message names the agent and the field."""

    def __init__(self, agent: str, field: str, reason: str) -> None:
        super().__init__(f"agent {agent!r}: {field} {reason}")
        self.agent = agent
        self.field = field


@dataclass(frozen=True)
class AgentDescriptor:
    """An agent: its instructions, its model, its tools and handoffs, and how it remembers.

    A tool is named as `module:function`: a tool of the Agents SDK, or a plain function that becomes one. A
    handoff is the name of another agent. Raises an `AgentConfigError` for an invalid field.
    """

    name: str
    instructions: str
    model: str | None = None
    description: str = ""
    tools: tuple[str, ...] = ()
    handoffs: tuple[str, ...] = ()
    memory_strategy_defaults: Mapping[str, Any] | None = None
    memory_injection_default: bool | None = None
    model_settings: Mapping[str, Any] | None = None
    max_turns: int | None = None

    def __post_init__(self) -> None:
        for field in ("tools", "handoffs"):
            object.__setattr__(self, field, _names(self.name, field, getattr(self, field)))
        for field, check in _CHECKS.items():
            reason = check(getattr(self, field))
            if reason is not None:
                raise AgentConfigError(str(self.name), field, reason)
        _check_tools(self)
        _check_handoffs(self)
        _check_strategy(self)


def read_descriptor(name: str, table: object) -> AgentDescriptor:
    """A descriptor from a table of a configuration file. Raises an `AgentConfigError` for unknown fields."""
    if not isinstance(table, Mapping):
        raise AgentConfigError(name, "its table", f"must be a table, not {type(table).__name__}")
    known = {field.name for field in fields(AgentDescriptor)} - {"name"}
    for field in table:
        if field not in known:
            raise AgentConfigError(name, str(field), f"is unknown; the fields are {', '.join(sorted(known))}")
    if "instructions" not in table:
        raise AgentConfigError(name, "instructions", "is missing")
    return AgentDescriptor(name, **table)


def handoff_key(name: str) -> str:
    """The name of an agent as a model sees it in handoffs. It must be unique."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower())


# --- checks of single fields: each returns what is wrong, or `None` ---


def _names(agent: str, field: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise AgentConfigError(str(agent), field, f"must be a list of strings, not {type(given).__name__}")
    for each in given:
        if not isinstance(each, str):
            raise AgentConfigError(str(agent), field, f"must contain strings, not {type(each).__name__}")
        if given.count(each) > 1:
            raise AgentConfigError(str(agent), field, f"names {each!r} twice")
    return tuple(given)


def _check_name(given: object) -> str | None:
    if isinstance(given, str) and _NAME.fullmatch(given):
        return None
    return "must be 1 to 64 letters, digits, '_', '.' or '-', and start with a letter or digit"


def _check_text(given: object) -> str | None:
    return None if isinstance(given, str) else f"must be a string, not {type(given).__name__}"


def _check_instructions(given: object) -> str | None:
    if isinstance(given, str) and not given.strip():
        return "must not be empty"
    return _check_text(given)


def _check_model(given: object) -> str | None:
    if given is None:
        return None
    return "must not be empty" if given == "" else _check_text(given)


def _check_injection(given: object) -> str | None:
    return None if given is None or isinstance(given, bool) else "must be true or false"


def _check_table(given: object) -> str | None:
    is_table = given is None or isinstance(given, Mapping)
    return None if is_table else f"must be a table, not {type(given).__name__}"


def _check_max_turns(given: object) -> str | None:
    is_count = isinstance(given, int) and not isinstance(given, bool) and given > 0
    return None if given is None or is_count else "must be a whole number of at least 1"


_CHECKS: dict[str, Callable[[object], str | None]] = {
    "name": _check_name,
    "instructions": _check_instructions,
    "model": _check_model,
    "description": _check_text,
    "memory_strategy_defaults": _check_table,
    "memory_injection_default": _check_injection,
    "model_settings": _check_table,
    "max_turns": _check_max_turns,
}


# --- checks across fields ---


def _check_tools(descriptor: AgentDescriptor) -> None:
    for tool in descriptor.tools:
        if not _TOOL.fullmatch(tool):
            raise AgentConfigError(descriptor.name, "tools", f"has {tool!r}, which must be module:function")


def _check_handoffs(descriptor: AgentDescriptor) -> None:
    if descriptor.name in descriptor.handoffs:
        raise AgentConfigError(descriptor.name, "handoffs", "names the agent itself")


def _check_strategy(descriptor: AgentDescriptor) -> None:
    try:
        strategy_from_config(descriptor.memory_strategy_defaults)
    except (ValueError, TypeError) as error:
        raise AgentConfigError(descriptor.name, "memory_strategy_defaults", f"is invalid: {error}") from error


DEFAULT_AGENT = AgentDescriptor(
    name="assistant",
    instructions="You are a helpful assistant. Be brief, and say so when you do not know something.",
    description="A general assistant.",
    memory_injection_default=True,
)
"""The built-in agent. Another agent of the same name replaces it."""
