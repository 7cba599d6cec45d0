"""Where the items of a new list may be stored already: in the lists of the checkpoint before it."""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from .known import Basis, Digest, KnownCheckpoints, KnownList, Reuse, reuse_known, reuse_stored, store_all
from .loading import Loader
from .place import CheckpointPlace
from .reading import versions_of
from .tables import CheckpointTables
from .values import Encoded, ItemList, decode, print_item, print_stored


class Source(NamedTuple):
    """The positions of stored items by their bytes, for each channel."""

    basis: Basis
    positions: Mapping[str, Mapping[Encoded, int]]


def find_known(known: Mapping[str, KnownList], digests: Mapping[str, Sequence[Digest]]) -> dict[str, Reuse]:
    """Find the items of lists by their digests."""
    return {
        channel: reuse_known(known[channel], each) if channel in known else store_all(each)
        for channel, each in digests.items()
    }


def find_stored(source: Source, lists: Mapping[str, ItemList], serde: SerializerProtocol) -> dict[str, Reuse]:
    """Find the items of lists by their bytes."""
    return {
        channel: reuse_stored(source.positions.get(channel, {}), [print_item(serde, item) for item in items])
        for channel, (_, items) in lists.items()
    }


async def read_stored(
    tables: CheckpointTables, serde: SerializerProtocol, place: CheckpointPlace, channels: Set[str]
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
