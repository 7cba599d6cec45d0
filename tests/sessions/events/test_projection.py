"""Which items are new: pure functions, on histories as agents write them."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from histories import histories, odd_items, quick
from recollect import fingerprint
from recollect.sessions.events import project_new_session_items
from recollect.sessions.events.projection import ItemPosition as Position
from recollect.sessions.events.projection import Logged, compare
from recollect.testing.contract import message, texts

Item = dict[str, Any]


def test_what_was_said_twice_is_new_once() -> None:
    before = [message("yes"), message("sure?")]
    after = [*before, message("yes")]
    assert project_new_session_items(before, after) == [message("yes")]


def test_the_later_of_two_that_are_alike_is_the_new_one() -> None:
    """They are equal, so it is told by which of the objects comes back."""
    first, second, third = message("yes"), message("yes"), message("yes")
    (found, also) = project_new_session_items([message("yes")], [first, message("no"), second, third])[1:]
    assert found is second
    assert also is third


def test_a_trimmed_session_gives_only_what_was_added() -> None:
    before = [message(number) for number in range(10)]
    after = [message("a summary"), *before[6:], message(10)]
    assert texts(project_new_session_items(before, after)) == ["a summary", "10"]


def test_an_item_with_an_id_is_the_same_when_it_was_rewritten() -> None:
    output = {"type": "function_call_output", "call_id": "c1", "output": "very long"}
    assert project_new_session_items([output], [{**output, "output": "[compacted]"}]) == []


@quick
@given(histories(), histories())
def test_appended_items_are_new_in_their_order(before: list[Item], added: list[Item]) -> None:
    after = [*before, *added]
    new = project_new_session_items(before, after)
    assert Counter(map(fingerprint, new)) == Counter(map(fingerprint, added))
    assert project_new_session_items(after, after) == []
    assert project_new_session_items([], after) == after


@quick
@given(st.lists(odd_items(), max_size=8), st.randoms())
def test_nothing_is_new_in_a_history_that_lost_items_or_their_order(items: list[Item], chance: Any) -> None:
    left = [item for item in items if chance.random() < 0.6]
    chance.shuffle(left)
    assert project_new_session_items(items, left) == []


# --- events and places ---

places = st.builds(Position, st.none() | st.integers(1, 12), st.sampled_from("abc"))


def unique(found: list[Position]) -> list[Position]:
    """In a session, a position is held once, and later items have higher ones."""
    by_position = {place.position: place for place in found if place.position is not None}
    return [by_position[position] for position in sorted(by_position)]


@quick
@given(st.lists(places, max_size=8), st.lists(places, max_size=8))
def test_each_item_is_an_event_or_new(stored: list[Position], found: list[Position]) -> None:
    logged, session = [Logged(number, place) for number, place in enumerate(stored)], unique(found)
    new, moved = compare(logged, session)
    assert new == sorted(set(new))
    log = Counter(place.fingerprint for place in stored) + Counter(session[n].fingerprint for n in new)
    assert not Counter(place.fingerprint for place in session) - log, "each item has an event of its own"
    places_after = {
        number: place._replace(position=moved.get(number, place.position)) for number, place in logged
    }
    grown = [*places_after.values(), *(session[number] for number in new)]
    again = compare([Logged(number, place) for number, place in enumerate(grown)], session)
    assert again.new == [], "a second time adds nothing"
    assert len(new) <= sum(
        (Counter(p.fingerprint for p in session) - Counter(p.fingerprint for p in stored)).values()
    )


def test_an_item_that_stands_where_it_stood_is_the_same() -> None:
    logged = [Logged(0, Position(5, "yes"))]
    assert compare(logged, [Position(5, "yes"), Position(9, "yes")]) == ([1], {})
    assert compare(logged, [Position(8, "yes"), Position(9, "yes")]) == ([1], {0: 8}), "it was written anew"
    assert compare(logged, [Position(5, "no")]) == ([0], {}), "another item has its position"


def test_the_earlier_event_is_the_earlier_item() -> None:
    logged = [
        Logged(0, Position(1, "yes")),
        Logged(1, Position(2, "yes")),
        Logged(2, Position(None, "no")),
    ]
    assert compare(logged, [Position(5, "yes"), Position(6, "yes")]) == ([], {0: 5, 1: 6})
    assert compare(logged, [Position(None, "yes"), Position(None, "no")]) == ([], {}), (
        "there are no positions"
    )
