"""How checkpoints are read: the queries, and the values that are made of their rows.

A checkpoint is read by several queries. The last one reads the generation of the thread again: if it is
another one, rows were removed meanwhile, and the caller reads again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple, PendingWrite, writes_sort_key
from langgraph.checkpoint.serde.base import SerializerProtocol

from ...errors import StorageError
from ...sql.columns import text_from_column, text_to_column
from ...sql.scripts import Row
from . import ranges as ranges_
from .known import Basis
from .place import CheckpointPlace, key_of_version
from .ranges import Ranges, from_bytes
from .values import EMPTY, LIST, SNAPSHOT, Encoded, decode, decode_items, from_item_list

Version: TypeAlias = tuple[str, str]
"""A channel, and a version of it as a key."""

_PAIRS_AT_ONCE = 300
_RANGES_AT_ONCE = 100

_FIND = (
    "SELECT t.id, t.generation, t.thread_id, t.checkpoint_ns, c.checkpoint_id, c.parent_id,"
    " c.kind, c.checkpoint, c.metadata_kind, c.metadata"
    " FROM langgraph_threads t JOIN langgraph_checkpoints c ON c.thread = t.id"
)
FIND_NEWEST = f"{_FIND} WHERE t.thread_id = ?1 AND t.checkpoint_ns = ?2 ORDER BY c.checkpoint_id DESC LIMIT 1"
FIND_ONE = f"{_FIND} WHERE t.thread_id = ?1 AND t.checkpoint_ns = ?2 AND c.checkpoint_id = ?3"


class Found(NamedTuple):
    """The row of a checkpoint, with the parts that say what else belongs to it."""

    basis: Basis
    place: CheckpointPlace
    parent_id: str | None
    checkpoint: Encoded
    metadata: Encoded


def found_from(rows: list[Row]) -> list[Found]:
    """Convert the rows of a query for checkpoints."""
    return [
        Found(Basis(*row[:2]), CheckpointPlace(*row[2:5]), row[5], Encoded(*row[6:8]), Encoded(*row[8:10]))
        for row in rows
    ]


@dataclass(frozen=True)
class Search:
    """Which checkpoints to list, the newest first."""

    thread_id: str | None = None
    namespace: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    after_row: tuple[str, int] | None = None
    """The id and the thread of the last checkpoint of the page before."""

    def query(self, limit: int) -> tuple[str, list[Any]]:
        """The query of one page, and its parameters."""
        parameters: list[Any] = []
        conditions = []
        for condition, value in (
            ("t.thread_id = {}", self.thread_id),
            ("t.checkpoint_ns = {}", self.namespace),
            ("c.checkpoint_id = {}", self.checkpoint_id),
            ("c.checkpoint_id < {}", self.before),
        ):
            if value is not None:
                parameters.append(value)
                conditions.append(condition.format(f"?{len(parameters)}"))
        if self.after_row is not None:
            parameters += self.after_row
            count = len(parameters)
            conditions.append(f"(c.checkpoint_id, c.thread) < (?{count - 1}, ?{count})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        parameters.append(limit)
        order = f" ORDER BY c.checkpoint_id DESC, c.thread DESC LIMIT ?{len(parameters)}"
        return f"{_FIND}{where}{order}", parameters


# --- values, items and writes of a thread ---


@lru_cache(maxsize=64)
def values_query(count: int) -> str:
    """The query for some versions of channels of a thread."""
    pairs = ", ".join(f"(?{2 * number + 2}, ?{2 * number + 3})" for number in range(count))
    return (
        "SELECT channel, version, kind, value FROM langgraph_values"
        f" WHERE thread = ?1 AND (channel, version) IN (VALUES {pairs})"
    )


def value_parameters(thread: int, versions: Iterable[Version]) -> Iterable[list[Any]]:
    """The parameters of `values_query`, in portions."""
    listed = sorted(versions)
    for start in range(0, len(listed), _PAIRS_AT_ONCE):
        some = listed[start : start + _PAIRS_AT_ONCE]
        yield [thread, *(text_to_column(text) for pair in some for text in pair)]


def values_from(rows: list[Row]) -> dict[Version, Encoded]:
    """Convert the rows of values."""
    return {
        (text_from_column(channel), text_from_column(version)): Encoded(kind, value)
        for channel, version, kind, value in rows
    }


@lru_cache(maxsize=64)
def items_query(count: int) -> str:
    """The query for the items of some ranges of positions of a channel."""
    return " UNION ALL ".join(
        "SELECT position, kind, value FROM langgraph_items WHERE thread = ?1 AND channel = ?2"
        f" AND position >= ?{2 * number + 3} AND position < ?{2 * number + 4}"
        for number in range(count)
    )


def item_parameters(thread: int, channel: str, wanted: Ranges) -> Iterable[list[Any]]:
    """The parameters of `items_query`, in portions."""
    for start in range(0, len(wanted), _RANGES_AT_ONCE):
        some = wanted[start : start + _RANGES_AT_ONCE]
        yield [thread, text_to_column(channel), *(number for each in some for number in each)]


def items_from(rows: list[Row]) -> dict[int, Encoded]:
    """Convert the rows of items."""
    return {position: Encoded(kind, value) for position, kind, value in rows}


@lru_cache(maxsize=64)
def writes_query(count: int) -> str:
    """The query for the generation of a thread and the writes of some checkpoints."""
    ids = ", ".join(f"?{number + 2}" for number in range(count))
    return (
        "SELECT t.generation, w.checkpoint_id, w.task_id, w.number, w.task_path, w.channel, w.kind, w.value"
        " FROM langgraph_threads t LEFT JOIN langgraph_writes w"
        f" ON w.thread = t.id AND w.checkpoint_id IN ({ids}) WHERE t.id = ?1"
    )


class StoredWrite(NamedTuple):
    """A pending write as it is stored."""

    task_id: str
    number: int
    task_path: str
    channel: str
    value: Encoded


class StoredWrites(NamedTuple):
    """The writes of some checkpoints, and the generation of their thread; `None` if it was deleted."""

    generation: int | None
    by_checkpoint: Mapping[str, Sequence[StoredWrite]]


def writes_from(rows: list[Row]) -> StoredWrites:
    """Convert the rows of writes. Those of a checkpoint are in the order in which a graph applies them."""
    found: defaultdict[str, list[StoredWrite]] = defaultdict(list)
    for _, checkpoint_id, task_id, number, path, channel, kind, value in rows:
        if checkpoint_id is not None:
            texts = (text_from_column(path), text_from_column(channel))
            found[checkpoint_id].append(StoredWrite(task_id, number, *texts, Encoded(kind, value)))
    for writes in found.values():
        writes.sort(key=lambda write: writes_sort_key(write.task_path, write.task_id, write.number))
    return StoredWrites(rows[0][0] if rows else None, found)


# --- what a checkpoint is made of ---


@dataclass(frozen=True)
class Parts:
    """All that some checkpoints of one thread and namespace are made of."""

    values: Mapping[Version, Encoded]
    items: Mapping[str, Mapping[int, Encoded]]
    writes: StoredWrites


class Lists(NamedTuple):
    """A checkpoint, and where the items of its lists are."""

    checkpoint: CheckpointTuple
    ranges: Mapping[str, Ranges]


def versions_of(checkpoint: Mapping[str, Any]) -> set[Version]:
    """The versions of channels that a checkpoint has."""
    return {(channel, key_of_version(version)) for channel, version in checkpoint["channel_versions"].items()}


def wanted_ranges(values: Mapping[Version, Encoded]) -> dict[str, Ranges]:
    """The positions of all items of these values, by channel."""
    wanted: defaultdict[str, list[Ranges]] = defaultdict(list)
    for (channel, _), stored in values.items():
        if stored.kind in (LIST, SNAPSHOT):
            wanted[channel].append(from_bytes(stored.data))
    return {channel: ranges_.union(many) for channel, many in wanted.items()}


def assemble(
    serde: SerializerProtocol, found: Found, checkpoint: dict[str, Any], metadata: Any, parts: Parts
) -> Lists:
    """The checkpoint that LangGraph sees. Raises what the serializer raises."""
    values: dict[str, Any] = {}
    at: dict[str, Ranges] = {}
    for channel, version in sorted(versions_of(checkpoint)):
        stored = parts.values.get((channel, version))
        if stored is None or stored.kind == EMPTY:
            continue
        if stored.kind in (LIST, SNAPSHOT):
            at[channel] = from_bytes(stored.data)
            items = decode_items(serde, _items_at(parts, channel, at[channel]))
            values[channel] = from_item_list(stored.kind, items)
        else:
            values[channel] = decode(serde, stored)
    writes = parts.writes.by_checkpoint.get(found.place.checkpoint_id or "", ())
    made = CheckpointTuple(
        config=found.place.config(),
        checkpoint={**checkpoint, "channel_values": values},  # type: ignore[typeddict-item]
        metadata=metadata,
        parent_config=found.place.config(found.parent_id) if found.parent_id else None,
        pending_writes=decode_writes(serde, writes),
    )
    return Lists(made, at)


def _items_at(parts: Parts, channel: str, ranges: Ranges) -> list[Encoded]:
    stored = parts.items.get(channel, {})
    try:
        return [stored[position] for position in ranges_.positions(ranges)]
    except KeyError as error:
        raise StorageError(f"an item of channel {channel!r} is missing: the database is damaged") from error


def decode_writes(serde: SerializerProtocol, writes: Iterable[StoredWrite]) -> list[PendingWrite]:
    """Pending writes as LangGraph sees them."""
    return [(write.task_id, write.channel, decode(serde, write.value)) for write in writes]
