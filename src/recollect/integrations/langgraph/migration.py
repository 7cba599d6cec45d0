"""Copies threads from other savers of LangGraph. A copy can be repeated and goes on.

Only methods of LangGraph's base class are used, so the source may be any saver with asynchronous methods,
such as `AsyncSqliteSaver` and `AsyncPostgresSaver`.
"""

from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from ...errors import ConflictError
from .checkpointer import Checkpointer
from .place import CheckpointPlace, place_of


class CopyReport(NamedTuple):
    """What a copy found in the source, and how much of it the target did not have yet."""

    found: int
    copied: int


async def copy_threads(
    source: BaseCheckpointSaver[Any], target: Checkpointer, thread_ids: Collection[str] | None = None
) -> CopyReport:
    """Copy the checkpoints of threads, or of all threads, with their pending writes.

    Checkpoints that the target has already are skipped. Each checkpoint is read back and compared. Raises
    `ConflictError` if one differs from the source.
    """
    copied, places = 0, await _find_places(source, thread_ids)
    versions: dict[CheckpointPlace, Mapping[str, Any]] = {}
    for place in places:
        found = await source.aget_tuple(place.config())
        if found is None:  # deleted meanwhile
            continue
        versions[place] = found.checkpoint["channel_versions"]
        parent = place_of(found.parent_config) if found.parent_config else None
        copied += await _copy(target, place, found, versions.get(parent, {}) if parent else {})
    return CopyReport(len(places), copied)


async def _find_places(
    source: BaseCheckpointSaver[Any], thread_ids: Collection[str] | None
) -> list[CheckpointPlace]:
    """All checkpoints, each after its parent: ids ascend with time."""
    wanted: list[RunnableConfig | None] = [None]
    if thread_ids is not None:
        wanted = [{"configurable": {"thread_id": thread_id}} for thread_id in thread_ids]
    places = [place_of(found.config) for config in wanted async for found in source.alist(config)]
    return sorted(places, key=lambda place: (place.thread_id, place.namespace, place.checkpoint_id or ""))


async def _copy(
    target: Checkpointer, place: CheckpointPlace, found: CheckpointTuple, before: Mapping[str, Any]
) -> bool:
    """Copy a checkpoint, unless it is there. Its values are new if their versions are not the parent's."""
    is_new = await target.aget_tuple(place.config()) is None
    if is_new:
        versions = found.checkpoint["channel_versions"]
        new = {name: version for name, version in versions.items() if before.get(name) != version}
        parent_id = place_of(found.parent_config).checkpoint_id if found.parent_config else None
        await target.aput(
            place._replace(checkpoint_id=parent_id).config(), found.checkpoint, found.metadata, new
        )
    await _copy_writes(target, place, found)
    _check(place, found, await target.aget_tuple(place.config()))
    return is_new


async def _copy_writes(target: Checkpointer, place: CheckpointPlace, found: CheckpointTuple) -> None:
    """Copy pending writes. Their order is kept by numbers in place of the paths of tasks."""
    by_task = groupby(found.pending_writes or (), key=lambda write: write[0])
    for number, (task_id, writes) in enumerate(by_task):
        values = [(channel, value) for _, channel, value in writes]
        await target.aput_writes(place.config(), values, task_id, f"{number:08}")


def _check(place: CheckpointPlace, found: CheckpointTuple, copied: CheckpointTuple | None) -> None:
    same = copied is not None and (
        _has_values(found.checkpoint["channel_values"], copied.checkpoint["channel_values"])
        and copied.checkpoint["channel_versions"] == found.checkpoint["channel_versions"]
        and copied.checkpoint["versions_seen"] == found.checkpoint["versions_seen"]
        and dict(copied.metadata) == dict(found.metadata)
        and (copied.pending_writes or []) == (found.pending_writes or [])
        and bool(copied.parent_config) == bool(found.parent_config)
    )
    if not same:
        raise ConflictError(
            f"checkpoint {place.checkpoint_id!r} of thread {place.thread_id!r} differs in the target:"
            " delete that thread in the target, and copy it again"
        )


def _has_values(found: Mapping[str, Any], copied: Mapping[str, Any]) -> bool:
    """Whether the values are the same. A copy may also have the snapshot that its parent has."""
    extra = [value for name, value in copied.items() if name not in found]
    return all(isinstance(value, _DeltaSnapshot) for value in extra) and all(
        name in copied and copied[name] == value for name, value in found.items()
    )
