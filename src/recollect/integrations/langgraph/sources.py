"""Where the items of a new list may be stored already: in the lists of the checkpoint before it."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from .known import Basis, KnownCheckpoints, KnownList, Print, Reuse, reuse_known, reuse_stored, store_all
from .loading import Loader
from .place import Place
from .reading import versions_of
from .tables import CheckpointTables
from .values import Encoded, ItemList, decode, print_item, print_stored

_REBUILT = 3
"""If more items than these look new without being added, their objects were made anew: bytes can tell."""
_SHORT = 64  # items of a list whose bytes are compared as soon as one looks new


class Source(NamedTuple):
    """The positions of stored items by their bytes, for each channel."""

    basis: Basis
    positions: Mapping[str, Mapping[Encoded, int]]


def find_known(
    known: Mapping[str, KnownList],
    lists: Mapping[str, ItemList],
    print_: Print,
    returned: frozenset[int] | None,
) -> dict[str, Reuse] | None:
    """Find the items of lists by their identity. `None` if their objects were made anew."""
    found: dict[str, Reuse] = {}
    for channel, (_, items) in lists.items():
        before = known.get(channel)
        if before is None:
            found[channel] = store_all(items)
            continue
        found[channel] = reuse_known(before, items, print_, returned)
        added = max(0, len(items) - len(before.items))
        if found[channel].new_count - added > (_REBUILT if len(items) > _SHORT else 0):
            return None
    return found


def find_stored(source: Source, lists: Mapping[str, ItemList], serde: SerializerProtocol) -> dict[str, Reuse]:
    """Find the items of lists by their bytes."""
    return {
        channel: reuse_stored(source.positions.get(channel, {}), [print_item(serde, item) for item in items])
        for channel, (_, items) in lists.items()
    }


async def read_stored(
    tables: CheckpointTables, serde: SerializerProtocol, place: Place, channels: Set[str]
) -> Source | None:
    """Read the stored items of some lists of a checkpoint. `None` if the checkpoint does not exist."""
    loader = Loader(tables, serde, KnownCheckpoints())
    found = await loader.find(place)
    if found is None:
        return None
    versions = {each for each in versions_of(decode(serde, found.checkpoint)) if each[0] in channels}
    parts = await loader.read_parts(found.basis.thread, [found], versions)
    positions = {
        channel: {print_stored(serde, item): position for position, item in items.items()}
        for channel, items in parts.items.items()
    }
    return Source(found.basis, positions)
