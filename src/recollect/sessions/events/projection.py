"""Which items of a session are new to a log: pure functions."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from ...items import Item, fingerprint


def project_new_session_items(before: Sequence[Item], after: Sequence[Item]) -> list[Item]:
    """The items of `after` that `before` has not, in their order.

    Items are told apart by fingerprint and counted: who said "yes" once before and has said it twice now has
    said it once more, and the later one is new. A session that was trimmed, summarized or written anew gives
    only what was really added.
    """
    known = Counter(map(fingerprint, before))
    new = []
    for item in after:
        print_ = fingerprint(item)
        if known[print_]:
            known[print_] -= 1
        else:
            new.append(item)
    return new


class Place(NamedTuple):
    """Where an item stands in a session, if that has positions, and which item it is."""

    position: int | None
    fingerprint: str


class Logged(NamedTuple):
    """A place that an event has in the log."""

    sequence_number: int
    place: Place


class Difference(NamedTuple):
    """What a session has that a log has not."""

    new: list[int]
    """The numbers of the items that are new."""
    moved: dict[int, int]
    """Events by their sequence numbers whose items now stand at other positions."""


def compare(logged: Sequence[Logged], places: Sequence[Place]) -> Difference:
    """Find each item among the events, one event for one item, and say which are new.

    An item that stands where it stood is the same. What has vanished from its position may stand at another,
    because the session was written anew: then the earlier event is the earlier item.
    """
    at_place = {event.place: event for event in logged if event.place.position is not None}
    found = {number: at_place.pop(place) for number, place in enumerate(places) if place in at_place}
    taken = {event.sequence_number for event in found.values()}
    vanished: defaultdict[str, deque[Logged]] = defaultdict(deque)
    for event in logged:
        if event.sequence_number not in taken:
            vanished[event.place.fingerprint].append(event)
    new: list[int] = []
    moved: dict[int, int] = {}
    for number, place in enumerate(places):
        if number in found:
            continue
        same = vanished[place.fingerprint]
        if not same:
            new.append(number)
        elif (event := same.popleft()) and place.position is not None:
            moved[event.sequence_number] = place.position
    return Difference(new, moved)
