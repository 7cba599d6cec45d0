"""Stores a checkpoint on PostgreSQL in one statement, without a transaction around it.

A process that stored the checkpoint before knows the row of the thread and where the logs of its channels
end. If that is outdated, nothing is stored, and the caller stores it by the transaction of `writing.py`: the
generation differs if rows were removed, and a position is taken if another process has added items.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ...sql.columns import time_to_column
from ...sql.description import Table
from ...sql.scripts import Script, Statement
from .known import Basis
from .schema import CHECKPOINTS, ITEMS, VALUES
from .writing import NewCheckpoint, Stored, checkpoint_row, place_lists

MOST_ITEMS = 50  # new items: a statement has a limit of parameters

_TYPES = {"integer": "bigint", "bytes": "bytea"}
_TOUCH = (
    "UPDATE langgraph_threads SET updated_at = ?1, user_id = coalesce(CAST(?2 AS text), user_id)"
    " WHERE id = ?3 AND generation = ?4 RETURNING id"
)


def put_in_one_statement(new: NewCheckpoint, basis: Basis, ends: Mapping[str, int]) -> Script[Stored | None]:
    """Store a checkpoint, if what is known of its thread still holds. `None` if it does not.

    The database refuses the statement if a position is taken.
    """
    rows = place_lists(new, basis.thread, ends)
    row = checkpoint_row(new, basis.thread)
    parameters: list[Any] = [time_to_column(datetime.now(UTC)), new.user_id, *basis]
    for each in (*rows.items, *rows.values, row):
        parameters += each[1:]  # the thread is that of the touched row
    sql = _sql(len(rows.items), len(rows.values))
    stored = yield Statement(sql, parameters, alone=True)
    return Stored(basis, rows.ranges, rows.ends) if stored else None


@lru_cache(maxsize=512)
def _sql(items: int, values: int) -> str:
    parts = [f"touched AS ({_TOUCH})"]
    number = 5
    for name, table, count in (("items", ITEMS, items), ("kept", VALUES, values)):
        if count:
            ending = _replacing(table) if table is VALUES else ""
            parts.append(f"{name} AS ({_insert(table, count, number)}{ending})")
            number += count * (len(table.columns) - 1)
    return f"WITH {', '.join(parts)} {_insert(CHECKPOINTS, 1, number)}{_replacing(CHECKPOINTS)} RETURNING 1"


def _insert(table: Table, count: int, first: int) -> str:
    """An INSERT of rows of the touched thread. The types of the parameters must be named in a SELECT."""
    columns = table.columns[1:]
    casts = [_TYPES.get(column.kind, "text") for column in columns]
    width = len(columns)
    rows = ", ".join(_row(casts, first + row * width) for row in range(count))
    names = ", ".join(column.name for column in columns)
    return (
        f"INSERT INTO {table.name} ({table.columns[0].name}, {names})"
        f" SELECT touched.id, {', '.join(f'given.{column.name}' for column in columns)}"
        f" FROM touched, (VALUES {rows}) AS given ({names})"
    )


def _row(casts: Sequence[str], first: int) -> str:
    return f"({', '.join(f'CAST(?{first + place} AS {cast})' for place, cast in enumerate(casts))})"


def _replacing(table: Table) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in table.column_names if name not in table.key)
    return f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}"
