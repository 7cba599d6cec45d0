"""Views: what the model sees of the stored items. Pure functions, and an input filter for single calls."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..items import Item, Tokenizer, estimate_text_tokens, estimate_tokens, is_from_model, pair_calls, type_of
from ..sessions.history import repair_items
from .cut import Limits, Size, find_cut, limits_of
from .placeholders import compact_items
from .values import Compact, Strategy, Summarize
from .windows import Window, end_of_head, split_history

logger = logging.getLogger(__name__)

_EVERY_TOOL = Compact(trigger_turns=1, keep=1)


def view_of(
    items: Sequence[Item],
    strategy: Strategy | None,
    *,
    summary: str | None = None,
    tokenizer: Tokenizer | None = None,
) -> list[Item]:
    """The view of a whole history. `summary` stands in for the turns that `Summarize` cuts."""
    if strategy is None:
        return list(items)
    window = split_history(list(items))
    sizes = Sizes(strategy, tokenizer)
    limits = limits_of(strategy)
    if limits.tokens is None:
        cut = find_cut(sizes.unknown(window), limits)
    else:
        cut = find_cut(sizes.of_turns(window), limits, always=estimate_tokens(window.head, tokenizer))
    return build_view(window.after(cut.turns), strategy, summary) if cut.turns else list(items)


def build_view(window: Window, strategy: Strategy, summary: str | None = None) -> list[Item]:
    """The view of a window that starts at the cut."""
    if isinstance(strategy, Compact):
        everything = window.head + window.behind + window.items
        return compact_items(everything, len(window.head) + len(window.behind), strategy)
    shown = _without_orphans(window)
    if summary is not None and isinstance(strategy, Summarize):
        head = end_of_head(shown)
        shown[head:head] = summary_items(summary, strategy)
    return shown


def summary_items(summary: str, strategy: Summarize) -> list[Item]:
    """A summary as two items. The prefix says that it is earlier context and not a request."""
    return [
        {"role": "user", "content": strategy.summary_prefix},
        {"role": "assistant", "content": summary},
    ]


def _without_orphans(window: Window) -> list[Item]:
    """The head and the turns, without items whose counterpart was cut."""
    items = window.head + window.items
    if not window.scan.may_be_torn and not (window.head and pair_calls(window.head).open_calls):
        return items
    programs = [item.get("call_id") for item in items if type_of(item) == "program"]
    return repair_items([item for item in items if _caller_of(item) in (None, *programs)])[0]


def _caller_of(item: Item) -> object:
    caller = item.get("caller")
    return caller.get("caller_id") if isinstance(caller, dict) else None


# --- sizes ---


def size_of(turn: Sequence[Item], strategy: Strategy, tokenizer: Tokenizer | None = None) -> Size:
    """The tokens of a turn, whole and after the cut has moved past it."""
    return Size(estimate_tokens(turn, tokenizer), tokens_behind(turn, strategy, tokenizer))


def tokens_behind(items: Sequence[Item], strategy: Strategy, tokenizer: Tokenizer | None = None) -> int:
    """The tokens of items in a view in which they are before the cut."""
    if not isinstance(strategy, Compact):
        return 0
    return estimate_tokens(compact_items(items, len(items), strategy), tokenizer)


class Sizes:
    """The sizes of turns. Counting tokens takes longer than reading, so sizes are cached by position."""

    def __init__(self, strategy: Strategy, tokenizer: Tokenizer | None) -> None:
        self._strategy = strategy
        self._tokenizer = tokenizer
        self._known: dict[tuple[int, int], Size] = {}

    def unknown(self, window: Window) -> list[Size]:
        """An empty size for each turn, for limits without a token budget."""
        return [Size()] * len(window.starts)

    def of_turns(self, window: Window) -> list[Size]:
        """The size of each turn of a window."""
        if not window.has_positions:
            return [self._size(turn) for turn in window.turns()]
        edges = list(pairwise([*window.starts, len(window.items)]))
        places = [(window.positions.of(start), window.positions.of(end - 1)) for start, end in edges]
        self._known = {
            place: self._known.get(place) or self._size(window.items[start:end])
            for place, (start, end) in zip(places, edges, strict=True)
        }
        return list(self._known.values())

    def _size(self, turn: list[Item]) -> Size:
        return size_of(turn, self._strategy, self._tokenizer)


# --- the input of one model call ---


def strategy_input_filter(strategy: Strategy, *, tokenizer: Tokenizer | None = None) -> Callable[[Any], Any]:
    """A function for `RunConfig(call_model_input_filter=…)` that keeps every call within a strategy's limits.

    The view of a session is built when a run starts. A long run with many tool calls grows beyond it. This
    filter shortens the input of each model call within the run.

    Turns are trimmed or compacted as in a session. If the input, with the instructions, is still over the
    budget, the outputs of older tool calls are replaced by placeholders, also those of the newest turn. The
    last step of the model and the outputs of its tools always stay. A strategy that summarizes does not trim
    turns here, because the session has the summary.
    """
    has_warned = False

    def filtered(data: Any) -> Any:
        nonlocal has_warned
        model_data = data.model_data
        instructions = (tokenizer or estimate_text_tokens)(model_data.instructions or "")
        items, fits = fit_input(model_data.input, strategy, beside=instructions, tokenizer=tokenizer)
        if not fits and not has_warned:
            has_warned = True
            logger.warning("last step of a run exceeds the budget of %d tokens", strategy.budget)
        return replace(model_data, input=items)

    return filtered


def fit_input(
    items: Sequence[Item], strategy: Strategy, *, beside: int = 0, tokenizer: Tokenizer | None = None
) -> tuple[list[Item], bool]:
    """The input of one call within a strategy's limits, and whether it fits the token budget.

    `beside` are the tokens of the call besides the items.
    """
    shown = list(items) if isinstance(strategy, Summarize) else view_of(items, strategy, tokenizer=tokenizer)
    budget = strategy.budget
    if budget is None:
        return shown, True
    how = strategy if isinstance(strategy, Compact) else _EVERY_TOOL
    starts = [0, *_step_starts(shown)]
    sizes = [size_of(shown[start:end], how, tokenizer) for start, end in pairwise([*starts, len(shown)])]
    cut = find_cut(sizes, Limits(turns=None, tokens=budget, keep=1), always=beside)
    return compact_items(shown, starts[cut.turns], how), (cut.tokens or 0) <= budget


def _step_starts(items: Sequence[Item]) -> list[int]:
    """The index of each model item that follows an item that is not from the model."""
    return [
        index
        for index, (before, item) in enumerate(pairwise(items), start=1)
        if is_from_model(item) and not is_from_model(before)
    ]
