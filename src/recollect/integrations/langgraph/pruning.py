"""Scripts that remove and copy checkpoints. Values and items stay as long as a checkpoint needs them.

A `DeltaChannel` has no value in most checkpoints: LangGraph replays the writes of the ancestors, from the
last snapshot on. Those ancestors are needed too, and stay.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.checkpoint.serde.base import SerializerProtocol

from ...errors import ConflictError, InvalidValueError
from ...sql.columns import text_from_column, text_to_column
from ...sql.description import Table
from ...sql.scripts import Script, Statement
from . import ranges as ranges_
from .place import CheckpointPlace
from .ranges import Ranges, from_bytes
from .reading import Version, versions_of
from .schema import CHECKPOINTS, ITEMS, VALUES, WRITES
from .values import EMPTY, LIST, SNAPSHOT, Encoded, decode
from .writing import touch

_IDS_AT_ONCE = 500

_DELETE_THREAD = "DELETE FROM langgraph_threads WHERE thread_id = ?1"
_DELETE_ROW = "DELETE FROM langgraph_threads WHERE id = ?1"
# A new generation tells other processes that positions they know may be gone. It also locks the thread.
_BEGIN = "UPDATE langgraph_threads SET generation = generation + 1 WHERE thread_id = ?1 RETURNING id"
_BEGIN_ROW = "UPDATE langgraph_threads SET generation = generation + 1 WHERE id = ?1 RETURNING id"
_LOCK = (
    "UPDATE langgraph_threads SET generation = generation WHERE thread_id = ?1"
    " RETURNING id, checkpoint_ns, user_id"
)
_EXISTS = "SELECT 1 FROM langgraph_threads WHERE thread_id = ?1 LIMIT 1"
_READ = (
    "SELECT checkpoint_id, parent_id, kind, checkpoint, metadata_kind, metadata FROM langgraph_checkpoints"
)
_READ_ALL = f"{_READ} WHERE thread = ?1"
_READ_NEWEST = f"{_READ} WHERE thread = ?1 ORDER BY checkpoint_id DESC LIMIT 1"
_READ_ONE = f"{_READ} WHERE thread = ?1 AND checkpoint_id = ?2"
_IDS = "SELECT checkpoint_id FROM {} WHERE thread = ?1"
_VALUES = (
    f"SELECT channel, version, kind, CASE WHEN kind IN ('{LIST}', '{SNAPSHOT}') THEN value END"
    " FROM langgraph_values WHERE thread = ?1"
)
_DELETE_VALUE = "DELETE FROM langgraph_values WHERE thread = ?1 AND channel = ?2 AND version = ?3"
_DELETE_ITEMS = (
    "DELETE FROM langgraph_items WHERE thread = ?1 AND channel = ?2 AND position >= ?3 AND position < ?4"
)
_CHANNELS = "SELECT DISTINCT channel FROM langgraph_items WHERE thread = ?1"
_END = 2**62


class _Row(NamedTuple):
    """A checkpoint, decoded as far as needed."""

    checkpoint_id: str
    parent_id: str | None
    versions: set[Version]
    delta_channels: set[str]
    """Channels whose value is replayed from the writes of ancestors."""


class _Value(NamedTuple):
    kind: str
    ranges: Ranges


def delete_threads(thread_ids: Sequence[str]) -> Script[None]:
    """Delete threads with all that belongs to them."""
    for thread_id in thread_ids:
        yield Statement(_DELETE_THREAD, (thread_id,))


def keep_newest(serde: SerializerProtocol, thread_id: str) -> Script[None]:
    """Keep the newest checkpoint of each namespace, and what it needs."""
    threads = yield Statement(_BEGIN, (thread_id,))
    for (thread,) in sorted(threads):
        newest = yield Statement(_READ_NEWEST, (thread,))
        if newest:
            values = yield from _read_values(thread)
            row = _row_from(serde, newest[0])
            ancestors = yield from _read_ancestors(serde, thread, row, values)
            yield from _keep(thread, [row, *ancestors], values)


def delete_runs(serde: SerializerProtocol, run_ids: Sequence[str]) -> Script[None]:
    """Delete the checkpoints of runs, except those that the rest needs."""
    doomed: defaultdict[int, set[str]] = defaultdict(set)
    for start in range(0, len(run_ids), _IDS_AT_ONCE):
        some = run_ids[start : start + _IDS_AT_ONCE]
        numbers = ", ".join(f"?{number + 1}" for number in range(len(some)))
        found = yield Statement(
            f"SELECT thread, checkpoint_id FROM langgraph_checkpoints WHERE run_id IN ({numbers})", some
        )
        for thread, checkpoint_id in found:
            doomed[thread].add(checkpoint_id)
    for thread in sorted(doomed):
        yield Statement(_BEGIN_ROW, (thread,))
        yield from _delete_from(serde, thread, doomed[thread])


def _delete_from(serde: SerializerProtocol, thread: int, doomed: set[str]) -> Script[None]:
    found = yield Statement(_READ_ALL, (thread,))
    rows = {row.checkpoint_id: row for row in (_row_from(serde, each) for each in found)}
    kept = {name: row for name, row in rows.items() if name not in doomed}
    if not kept:
        yield Statement(_DELETE_ROW, (thread,))
        return
    values = yield from _read_values(thread)
    needed = {name for row in kept.values() for name in _needed_ancestors(row, rows, values)}
    yield from _keep(thread, [*kept.values(), *(rows[name] for name in needed - set(kept))], values)


def _needed_ancestors(row: _Row, rows: Mapping[str, _Row], values: Mapping[Version, _Value]) -> Iterable[str]:
    missing, at = set(row.delta_channels), row.parent_id
    while missing and at is not None and at in rows:
        yield at
        missing -= _channels_with_value(rows[at], values)
        at = rows[at].parent_id


def _read_ancestors(
    serde: SerializerProtocol, thread: int, row: _Row, values: Mapping[Version, _Value]
) -> Script[list[_Row]]:
    """The ancestors whose writes are replayed to get the values of delta channels."""
    missing, at, ancestors = set(row.delta_channels), row.parent_id, list[_Row]()
    while missing and at is not None:
        found = yield Statement(_READ_ONE, (thread, at))
        if not found:
            break
        ancestors.append(_row_from(serde, found[0]))
        missing -= _channels_with_value(ancestors[-1], values)
        at = ancestors[-1].parent_id
    return ancestors


def _channels_with_value(row: _Row, values: Mapping[Version, _Value]) -> set[str]:
    return {version[0] for version in row.versions if version in values and values[version].kind != EMPTY}


def _row_from(serde: SerializerProtocol, row: tuple[Any, ...]) -> _Row:
    checkpoint = decode(serde, Encoded(*row[2:4]))
    metadata = decode(serde, Encoded(*row[4:6])) or {}
    counters = metadata.get("counters_since_delta_snapshot") or {}
    return _Row(row[0], row[1], versions_of(checkpoint), set(counters))


def _read_values(thread: int) -> Script[dict[Version, _Value]]:
    rows = yield Statement(_VALUES, (thread,))
    return {
        (text_from_column(channel), text_from_column(version)): _Value(
            kind, () if value is None else from_bytes(value)
        )
        for channel, version, kind, value in rows
    }


def _keep(thread: int, rows: Sequence[_Row], values: Mapping[Version, _Value]) -> Script[None]:
    """Delete all checkpoints but these, and all that none of these needs."""
    kept = {row.checkpoint_id for row in rows}
    for table in (CHECKPOINTS, WRITES):
        yield from _delete_others(thread, table, kept)
    needed = set().union(*(row.versions for row in rows))
    for channel, version in values.keys() - needed:
        yield Statement(_DELETE_VALUE, (thread, text_to_column(channel), text_to_column(version)))
    used: defaultdict[str, list[Ranges]] = defaultdict(list)
    for each in values.keys() & needed:
        used[each[0]].append(values[each].ranges)
    channels = yield Statement(_CHANNELS, (thread,))
    for (stored,) in channels:
        yield from _delete_items(thread, stored, ranges_.union(used[text_from_column(stored)]))


def _delete_others(thread: int, table: Table, kept: set[str]) -> Script[None]:
    found = yield Statement(_IDS.format(table.name), (thread,))
    others = sorted({checkpoint_id for (checkpoint_id,) in found} - kept)
    for start in range(0, len(others), _IDS_AT_ONCE):
        some = others[start : start + _IDS_AT_ONCE]
        numbers = ", ".join(f"?{number + 2}" for number in range(len(some)))
        sql = f"DELETE FROM {table.name} WHERE thread = ?1 AND checkpoint_id IN ({numbers})"
        yield Statement(sql, [thread, *some])


def _delete_items(thread: int, channel: str, used: Ranges) -> Script[None]:
    after = used[-1].end if used else 0
    for start, end in [*ranges_.gaps(used), (after, _END)]:
        yield Statement(_DELETE_ITEMS, (thread, channel, start, end))


# --- copies ---


def copy_thread(source_id: str, target_id: str) -> Script[None]:
    """Copy all checkpoints of a thread, with their values, items and writes, to a thread that is new."""
    sources = yield Statement(_LOCK, (source_id,))
    if not sources:
        raise InvalidValueError(f"thread {source_id!r} has no checkpoints to copy")
    existing = yield Statement(_EXISTS, (target_id,))
    if existing:
        raise ConflictError(f"thread {target_id!r} exists already: copy to a new id, or delete it first")
    for thread, namespace, user_id in sorted(sources, key=lambda row: row[0]):
        basis = yield from touch(CheckpointPlace(target_id, namespace), user_id)
        for table in (CHECKPOINTS, VALUES, ITEMS, WRITES):
            columns = ", ".join(table.column_names[1:])
            yield Statement(
                f"INSERT INTO {table.name} (thread, {columns})"
                f" SELECT CAST(?1 AS BIGINT), {columns} FROM {table.name} WHERE thread = ?2",
                (basis.thread, thread),
            )
