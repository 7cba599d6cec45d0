"""Which items of a session are new to a log.

Comparing is pure. `read_session` reads only the items after the last ones the log knows, as long as those are
still where they were.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from ...items import Item, fingerprint
from ..protocol import Positioned, Session, with_ability


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


_EVERYTHING = 2**31 - 1  # items: an explicit limit, so that neither settings nor a strategy hide any
_TAIL = 4


class Reading(NamedTuple):
    """Items of a session, each with its position if it has one."""

    items: list[Item]
    positions: list[int | None]
    is_whole: bool
    """Whether these are all items of the session, and not only those after the end that was known."""

    def places(self) -> list[Place]:
        """Where the items stand, and which they are."""
        pairs = zip(self.positions, self.items, strict=True)
        return [Place(position, fingerprint(item)) for position, item in pairs]


def tail_of(places: Sequence[Place]) -> tuple[Place, ...]:
    """The end of a session, by which it is known again; empty where there are no positions.

    It is a few items long: a session may begin again with the positions that another had.
    """
    return tuple(place for place in places[-_TAIL:] if place.position is not None)


async def read_session(session: Session, tail: Sequence[Place]) -> Reading:
    """What comes after this end of the session; all there is if the session does not have it any more."""
    positioned = with_ability(session, Positioned)
    if positioned is None:
        return await _read_plainly(session)
    if tail:
        known, rest = await _read_after(positioned, tail)
        if known.places() == list(tail):
            return rest
    everything, _ = await _read_after(positioned, ())
    return everything


async def _read_after(positioned: Positioned, tail: Sequence[Place]) -> tuple[Reading, Reading]:
    """The items where this end should stand, and what comes after it; without an end all, and nothing."""
    start = (tail[0].position or 1) - 1 if tail else 0
    rows = await positioned.read_after(start)
    items = [row.item for row in rows]
    positions: list[int | None] = [row.position for row in rows]
    length = len(tail) if tail else len(rows)
    return (
        Reading(items[:length], positions[:length], is_whole=not tail),
        Reading(items[length:], positions[length:], is_whole=False),
    )


async def _read_plainly(session: Session) -> Reading:
    items = await session.get_items(limit=_EVERYTHING)
    return Reading(items, [None] * len(items), is_whole=True)
