"""Reading what a session has to tell a log: what comes after its known end, as long as that stands."""

from collections.abc import Sequence
from typing import NamedTuple

from ...items import Item, fingerprint
from ..protocol import Positioned, Session, with_ability
from .projection import Place

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
