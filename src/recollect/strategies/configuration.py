"""Strategies as configuration: parse them from a dictionary or JSON, serialize them, resolve precedence."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeAlias

from ..errors import InvalidTypeError, InvalidValueError
from .values import Compact, Mode, Strategy, Summarize, Trim

StrategyConfig: TypeAlias = Mapping[str, Any] | str | Strategy | None

_BUDGET = {name: name for name in ("token_budget", "context_window_tokens", "token_remaining_pct")}
_TURNS = {name: name for name in ("max_user_turns", "keep_last_user_turns")}
_COMPACT = ("trigger_turns", "keep", "clear_tool_inputs", "exclude_tools", "include_tools")
# The class of each mode, and the fields of the class by their names in a configuration.
_MODES: dict[Mode, tuple[type[Strategy], dict[str, str]]] = {
    "trim": (Trim, {**_TURNS, **_BUDGET}),
    "summarize": (
        Summarize,
        {**_TURNS, **_BUDGET, "summary_max_tokens": "summary_max_tokens", "summary_prefix": "summary_prefix"},
    ),
    "compact": (Compact, {**{f"compact_{name}": name for name in _COMPACT}, **_BUDGET}),
}


def strategy_from_config(config: StrategyConfig) -> Strategy | None:
    """Parse a configuration; `None` for the mode `none` or if there is no configuration.

    A configuration is a dictionary, or JSON text of one: `{"mode": "trim", "max_user_turns": 20}`. The mode
    is not case-sensitive. A field that is null counts as missing. Raises `InvalidValueError` or
    `InvalidTypeError`, naming the field, for unknown fields and invalid values.
    """
    if config is None or isinstance(config, Strategy):
        return config
    given = _fields_of(config)
    mode = lower_mode(given.pop("mode", None))
    if mode is None:
        raise InvalidValueError(f"mode is missing: it is one of {', '.join(_MODES)} and none")
    if mode == "none" and given:
        raise InvalidValueError(f"{_shown(min(given))} has no effect in the mode none")
    if mode == "none":
        return None
    if not isinstance(mode, str) or mode not in _MODES:
        raise InvalidValueError(f"mode must be one of {', '.join(_MODES)} and none, and it is {_shown(mode)}")
    return _build(mode, given)


def lower_mode(mode: Any) -> Any:
    """A mode in lower case; a value that is not a string is returned unchanged."""
    return mode.lower() if isinstance(mode, str) else mode


def strategy_to_config(strategy: Strategy | None) -> dict[str, Any]:
    """Serialize a strategy to a configuration. Fields with default values are left out."""
    if strategy is None:
        return {"mode": "none"}
    _, names = _MODES[strategy.mode]
    defaults = {field.name: field.default for field in fields(strategy)}
    values = {wire: getattr(strategy, name) for wire, name in names.items()}
    changed = {wire: value for wire, value in values.items() if value != defaults[names[wire]]}
    lists = {wire: list(value) if isinstance(value, tuple) else value for wire, value in changed.items()}
    return {"mode": strategy.mode, **lists}


def resolve_memory_strategy(
    request: StrategyConfig = None, conversation: StrategyConfig = None, agent: StrategyConfig = None
) -> Strategy | None:
    """The strategy of the first configuration that names a mode. Fields of the others are not merged in."""
    for config in (request, conversation, agent):
        if isinstance(config, Strategy):
            return config
        if config is not None and _fields_of(config).get("mode") is not None:
            return strategy_from_config(config)
    return None


def resolve_memory_injection(
    request: bool | None = None, conversation: bool | None = None, agent: bool | None = None
) -> bool:
    """Whether memories are injected: the first value that is set, otherwise `False`."""
    for place, wanted in (("request", request), ("conversation", conversation), ("agent", agent)):
        if wanted is not None and not isinstance(wanted, bool):
            raise InvalidTypeError(
                f"memory_injection of the {place} must be true or false, not {_shown(wanted)}"
            )
        if wanted is not None:
            return wanted
    return False


def _fields_of(config: Mapping[str, Any] | str) -> dict[str, Any]:
    """The fields of a configuration that are not null."""
    parsed: Any = config
    if isinstance(config, str):
        try:
            parsed = json.loads(config)
        except (ValueError, RecursionError) as error:
            raise InvalidValueError("memory_strategy is not valid JSON") from error
    if parsed is None:
        return {}
    if not isinstance(parsed, Mapping):
        raise InvalidTypeError(f"memory_strategy must be an object with a mode, not {type(parsed).__name__}")
    return {str(name): value for name, value in parsed.items() if value is not None}


def _build(mode: Mode, given: dict[str, Any]) -> Strategy:
    kind, names = _MODES[mode]
    for wire in given:
        if wire not in names:
            known = any(wire in others for _, others in _MODES.values())
            raise InvalidValueError(
                f"{_shown(wire)} {'has no effect in' if known else 'is not a field of'} the mode {mode}"
            )
    try:
        return kind(**{names[wire]: value for wire, value in given.items()})
    except (ValueError, TypeError) as error:
        raise type(error)(_in_wire_names(str(error), names)) from None


def _in_wire_names(message: str, names: dict[str, str]) -> str:
    """The error message of a strategy, with the field names of the configuration."""
    wire_of = {name: wire for wire, name in names.items()}
    return " ".join(wire_of.get(word, word) for word in message.split(" "))


def _shown(value: object) -> str:
    """An invalid value, shortened for an error message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
