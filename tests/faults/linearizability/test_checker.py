"""The checker knows what can be told one call after another, and what cannot."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .checker import _BEGINNINGS, _explore, _relevant, _Search, check
from .history import Kind, Operation, Values, newest, step


def op(
    kind: Kind,
    invoked: int,
    returned: int | None,
    *,
    written: Values = (),
    seen: Values = (),
    limit: int | None = None,
) -> Operation:
    return Operation(kind, invoked, returned, written, limit, seen)


EXPLAINED = {
    "nothing at all": [],
    "one after another": [op("add", 0, 1, written=(1, 2)), op("get", 2, 3, seen=(1, 2))],
    "a read that meets a write sees it": [op("add", 0, 5, written=(1,)), op("get", 1, 2, seen=(1,))],
    "a read that meets a write does not see it": [op("add", 0, 5, written=(1,)), op("get", 1, 2)],
    "two writes that meet, in the order seen": [
        op("add", 0, 5, written=(1,)),
        op("add", 1, 4, written=(2,)),
        op("get", 6, 7, seen=(2, 1)),
    ],
    "two poppers get one each": [
        op("add", 0, 1, written=(1, 2)),
        op("pop", 2, 5, seen=(1,)),
        op("pop", 2, 5, seen=(2,)),
        op("pop", 6, 7),
    ],
    "what was cleared is gone": [
        op("add", 0, 1, written=(1,)),
        op("clear", 2, 3),
        op("get", 4, 5),
    ],
    "a limit shows the newest": [
        op("add", 0, 1, written=(1, 2, 3)),
        op("get", 2, 3, limit=2, seen=(2, 3)),
        op("get", 2, 3, limit=0),
    ],
    "a rewriting keeps what it was given": [
        op("add", 0, 1, written=(1, 2, 3)),
        op("keep", 2, 3, limit=1, seen=(1, 2, 3)),
        op("get", 4, 5, seen=(3,)),
    ],
    "a cancelled write that was seen later": [
        op("add", 0, None, written=(1,)),
        op("get", 1, 2),
        op("get", 3, 4, seen=(1,)),
    ],
    "a cancelled write that never was": [op("add", 0, None, written=(1,)), op("get", 1, 2)],
    "a cancelled pop that took something": [
        op("add", 0, 1, written=(1,)),
        op("pop", 2, None),
        op("get", 3, 4, seen=(1,)),
        op("get", 5, 6),
    ],
    "a cancelled replacement that took effect": [
        op("add", 0, 1, written=(1,)),
        op("replace", 2, None, written=(7,)),
        op("get", 3, 4, seen=(7,)),
    ],
}

UNEXPLAINED = {
    "a write that was acknowledged and is gone": [op("add", 0, 1, written=(1,)), op("get", 2, 3)],
    "a write that is seen before it was asked for": [
        op("get", 0, 1, seen=(1,)),
        op("add", 2, 3, written=(1,)),
    ],
    "a batch seen in part": [op("add", 0, 5, written=(1, 2)), op("get", 1, 2, seen=(1,))],
    "a batch with another within": [
        op("add", 0, 5, written=(1, 2)),
        op("add", 0, 5, written=(3,)),
        op("get", 6, 7, seen=(1, 3, 2)),
    ],
    "order turned round": [
        op("add", 0, 1, written=(1,)),
        op("add", 2, 3, written=(2,)),
        op("get", 4, 5, seen=(2, 1)),
    ],
    "two readers who see different orders": [
        op("add", 0, 9, written=(1,)),
        op("add", 0, 9, written=(2,)),
        op("get", 2, 3, seen=(1,)),
        op("get", 4, 5, seen=(2, 1)),
    ],
    "popped twice": [
        op("add", 0, 1, written=(1, 2)),
        op("pop", 2, 5, seen=(2,)),
        op("pop", 2, 5, seen=(2,)),
    ],
    "popped, but not the newest": [op("add", 0, 1, written=(1, 2)), op("pop", 2, 3, seen=(1,))],
    "nothing to pop where there is something": [op("add", 0, 1, written=(1,)), op("pop", 2, 3)],
    "a stale read": [
        op("add", 0, 1, written=(1,)),
        op("pop", 2, 3, seen=(1,)),
        op("get", 4, 5, seen=(1,)),
    ],
    "cleared, and back again": [
        op("add", 0, 1, written=(1,)),
        op("clear", 2, 3),
        op("get", 4, 5, seen=(1,)),
    ],
    "a rewriting that lost a write": [
        op("add", 0, 1, written=(1,)),
        op("keep", 2, 9, limit=5, seen=(1,)),
        op("add", 3, 4, written=(2,)),
        op("get", 10, 11, seen=(1,)),
    ],
    "a limit that shows the oldest": [
        op("add", 0, 1, written=(1, 2)),
        op("get", 2, 3, limit=1, seen=(1,)),
    ],
    "what nobody has written": [op("get", 0, 1, seen=(5,))],
    "a cancelled write that came and went": [
        op("add", 0, None, written=(1,)),
        op("get", 1, 2, seen=(1,)),
        op("get", 3, 4),
    ],
}


@pytest.mark.parametrize("history", EXPLAINED.values(), ids=EXPLAINED.keys())
def test_it_accepts(history: list[Operation]) -> None:
    assert check(history).linearizable


@pytest.mark.parametrize("history", UNEXPLAINED.values(), ids=UNEXPLAINED.keys())
def test_it_refuses(history: list[Operation]) -> None:
    verdict = check(history)
    assert verdict.decided
    assert not verdict.linearizable
    assert verdict.failed_at is not None


def test_it_says_what_nothing_explains() -> None:
    verdict = check([op("add", 0, 1, written=(1,)), op("clear", 2, 3), op("get", 4, 5, seen=(1,))])
    assert verdict.failed_at is not None
    assert (verdict.failed_at.kind, verdict.might_hold) == ("get", [()])


def test_it_gives_up_rather_than_searching_without_end() -> None:
    pops = [op("pop", 1, None) for _ in range(12)]
    adds = [op("add", 2, 100, written=(number,)) for number in range(12)]
    verdict = check([*pops, *adds, op("get", 101, 102, seen=(99,))], most_worlds=1000)
    assert not verdict.decided
    assert not verdict.linearizable


# --- histories that somebody has made up ---

_OFTEN: list[Kind] = ["add", "add", "add", "pop", "pop", "get", "get"]
_SELDOM: list[Kind] = ["clear", "replace", "keep"]
_KINDS = st.sampled_from([*_OFTEN, *_SELDOM])
_SPAN = 10  # of time between two effects


@st.composite
def told_in_order(draw: st.DrawFn) -> list[Operation]:
    """Calls that took effect one after another, each at some moment between when it was made and answered."""
    held: Values = ()
    history = []
    for number, kind in enumerate(draw(st.lists(_KINDS, min_size=1, max_size=14))):
        effect = number * _SPAN
        made = _intended(draw, kind, number, effect - draw(st.integers(0, 4 * _SPAN)))
        now = step(made, held)
        assert now is not None
        seen = {"pop": held[-1:], "get": newest(held, made.limit), "keep": held}.get(kind, ())
        if draw(st.integers(0, 9)):
            made = replace(made, returned=effect + draw(st.integers(0, 4 * _SPAN)), seen=seen)
        elif draw(st.booleans()):
            now = held  # it failed, and has not happened
        history.append(made)
        held = now
    return [*history, op("get", _SPAN * 1000, _SPAN * 1000 + 1, seen=held)]


def _intended(draw: st.DrawFn, kind: Kind, number: int, invoked: int) -> Operation:
    """A call whose outcome is not known yet."""
    written = tuple(number * 10 + place for place in range(draw(st.integers(1, 3))))
    limit = draw(st.integers(0, 4)) if kind == "keep" or (kind == "get" and draw(st.booleans())) else None
    return op(kind, invoked, None, written=written if kind in ("add", "replace") else (), limit=limit)


@settings(max_examples=100, deadline=None)
@given(told_in_order(), st.randoms(use_true_random=False))
def test_what_happened_in_some_order_is_accepted_however_the_calls_met(
    history: list[Operation], chance: random.Random
) -> None:
    chance.shuffle(history)
    assert check(history).linearizable


@settings(max_examples=100, deadline=None)
@given(told_in_order(), st.data())
def test_one_answer_that_does_not_fit_is_found(history: list[Operation], data: st.DataObject) -> None:
    """The calls do not meet here, so there is one order, and each other answer is wrong."""
    apart = [
        replace(each, invoked=place * _SPAN, returned=None if not each.is_known else place * _SPAN + 1)
        for place, each in enumerate(history)
    ]
    known = [
        place for place, each in enumerate(apart) if each.is_known and each.kind in ("pop", "get", "keep")
    ]
    place = data.draw(st.sampled_from(known))
    spoiled = replace(apart[place], seen=data.draw(st.sampled_from(_other_answers(apart[place]))))
    assert not check([*apart[:place], spoiled, *apart[place + 1 :]]).linearizable


def _other_answers(told: Operation) -> list[Values]:
    """Answers that are wrong whatever a cancelled call has done: what nobody wrote, or the same twice."""
    return [(*told.seen, 9999), (9999, *told.seen), *([told.seen * 2] if told.seen else [])]


# --- against a checker that tries everything ---


def _explained_by_trying(history: list[Operation], held: Values = ()) -> bool:
    """The definition: some order of all answered calls, and of some others, that keeps to the times."""
    if not any(each.is_known for each in history):
        return True
    first_answer = min(each.returned for each in history if each.returned is not None)
    for place, each in enumerate(history):
        if each.invoked <= first_answer:
            rest = [*history[:place], *history[place + 1 :]]
            now = step(each, held)
            if now is not None and _explained_by_trying(rest, now):
                return True
    return False


@settings(max_examples=100, deadline=None)
@given(told_in_order().filter(lambda history: len(history) <= 7), st.data())
def test_it_says_the_same_as_trying_every_order(history: list[Operation], data: st.DataObject) -> None:
    """With answers swapped among the calls, so that some can be explained and some cannot."""
    place, other = (data.draw(st.integers(0, len(history) - 1)) for _ in range(2))
    swapped = list(history)
    if {history[place].kind, history[other].kind} <= {"get", "pop", "keep"}:
        swapped[place] = replace(history[place], seen=history[other].seen)
    assert check(swapped).linearizable == _explained_by_trying(swapped)


def crowded(seed: int) -> list[Operation]:
    """Many calls at once, of which some were cancelled: there are very many orders, and few explain it."""
    chance, history = random.Random(seed), []
    held: Values = ()
    for number in range(70):
        kind = chance.choice([*_OFTEN, *_SELDOM])
        written = tuple(number * 10 + place for place in range(2)) if kind in ("add", "replace") else ()
        made = op(kind, number * _SPAN - chance.randrange(8 * _SPAN), None, written=written, limit=3)
        now = step(made, held)
        assert now is not None
        if chance.random() < 0.9:
            seen = {"pop": held[-1:], "get": newest(held, 3), "keep": held}.get(kind, ())
            made = replace(made, returned=number * _SPAN + chance.randrange(8 * _SPAN), seen=seen)
        history.append(made)
        held = now
    return [*history, op("get", _SPAN * 1000, _SPAN * 1000 + 1, seen=held)]


@pytest.mark.parametrize("seed", [1, 2, 11])
def test_where_the_likeliest_calls_lead_nowhere_others_are_tried_first(seed: int) -> None:
    history, most = crowded(seed), 10_000
    assert not _explore(_Search(_relevant(history)), most).decided
    assert check(history, most * _BEGINNINGS).linearizable
