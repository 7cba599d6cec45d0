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
    """Return the items of `after` that are not in `before`, in order.

    Items are compared by fingerprint and counted: if "yes" occurs once before and twice after, the later one
    is new. For a session that was trimmed, summarized or rewritten, only items that were really added are
    returned.
    """
    known = Counter(map(fingerprint, before))
    new = []
    for item in after:
        found = fingerprint(item)
        if known[found]:
            known[found] -= 1
        else:
            new.append(item)
    return new


class ItemPosition(NamedTuple):
    """The position of an item in a session, if the session has positions, and its fingerprint."""

    position: int | None
    fingerprint: str


class Logged(NamedTuple):
    """The place of an event that is in the log."""

    sequence_number: int
    place: ItemPosition


class Difference(NamedTuple):
    """The difference between a session and the log."""

    new: list[int]
    """The indexes of the new items."""
    moved: dict[int, int]
    """The new positions of items that moved, by the sequence number of their event."""


def compare(logged: Sequence[Logged], places: Sequence[ItemPosition]) -> Difference:
    """Match each item with one event, and return the new and the moved items.

    An item with the same position and fingerprint is the same. An item that is no longer at its position may
    be at another one, because the session was rewritten. Equal items are then matched in order.
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


_EVERYTHING = 2**31 - 1  # items: an explicit limit, so that no settings or strategy hide items
_TAIL = 4


class Reading(NamedTuple):
    """Items of a session with their positions, if they have any."""

    items: list[Item]
    positions: list[int | None]
    is_whole: bool
    """Whether these are all items of the session, and not only those after the known tail."""

    def places(self) -> list[ItemPosition]:
        """Return the places of the items."""
        pairs = zip(self.positions, self.items, strict=True)
        return [ItemPosition(position, fingerprint(item)) for position, item in pairs]


def tail_of(places: Sequence[ItemPosition]) -> tuple[ItemPosition, ...]:
    """Return the last places of a session, which identify it later; empty if it has no positions.

    These are several items, because a cleared session may reuse positions.
    """
    return tuple(place for place in places[-_TAIL:] if place.position is not None)


async def read_session(session: Session, tail: Sequence[ItemPosition]) -> Reading:
    """Read the items after this tail, or all items if the session no longer has the tail."""
    positioned = with_ability(session, Positioned)
    if positioned is None:
        return await _read_plainly(session)
    if tail:
        known, rest = await _read_after(positioned, tail)
        if known.places() == list(tail):
            return rest
    everything, _ = await _read_after(positioned, ())
    return everything


async def _read_after(positioned: Positioned, tail: Sequence[ItemPosition]) -> tuple[Reading, Reading]:
    """Read the items at the places of the tail, and the items after it.

    Without a tail, all items and none.
    """
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
