"""The cut, checked against a literal implementation of the specification, turn by turn."""

from hypothesis import given
from hypothesis import strategies as st

from histories import quick
from recollect.strategies.cut import Limits, Size, find_cut

tokens = st.integers(0, 50)
sizes = st.lists(st.builds(lambda whole, behind: Size(whole, min(whole, behind)), tokens, tokens))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    turns = draw(st.none() | st.integers(1, 6))
    budget = draw(st.integers(1, 150)) if turns is None else draw(st.none() | st.integers(1, 150))
    keep, reserve = draw(st.integers(0, turns or 4)), draw(st.sampled_from([0, 20]))
    return Limits(turns, budget, keep, reserve)


def followed(turns: list[Size], limit: Limits, always: int) -> int:
    """The cut, decided after each turn from the turns since the last cut."""
    cut = 0
    for now in range(1, len(turns) + 1):
        shown = always + sum(size.behind for size in turns[:cut]) + (limit.reserve if cut else 0)
        after = turns[cut:now]
        if limit.tokens is not None and shown + sum(size.whole for size in after) > limit.tokens:
            keep = limit.keep or max(1, fitting(after, (limit.tokens - shown) // 2))
        elif limit.turns is not None and len(after) > limit.turns:
            keep = limit.keep or limit.turns
        else:
            continue
        cut = max(cut, now - keep)
    return cut


def fitting(turns: list[Size], room: int) -> int:
    """How many of the newest turns fit into the room."""
    return next(
        (count for count in range(len(turns), 0, -1) if sum(size.whole for size in turns[-count:]) <= room), 0
    )


@quick
@given(sizes, limits(), st.integers(0, 60))
def test_the_cut_is_what_following_the_turns_gives(turns: list[Size], limit: Limits, always: int) -> None:
    assert find_cut(turns, limit, always=always).turns == followed(turns, limit, always)


@quick
@given(sizes, limits(), st.integers(0, 60), st.data())
def test_who_knows_an_earlier_cut_needs_only_what_comes_after_it(
    turns: list[Size], limit: Limits, always: int, data: st.DataObject
) -> None:
    earlier = find_cut(turns[: data.draw(st.integers(0, len(turns)))], limit, always=always).turns
    behind = sum(size.behind for size in turns[:earlier])
    later = find_cut(turns[earlier:], limit, always=always + behind, is_cut=earlier > 0)
    whole = find_cut(turns, limit, always=always)
    assert earlier + later.turns == whole.turns
    if limit.tokens is not None:
        assert later.tokens == whole.tokens
        shown = always + sum(size.behind for size in turns[: whole.turns])
        shown += sum(size.whole for size in turns[whole.turns :])
        assert whole.tokens == shown + (limit.reserve if whole.turns else 0)


@quick
@given(sizes, limits())
def test_what_stays_is_within_the_limits_or_cannot_be_less(turns: list[Size], limit: Limits) -> None:
    cut = find_cut(turns, limit)
    left = len(turns) - cut.turns
    assert limit.turns is None or left <= limit.turns
    if limit.tokens is not None and sum(size.whole for size in turns[cut.turns :]) > limit.tokens:
        assert left <= (limit.keep or 1)
    assert (cut.trigger is not None) == (cut.turns > 0)


def test_what_remains_of_the_turns_behind_a_cut_may_exceed_the_budget() -> None:
    """So does the summary that a cut adds. The view says how many tokens it has."""
    cut = find_cut([Size(40, 40), Size(5, 5), Size(6, 6)], Limits(turns=None, tokens=50, keep=0))
    assert (cut.turns, cut.tokens) == (1, 51)
    cut = find_cut([Size()] * 3, Limits(turns=2, tokens=1, keep=0, reserve=20))
    assert (cut.turns, cut.tokens) == (1, 20)


def test_a_view_grows_from_keep_to_the_maximum_and_is_cut_again() -> None:
    limit = Limits(turns=4, tokens=None, keep=2)
    shown = [count - find_cut([Size()] * count, limit).turns for count in range(1, 12)]
    assert shown == [1, 2, 3, 4, 2, 3, 4, 2, 3, 4, 2]


def test_without_keep_the_maximum_stays() -> None:
    limit = Limits(turns=3, tokens=None, keep=0)
    assert [count - find_cut([Size()] * count, limit).turns for count in range(1, 7)] == [1, 2, 3, 3, 3, 3]


def test_a_budget_without_keep_leaves_half_of_itself() -> None:
    limit = Limits(turns=None, tokens=100, keep=0)
    shown = [count - find_cut([Size(20)] * count, limit).turns for count in range(1, 12)]
    assert shown == [1, 2, 3, 4, 5, 2, 3, 4, 5, 2, 3]
    assert find_cut([Size(20)] * 6, limit).trigger == "tokens"


def test_the_newest_turn_stays_whatever_it_costs() -> None:
    cut = find_cut([Size(10), Size(10), Size(900)], Limits(turns=None, tokens=100, keep=0))
    assert (cut.turns, cut.tokens) == (2, 900)
