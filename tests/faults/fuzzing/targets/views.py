"""Strategies: on the wire, over any history, and within a budget."""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from recollect.items import encode_items, estimate_tokens, find_orphans, type_of
from recollect.server.schemas.strategies import MemoryStrategy
from recollect.sessions.history import repair_items
from recollect.strategies.configuration import strategy_from_config, strategy_to_config
from recollect.strategies.values import Compact, Strategy, Summarize, Trim
from recollect.strategies.views import fit_input, view_of

from ..supply import Item, Supply
from ..target import check_told

_ON_THE_WIRE: TypeAdapter[Any] = TypeAdapter(MemoryStrategy)
_FIELDS = (
    "mode",
    "max_user_turns",
    "keep_last_user_turns",
    "token_budget",
    "context_window_tokens",
    "token_remaining_pct",
    "summary_max_tokens",
    "summary_prefix",
    "compact_trigger_turns",
    "compact_keep",
    "compact_clear_tool_inputs",
    "compact_exclude_tools",
    "compact_include_tools",
    "nothing",
)
_VALUES = (1, 2, 5, 0, -1, 30.5, 99.9, 10**400, True, None, "x", ["x"], ["y", 1], [[]], {}, 10**7, 2**70)
_MODES = ("trim", "summarize", "compact", "none", "nonsense", None, 1, [])
_TOOLS = ("", "shell", "f")


def check_configurations(data: bytes) -> None:
    """A strategy on the wire is one that makes sense, and comes back the same, or is refused."""
    supply = Supply(data)
    if supply.byte() % 4 == 0:
        _check_text(supply.rest().decode("utf-8", "surrogateescape"))
        return
    given: dict[str, Any] = {"mode": supply.choose(_MODES)}
    while not supply.is_empty:
        given[supply.choose(_FIELDS)] = supply.choose(_VALUES)
    _check_given(given)


def _check_text(text: str) -> None:
    _check_given(text)
    try:
        _ON_THE_WIRE.validate_json(text)
    except (ValidationError, UnicodeEncodeError):
        return


def _check_given(given: Any) -> None:
    try:
        strategy = strategy_from_config(given)
    except (ValueError, TypeError) as error:
        check_told(error)
        refused = True
    else:
        refused = False
        assert strategy_from_config(strategy_to_config(strategy)) == strategy
        assert strategy is None or view_of([], strategy) == []
    try:
        asked = _ON_THE_WIRE.validate_python(given)
    except ValidationError:
        return
    assert not refused, "the service takes what the library refuses"
    json.dumps(asked.to_config())


def check_views(data: bytes) -> None:
    """No view of a sound history has an orphan, and what is said to fit into the budget does."""
    supply = Supply(data)
    strategy = _strategy(supply)
    items, _ = repair_items(supply.items())
    view = view_of(items, strategy, summary="before" if supply.byte() % 2 else None)
    assert not find_orphans(view), "a view has an orphan"
    if isinstance(strategy, Compact):
        assert [type_of(item) for item in view] == [type_of(item) for item in items]
    _check_fitting(items, strategy, supply.number(50))


def _check_fitting(items: list[Item], strategy: Strategy, beside: int) -> None:
    shown, fits = fit_input(items, strategy, beside=beside)
    encode_items([item for item in shown if not any(item is given for given in items)])
    if strategy.budget is not None and fits:
        assert estimate_tokens(shown) + beside <= strategy.budget, "it does not fit, and is said to"


def _strategy(supply: Supply) -> Strategy:
    turns, keep = 1 + supply.number(6), supply.number(4)
    budget = None if supply.byte() % 2 else 1 + supply.number(600)
    match supply.number(3):
        case 0:
            return Trim(turns, min(keep, turns), token_budget=budget)
        case 1:
            return Summarize(turns, min(keep, turns), 1 + supply.number(50), token_budget=budget)
    tools = (supply.choose(_TOOLS),)
    return Compact(
        turns,
        min(max(keep, 1), turns),
        clear_tool_inputs=bool(supply.byte() % 2),
        exclude_tools=tuple(filter(None, tools)),
        token_budget=budget,
    )
