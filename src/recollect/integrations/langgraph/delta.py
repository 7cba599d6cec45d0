"""The history of delta channels: their last snapshot, and the writes of the ancestors since then.

A `DeltaChannel` has no value in most checkpoints. LangGraph replays these writes on the snapshot.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite

from .known import Basis
from .loading import Loader
from .place import CheckpointPlace, key_of_version
from .reading import Found, Version, assemble, decode_writes, found_from
from .values import EMPTY, decode

_AT_ONCE = 100

# The ancestors of a checkpoint, the nearest first.
_ANCESTORS = (
    "WITH RECURSIVE line (checkpoint_id, depth) AS ("
    " SELECT parent_id, 1 FROM langgraph_checkpoints WHERE thread = ?1 AND checkpoint_id = ?2"
    " UNION ALL"
    " SELECT c.parent_id, line.depth + 1 FROM line JOIN langgraph_checkpoints c"
    " ON c.thread = ?1 AND c.checkpoint_id = line.checkpoint_id WHERE line.depth < ?3"
    ") SELECT t.id, t.generation, t.thread_id, t.checkpoint_ns, c.checkpoint_id, c.parent_id,"
    " c.kind, c.checkpoint, c.metadata_kind, c.metadata"
    " FROM line JOIN langgraph_checkpoints c ON c.thread = ?1 AND c.checkpoint_id = line.checkpoint_id"
    " JOIN langgraph_threads t ON t.id = c.thread ORDER BY line.depth"
)


class _Ancestor(NamedTuple):
    found: Found
    checkpoint: dict[str, Any]


async def read_history(
    loader: Loader, place: CheckpointPlace, channels: Sequence[str]
) -> Mapping[str, DeltaChannelHistory]:
    """The history of each channel. A checkpoint that does not exist has an empty one."""
    writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
    seeds: dict[str, Any] = {}
    missing = set(channels)
    at = await loader.find(place)
    while at is not None and missing:
        ancestors = await _read_ancestors(loader, at.basis, at.place.checkpoint_id or "")
        if not ancestors:
            break
        await _collect(loader, at.basis, ancestors, missing, writes, seeds)
        at = ancestors[-1].found
    return {channel: _history(writes[channel], seeds, channel) for channel in channels}


def _history(newest_first: list[PendingWrite], seeds: Mapping[str, Any], channel: str) -> DeltaChannelHistory:
    history = DeltaChannelHistory(writes=newest_first[::-1])
    if channel in seeds:
        history["seed"] = seeds[channel]
    return history


async def _read_ancestors(loader: Loader, basis: Basis, checkpoint_id: str) -> list[_Ancestor]:
    found = await loader.tables.fetch(_ANCESTORS, (basis.thread, checkpoint_id, _AT_ONCE), found_from)
    return [_Ancestor(each, decode(loader.serde, each.checkpoint)) for each in found]


async def _collect(
    loader: Loader,
    basis: Basis,
    ancestors: Sequence[_Ancestor],
    missing: set[str],
    writes: dict[str, list[PendingWrite]],
    seeds: dict[str, Any],
) -> None:
    """Add what some ancestors, the nearest first, have of the channels that have no snapshot yet."""
    versions = {each for ancestor in ancestors for each in _versions(ancestor, missing)}
    values = await loader.read_values(basis.thread, versions)
    ids = [ancestor.found.place.checkpoint_id or "" for ancestor in ancestors]
    stored = await loader.read_writes(basis.thread, ids)
    for ancestor in ancestors:
        pending = stored.by_checkpoint.get(ancestor.found.place.checkpoint_id or "", ())
        relevant = [write for write in pending if write.channel in missing]
        for write in reversed(decode_writes(loader.serde, relevant)):
            writes[write[1]].append(write)
        seeded = {
            version
            for version in _versions(ancestor, missing)
            if version in values and values[version].kind != EMPTY
        }
        if seeded:
            seeds |= await _read_seeds(loader, ancestor, seeded)
            missing -= {channel for channel, _ in seeded}


def _versions(ancestor: _Ancestor, channels: set[str]) -> list[Version]:
    versions = ancestor.checkpoint["channel_versions"]
    return [(name, key_of_version(versions[name])) for name in channels if name in versions]


async def _read_seeds(loader: Loader, ancestor: _Ancestor, seeded: set[Version]) -> dict[str, Any]:
    parts = await loader.read_parts(ancestor.found.basis.thread, [ancestor.found], seeded)
    made = assemble(loader.serde, ancestor.found, ancestor.checkpoint, None, parts)
    values: dict[str, Any] = made.checkpoint.checkpoint["channel_values"]
    return {channel: values[channel] for channel, _ in seeded}
