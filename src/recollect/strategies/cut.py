"""Where a history is cut: in whole turns, in steps, and from the turns after the last cut alone.

The turns are gone through in order. Whenever those since the last cut are too many or too large, the cut
moves on and leaves only the newest of them after it. So a view grows and is cut again, as if the history had
been shortened each time; and who knows an earlier cut gets the same answer from the turns after it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from .values import Strategy, Summarize

Trigger: TypeAlias = Literal["turns", "tokens"]

# About what the markers around the two items of a summary cost, and the words that introduce it.
_TOKENS_AROUND_SUMMARY = 48


class Size(NamedTuple):
    """How many tokens a turn costs the view: before the cut has passed it, and after."""

    whole: int = 0
    behind: int = 0


@dataclass(frozen=True)
class Limits:
    """When there is too much, and how many turns stay then."""

    turns: int | None
    tokens: int | None
    keep: int
    reserve: int = 0
    """Tokens that a view costs more as soon as there is a cut: those of a summary."""


@dataclass(frozen=True)
class Cut:
    """How many turns more are behind the cut, what made it move last, and what the view costs now."""

    turns: int
    trigger: Trigger | None = None
    tokens: int | None = None
    """`None` where only turns count."""


def limits_of(strategy: Strategy) -> Limits:
    """The limits of a strategy."""
    reserve = strategy.summary_max_tokens + _TOKENS_AROUND_SUMMARY if isinstance(strategy, Summarize) else 0
    return Limits(strategy.trigger_turns, strategy.budget, strategy.keep, reserve)


def find_cut(turns: Sequence[Size], limits: Limits, *, always: int = 0, is_cut: bool = False) -> Cut:
    """How far the cut moves within these turns, which all come after the last one.

    `always` are the tokens shown in any case: the items before the first turn, and what the turns behind
    the last cut still cost. `is_cut` says that there was one.
    """
    if limits.tokens is None:
        return _cut_by_turns(len(turns), limits)
    return _cut_by_size(turns, limits, limits.tokens, always, is_cut)


def _cut_by_turns(count: int, limits: Limits) -> Cut:
    """The same in one step, where only the number of turns matters."""
    if limits.turns is None or count <= limits.turns:
        return Cut(0)
    step = limits.turns + 1 - (limits.keep or limits.turns)
    return Cut((count - limits.turns + step - 1) // step * step, "turns")


def _cut_by_size(turns: Sequence[Size], limits: Limits, budget: int, always: int, is_cut: bool) -> Cut:
    cut, trigger = 0, None
    shown = always + (limits.reserve if is_cut else 0)  # besides the turns since the cut
    tokens = 0  # of the turns since the cut
    for end, size in enumerate(turns, start=1):
        tokens += size.whole
        found = _trigger(end - cut, shown + tokens, limits, budget)
        moved = end - _kept(turns[cut:end], found, limits, budget - shown) if found else cut
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


def _kept(window: Sequence[Size], trigger: Trigger, limits: Limits, room: int) -> int:
    """How many of the turns stay: as many as were asked for, else as many as fill half of the room."""
    if limits.keep:
        return min(limits.keep, len(window))
    if trigger == "turns" and limits.turns is not None:
        return limits.turns
    kept, tokens = 1, window[-1].whole
    while kept < len(window) and (tokens := tokens + window[-kept - 1].whole) <= room // 2:
        kept += 1
    return kept
