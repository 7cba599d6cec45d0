"""Adding many rows of a described table, some in each statement."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .description import Table
from .scripts import Statement

_VALUES_AT_ONCE = 900  # databases bound the parameters of a statement


def insert(
    table: Table, rows: Sequence[Mapping[str, Any]], *, or_nothing: bool = False
) -> Iterator[Statement]:
    """Add rows, which name the same columns; with `or_nothing`, those alone whose keys are new."""
    if not rows:
        return
    columns = tuple(rows[0])
    at_once = max(1, _VALUES_AT_ONCE // len(columns))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        values = [row[column] for row in some for column in columns]
        yield Statement(_insert(table.name, columns, len(some), or_nothing), values)


@lru_cache(maxsize=256)
def _insert(table: str, columns: tuple[str, ...], count: int, or_nothing: bool) -> str:
    width = len(columns)
    rows = (range(1 + row * width, 1 + (row + 1) * width) for row in range(count))
    values = ", ".join(f"({', '.join(f'?{number}' for number in row)})" for row in rows)
    ending = " ON CONFLICT DO NOTHING" if or_nothing else ""
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {values}{ending}"
