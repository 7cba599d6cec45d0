"""Finding corrupt rows of long-term memory, and repairing them."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import IO, Any, Literal

from ..sql.scripts import LongQuery, Row, Script, Statement
from .database.access import MemoryDatabase, column_now
from .database.corrupt import row_id_of
from .database.damage import CHECKED, NOW, VECTOR, Checked, Damage
from .database.schema import CONTENTS, MEMORIES, MESSAGES, TERMS
from .times import tell_time

Outcome = Literal["mended", "removed", "left"]

_AT_ONCE = 500  # rows of a page
_STAMPS = {CONTENTS.name: "entries_stamp", MESSAGES.name: "turns_stamp"}


@dataclass(frozen=True)
class CorruptRow:
    """A corrupt row: its table, its key as one text, which columns cannot be read, and what becomes of it."""

    table: str
    row_id: str
    columns: tuple[str, ...]
    outcome: Outcome
    """`mended`: its corrupt columns get neutral values. `removed`: it is taken out. `left`: nothing."""

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON tells it, without contents."""
        return {**vars(self), "columns": list(self.columns)}


async def find_corrupt_rows(database: MemoryDatabase) -> AsyncIterator[CorruptRow]:
    """All corrupt rows of all tenants, page by page; nothing is changed."""
    async for damage in _find(database):
        yield _told(damage)


async def repair_rows(database: MemoryDatabase, saved: IO[str]) -> AsyncIterator[CorruptRow]:
    """Repair all corrupt rows; each is written to `saved` as a line of JSON before it is changed."""
    async for damage in _find(database):
        if _outcome(damage) != "left":
            row = await _whole_row(database, damage)
            if row is None:  # somebody has deleted it since
                continue
            saved.write(json.dumps({"table": damage.checked.table.name, "row": row}) + "\n")
            saved.flush()
            await database.write(partial(_repair, damage, column_now()))
        yield _told(damage)


async def _find(database: MemoryDatabase) -> AsyncIterator[Damage]:
    for checked in CHECKED:
        edge: tuple[Any, ...] | None = ()
        while edge is not None:
            sql = LongQuery(checked.select(database.dialect, has_edge=bool(edge)))
            found, edge = await database.fetch(sql, (*edge, _AT_ONCE), partial(_damage_from, checked))
            for damage in found:
                yield damage


def _damage_from(checked: Checked, rows: list[Row]) -> tuple[list[Damage], tuple[Any, ...] | None]:
    """The corrupt rows of a page, and where the next page begins."""
    found = [damage for row in rows if (damage := checked.damage_in(row)) is not None]
    edge = tuple(rows[-1][: len(checked.table.key)]) if len(rows) == _AT_ONCE else None
    return found, edge


def _outcome(damage: Damage) -> Outcome:
    if damage.neutral is not None:
        return "mended"
    return "removed" if damage.checked.is_removable else "left"


def _told(damage: Damage) -> CorruptRow:
    table = damage.checked.table.name
    return CorruptRow(table, row_id_of(*damage.key), damage.columns, _outcome(damage))


# --- repairing ---


async def _whole_row(database: MemoryDatabase, damage: Damage) -> Mapping[str, Any] | None:
    """A row as it is stored, without its vector, which can be made again."""
    table = damage.checked.table
    names = [name for name in table.column_names if name not in VECTOR]
    sql = f"SELECT {', '.join(names)} FROM {table.name} WHERE {_is_it(damage)}"
    rows = await database.fetch(sql, damage.key, list[Row])
    return dict(zip(names, map(_as_json, rows[0]), strict=True)) if rows else None


def _as_json(stored: Any) -> Any:
    if isinstance(stored, bytes):
        return {"base64": base64.b64encode(stored).decode()}
    return tell_time(stored) if isinstance(stored, datetime) else stored


def _is_it(damage: Damage) -> str:
    return " AND ".join(f"{name} = ?{place}" for place, name in enumerate(damage.checked.table.key, 1))


def _repair(damage: Damage, now: str) -> Script[None]:
    """Mend a row or take it out, in one transaction, and have copies of its memory read again."""
    table = damage.checked.table
    yield from _touch_memory(damage)
    values = damage.neutral
    if values is None:
        yield from _remove(damage)
        return
    changes = ", ".join(
        f"{name} = {value.replace(NOW, f'?{len(damage.key) + 1}')}" for name, value in values.items()
    )
    uses_time = any(NOW in value for value in values.values())
    parameters = (*damage.key, now) if uses_time else damage.key
    yield Statement(f"UPDATE {table.name} SET {changes} WHERE {_is_it(damage)}", parameters)


def _touch_memory(damage: Damage) -> Script[None]:
    stamp = _STAMPS.get(damage.checked.table.name)
    if stamp is None:
        return
    table = damage.checked.table.name
    mine = f"SELECT memory_id FROM {table} WHERE {_is_it(damage)}"
    yield Statement(
        f"UPDATE {MEMORIES.name} SET {stamp} = {stamp} + 1 WHERE memory_id = ({mine})", damage.key
    )


def _remove(damage: Damage) -> Script[None]:
    table = damage.checked.table
    if table is CONTENTS:
        mine = f"(SELECT memory_id, position FROM {CONTENTS.name} WHERE {_is_it(damage)})"
        yield Statement(f"DELETE FROM {TERMS.name} WHERE (memory_id, position) IN {mine}", damage.key)
    yield Statement(f"DELETE FROM {table.name} WHERE {_is_it(damage)}", damage.key)
