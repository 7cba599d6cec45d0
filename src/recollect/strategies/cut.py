"""Where a history is cut. The decision needs only the turns after the last cut.

The turns are processed in order. Whenever the turns since the last cut exceed a limit, the cut moves on and
leaves only the newest of them. A view therefore grows and is cut again, as if the history had been shortened
each time. Starting from any earlier cut gives the same result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from .values import Strategy, Summarize

Trigger: TypeAlias = Literal["turns", "tokens"]

# An estimate for the prefix of a summary and the markers of its two items.
_TOKENS_AROUND_SUMMARY = 48


class Size(NamedTuple):
    """The tokens of a turn in the view: whole, and after the cut has moved past it."""

    whole: int = 0
    behind: int = 0


@dataclass(frozen=True)
class Limits:
    """The limits that trigger a cut, and how many turns stay after it."""

    turns: int | None
    tokens: int | None
    keep: int
    reserve: int = 0
    """Tokens that a cut adds to the view: those of a summary."""


@dataclass(frozen=True)
class Cut:
    """How many turns the cut moves on, which limit moved it last, and the tokens of the view after it."""

    turns: int
    trigger: Trigger | None = None
    tokens: int | None = None
    """`None` if there is no token budget."""


def limits_of(strategy: Strategy) -> Limits:
    """The limits of a strategy."""
    reserve = strategy.summary_max_tokens + _TOKENS_AROUND_SUMMARY if isinstance(strategy, Summarize) else 0
    return Limits(strategy.trigger_turns, strategy.budget, strategy.keep, reserve)


def find_cut(turns: Sequence[Size], limits: Limits, *, always: int = 0, is_cut: bool = False) -> Cut:
    """How far the cut moves within these turns, which are all after the last cut.

    `always` are the tokens that every view has: those of the items before the first turn, and those that
    remain of the turns before the last cut. `is_cut` says whether there was a cut before.
    """
    if limits.tokens is None:
        return _cut_by_turns(len(turns), limits)
    return _cut_by_size(turns, limits, limits.tokens, always, is_cut)


def _cut_by_turns(count: int, limits: Limits) -> Cut:
    """The cut in one step, for limits without a token budget."""
    if limits.turns is None or count <= limits.turns:
        return Cut(0)
    step = limits.turns + 1 - (limits.keep or limits.turns)
    return Cut((count - limits.turns + step - 1) // step * step, "turns")


def _cut_by_size(turns: Sequence[Size], limits: Limits, budget: int, always: int, is_cut: bool) -> Cut:
    cut, trigger = 0, None
    shown = always + (limits.reserve if is_cut else 0)  # tokens besides the turns after the cut
    tokens = 0  # of the turns after the cut
    for end, size in enumerate(turns, start=1):
        tokens += size.whole
        found = _trigger(end - cut, shown + tokens, limits, budget)
        moved = end - _turns_to_keep(turns[cut:end], found, limits, budget - shown) if found else cut
        if moved > cut:
            tokens -= sum(turn.whole for turn in turns[cut:moved])
            shown += sum(turn.behind for turn in turns[cut:moved])
            shown += 0 if is_cut else limits.reserve
            cut, trigger, is_cut = moved, found, True
    return Cut(cut, trigger, shown + tokens)


def _trigger(count: int, tokens: int, limits: Limits, budget: int) -> Trigger | None:
    if tokens > budget:
        return "tokens"
    return "turns" if limits.turns is not None and count > limits.turns else None


def _turns_to_keep(window: Sequence[Size], trigger: Trigger, limits: Limits, room: int) -> int:
    """How many turns stay: the configured number, otherwise as many as fill half of the room."""
    if limits.keep:
        return min(limits.keep, len(window))
    if trigger == "turns" and limits.turns is not None:
        return limits.turns
    kept, tokens = 1, window[-1].whole
    while kept < len(window) and (tokens := tokens + window[-kept - 1].whole) <= room // 2:
        kept += 1
    return kept
