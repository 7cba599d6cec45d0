"""How a checkpoint and its writes are stored: plans as values, and the scripts that carry them out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from ...errors import RecollectError
from ...sql.columns import text_to_column, time_to_column
from ...sql.description import Table
from ...sql.scripts import Script, Statement, run_all
from .known import Basis, Reuse, resolve
from .place import CheckpointPlace
from .ranges import Ranges, to_bytes
from .schema import CHECKPOINTS, ITEMS, VALUES, WRITES
from .values import Encoded

_VALUES_AT_ONCE = 900

_TOUCH = (
    "INSERT INTO langgraph_threads (thread_id, checkpoint_ns, user_id, generation, created_at, updated_at)"
    " VALUES (?1, ?2, ?3, 0, ?4, ?4) ON CONFLICT (thread_id, checkpoint_ns) DO UPDATE"
    " SET updated_at = excluded.updated_at,"
    " user_id = coalesce(excluded.user_id, langgraph_threads.user_id) RETURNING id, generation"
)
_END = "(SELECT coalesce(max(position) + 1, 0) FROM langgraph_items WHERE thread = ?1 AND channel = ?{})"
_FIND = "SELECT id FROM langgraph_threads WHERE thread_id = ?1 AND checkpoint_ns = ?2"


class PositionsLostError(RecollectError):
    """Items were removed since their positions were read. Nothing was written; the plan is made again."""


class NewList(NamedTuple):
    """A list to store: where its items are already, and the new ones."""

    channel: str
    version: str
    kind: str
    reuse: Reuse
    new: Sequence[Encoded]


class NewValue(NamedTuple):
    """Any other value to store."""

    channel: str
    version: str
    value: Encoded


@dataclass(frozen=True)
class NewCheckpoint:
    """A checkpoint to store, with the values that are new in it."""

    place: CheckpointPlace
    parent_id: str | None
    user_id: str | None
    run_id: str | None
    checkpoint: Encoded
    metadata: Encoded
    values: Sequence[NewValue]
    lists: Sequence[NewList]
    basis: Basis | None
    """The state of the thread that the reused positions belong to; `None` if there are none."""


class Stored(NamedTuple):
    """Where the lists of a checkpoint were stored."""

    basis: Basis
    ranges: Mapping[str, Ranges]
    ends: Mapping[str, int]
    """Where the logs of channels end, as far as that was read or written."""


class PlacedRows(NamedTuple):
    """The rows of the lists and values of a checkpoint."""

    items: Sequence[tuple[Any, ...]]
    values: Sequence[tuple[Any, ...]]
    ranges: Mapping[str, Ranges]
    ends: Mapping[str, int]


def put_checkpoint(new: NewCheckpoint) -> Script[Stored]:
    """Store a checkpoint. Touching the row of the thread first locks the thread for other writers."""
    growing = [each.channel for each in new.lists if each.new]
    basis = yield from touch(new.place, new.user_id)
    if new.basis is not None and new.basis != basis:
        raise PositionsLostError("items of the thread were removed meanwhile")
    rows = place_lists(new, basis.thread, (yield from _read_ends(basis.thread, growing)))
    yield from run_all(_insert(ITEMS, rows.items, ""))
    yield from run_all(_upsert(VALUES, rows.values))
    yield from run_all(_upsert(CHECKPOINTS, [checkpoint_row(new, basis.thread)]))
    return Stored(basis, rows.ranges, rows.ends)


def place_lists(new: NewCheckpoint, thread: int, ends: Mapping[str, int]) -> PlacedRows:
    """The rows to store, if the logs of channels end there."""
    items: list[tuple[Any, ...]] = []
    values = [(each.channel, each.version, each.value) for each in new.values]
    ranges: dict[str, Ranges] = {}
    after = dict(ends)
    for each in new.lists:
        start = ends.get(each.channel, 0)
        ranges[each.channel] = resolve(each.reuse, start)
        items += _item_rows(thread, each, start)
        if each.new:
            after[each.channel] = start + len(each.new)
        values.append((each.channel, each.version, Encoded(each.kind, to_bytes(ranges[each.channel]))))
    columns = [(thread, *_texts(channel, version), *value) for channel, version, value in values]
    return PlacedRows(items, columns, ranges, after)


def touch(place: CheckpointPlace, user_id: str | None = None) -> Script[Basis]:
    """Find or create the row of a thread, and lock it."""
    now = time_to_column(datetime.now(UTC))
    rows = yield Statement(_TOUCH, (place.thread_id, place.namespace, user_id, now))
    return Basis(*rows[0])


def _read_ends(thread: int, channels: Sequence[str]) -> Script[dict[str, int]]:
    """Where the logs of some channels end.

    A statement of its own: PostgreSQL shows to a statement that waits for a lock what was there before.
    """
    if not channels:
        return {}
    rows = yield Statement(_ends_sql(len(channels)), (thread, *_texts(*channels)))
    return dict(zip(channels, rows[0], strict=True))


@lru_cache(maxsize=64)
def _ends_sql(count: int) -> str:
    return f"SELECT {', '.join(_END.format(number + 2) for number in range(count))}"


def _item_rows(thread: int, new: NewList, start: int) -> list[tuple[Any, ...]]:
    channel = text_to_column(new.channel)
    return [(thread, channel, position, *item) for position, item in enumerate(new.new, start)]


def checkpoint_row(new: NewCheckpoint, thread: int) -> tuple[Any, ...]:
    """The row of a checkpoint."""
    return (thread, new.place.checkpoint_id, new.parent_id, new.run_id, *new.checkpoint, *new.metadata)


class NewWrite(NamedTuple):
    """A pending write to store. A negative number marks a special channel, whose newest write counts."""

    task_id: str
    number: int
    task_path: str
    channel: str
    value: Encoded


def put_writes(place: CheckpointPlace, writes: Sequence[NewWrite]) -> Script[None]:
    """Store pending writes. A write that was stored before stays, except on special channels."""
    found = yield Statement(_FIND, place[:2])
    thread = found[0][0] if found else (yield from touch(place)).thread
    yield from run_all(_write_statements(thread, place, writes))


def put_writes_of(thread: int, place: CheckpointPlace, writes: Sequence[NewWrite]) -> Script[None]:
    """Store pending writes in a thread whose row is known. The database refuses them if it was deleted."""
    statements = list(_write_statements(thread, place, writes))
    if len(statements) == 1:
        yield statements[0]._replace(alone=True)
    else:
        yield from run_all(statements)


def _write_statements(thread: int, place: CheckpointPlace, writes: Sequence[NewWrite]) -> Iterator[Statement]:
    rows = {
        write.number: (
            *(thread, place.checkpoint_id, write.task_id, write.number),
            *_texts(write.task_path, write.channel),
            *write.value,
        )
        for write in writes
    }
    plain = [row for number, row in rows.items() if number >= 0]
    yield from _insert(WRITES, plain, " ON CONFLICT DO NOTHING")
    yield from _upsert(WRITES, [row for number, row in rows.items() if number < 0])


# --- statements ---


def _texts(*texts: str) -> tuple[str, ...]:
    return tuple(text_to_column(text) for text in texts)


def _upsert(table: Table, rows: Sequence[tuple[Any, ...]]) -> Iterator[Statement]:
    others = [name for name in table.column_names if name not in table.key]
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    yield from _insert(table, rows, f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}")


def _insert(table: Table, rows: Sequence[tuple[Any, ...]], ending: str) -> Iterator[Statement]:
    """Statements that insert rows with all columns, many per statement."""
    width = len(table.columns)
    at_once = _VALUES_AT_ONCE // width
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        yield Statement(_insert_sql(table, len(some), ending), [value for row in some for value in row])


@lru_cache(maxsize=512)
def _insert_sql(table: Table, count: int, ending: str) -> str:
    width = len(table.columns)
    numbers = (range(1 + row * width, 1 + (row + 1) * width) for row in range(count))
    values = ", ".join(f"({', '.join(f'?{number}' for number in row)})" for row in numbers)
    return f"INSERT INTO {table.name} ({', '.join(table.column_names)}) VALUES {values}{ending}"
