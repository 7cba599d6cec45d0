"""Strategies as configuration: from a dictionary or JSON, and back; and whose word counts."""

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
# For each mode its class, and the fields of the class by their names in a configuration.
_MODES: dict[Mode, tuple[type[Strategy], dict[str, str]]] = {
    "trim": (Trim, {**_TURNS, **_BUDGET}),
    "summarize": (
        Summarize,
        {**_TURNS, **_BUDGET, "summary_max_tokens": "summary_max_tokens", "summary_prefix": "summary_prefix"},
    ),
    "compact": (Compact, {**{f"compact_{name}": name for name in _COMPACT}, **_BUDGET}),
}


def strategy_from_config(config: StrategyConfig) -> Strategy | None:
    """The strategy that a configuration describes; `None` for the mode `none`, or for nothing at all.

    A configuration is a dictionary, or JSON text of one: `{"mode": "trim", "max_user_turns": 20}`. The case
    of the mode does not matter. A field that is null is as if it were not there. What is unknown or makes no
    sense is an error that names it.
    """
    if config is None or isinstance(config, Strategy):
        return config
    given = _given(config)
    mode = lower_mode(given.pop("mode", None))
    if mode is None:
        raise InvalidValueError(f"mode is missing: it is one of {', '.join(_MODES)} and none")
    if mode == "none" and given:
        raise InvalidValueError(f"{_shown(min(given))} means nothing in the mode none")
    if mode == "none":
        return None
    if not isinstance(mode, str) or mode not in _MODES:
        raise InvalidValueError(f"mode must be one of {', '.join(_MODES)} and none, and it is {_shown(mode)}")
    return _made(mode, given)


def lower_mode(mode: Any) -> Any:
    """A mode in lower case; a value that is not text stays as it is."""
    return mode.lower() if isinstance(mode, str) else mode


def strategy_to_config(strategy: Strategy | None) -> dict[str, Any]:
    """The configuration that gives this strategy; what is as by default is left out."""
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
    """The strategy of the first that names a mode, whole: fields of the others are not mixed in."""
    for config in (request, conversation, agent):
        if isinstance(config, Strategy):
            return config
        if config is not None and _given(config).get("mode") is not None:
            return strategy_from_config(config)
    return None


def resolve_memory_injection(
    request: bool | None = None, conversation: bool | None = None, agent: bool | None = None
) -> bool:
    """Whether memories are injected: as the first says that says anything, and not if nobody does."""
    for place, wanted in (("request", request), ("conversation", conversation), ("agent", agent)):
        if wanted is not None and not isinstance(wanted, bool):
            raise InvalidTypeError(
                f"memory_injection of the {place} must be true or false, not {_shown(wanted)}"
            )
        if wanted is not None:
            return wanted
    return False


def _given(config: Mapping[str, Any] | str) -> dict[str, Any]:
    """The fields that are given, by name."""
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


def _made(mode: Mode, given: dict[str, Any]) -> Strategy:
    kind, names = _MODES[mode]
    for wire in given:
        if wire not in names:
            known = any(wire in others for _, others in _MODES.values())
            raise InvalidValueError(
                f"{_shown(wire)} {'means nothing in' if known else 'is no field of'} the mode {mode}"
            )
    try:
        return kind(**{names[wire]: value for wire, value in given.items()})
    except (ValueError, TypeError) as error:
        raise type(error)(_in_wire_names(str(error), names)) from None


def _in_wire_names(message: str, names: dict[str, str]) -> str:
    """An error of a strategy, with the names of fields as they were given."""
    wire_of = {name: wire for wire, name in names.items()}
    return " ".join(wire_of.get(word, word) for word in message.split(" "))


def _shown(value: object) -> str:
    """A bad value, at a length that fits in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
