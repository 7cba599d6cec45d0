"""Copies a database, table by table, until both have the same rows.

The source may be in use: one pass copies a snapshot of it. A further pass, with the writers stopped, copies
what has changed since. Tables with equal checksums are not touched, so a pass can be interrupted and
repeated at any time. After each table, the number of rows and the checksum are compared.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from ...errors import ConflictError, SchemaMismatchError
from ...sql.scripts import Row
from .ends import End, TableInfo, open_end
from .values import compared, digest

_PAGE = 2000  # rows
_ALL_BITS = 2**64


@dataclass(frozen=True)
class Checksum:
    """The number of rows of a table, and a number that depends on all of them, in any order."""

    rows: int = 0
    total: int = 0

    def plus(self, rows: Sequence[Row]) -> "Checksum":
        """The checksum with more rows."""
        return Checksum(self.rows + len(rows), (self.total + sum(map(digest, rows))) % _ALL_BITS)


@dataclass(frozen=True)
class TableReport:
    """What a pass did to a table. Its checksum is that of both databases."""

    name: str
    rows: int
    checksum: str
    added: int = 0
    changed: int = 0
    removed: int = 0


@dataclass
class CopyReport:
    """What a pass did."""

    tables: list[TableReport] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def written(self) -> int:
        """The rows that were added, changed or removed."""
        return sum(table.added + table.changed + table.removed for table in self.tables)


@dataclass(frozen=True)
class _Pair:
    """A table at both ends."""

    source: End
    target: End
    at_source: TableInfo
    at_target: TableInfo
    kinds: tuple[str, ...]

    def key_of(self, row: Row) -> Row:
        """The key of a row."""
        return tuple(row[place] for place in self.at_source.places(self.at_source.key))

    def compared(self, rows: Sequence[Row]) -> list[Row]:
        """Rows in the form in which both ends are compared."""
        return [compared(self.kinds, row) for row in rows]


async def copy_database(
    source_url: str,
    target_url: str,
    on_progress: Callable[[str, int, int], object] = lambda *_: None,
    *,
    tables: Collection[str] | None = None,
    remove_extra: bool = False,
) -> CopyReport:
    """Make the target equal to a snapshot of the source. Both must have their tables already.

    `on_progress` is called with a table, the rows that are done, and the rows of the table. With `tables`,
    only tables of these names are copied. Rows that only the target has are removed with `remove_extra`;
    without it, they raise `ConflictError` before anything is written. Raises `SchemaMismatchError` if the
    target lacks tables or columns, and `ConflictError` if a checksum differs in the end, because something
    else writes to the target.
    """
    report = CopyReport()
    async with (
        open_end(source_url, to_write=False) as source,
        open_end(target_url, to_write=True) as target,
    ):
        pairs = await _pairs(source, target, tables)
        if not remove_extra and (extra := await _count_extra(pairs)):
            raise ConflictError(
                f"the target has {sum(extra.values()):,} rows that the source lacks, in {', '.join(extra)}:"
                " a copy would remove them, and nothing was changed"
            )
        for pair in pairs:
            report.tables.append(await _copy_table(pair, on_progress))
        await target.finish()
    return report


async def count_extra_rows(
    source_url: str, target_url: str, *, tables: Collection[str] | None = None
) -> dict[str, int]:
    """How many rows of the target the source lacks, by table. A copy removes them."""
    async with (
        open_end(source_url, to_write=False) as source,
        open_end(target_url, to_write=False) as target,
    ):
        return await _count_extra(await _pairs(source, target, tables))


async def _count_extra(pairs: Sequence[_Pair]) -> dict[str, int]:
    counts = {pair.at_target.name: sum([len(keys) async for keys in _extra_keys(pair)]) for pair in pairs}
    return {name: count for name, count in counts.items() if count}


async def _pairs(source: End, target: End, wanted: Collection[str] | None) -> list[_Pair]:
    """The tables of the source with those of the target, parents first."""
    at_source, at_target = (
        {name: table for name, table in found.items() if wanted is None or name in wanted}
        for found in (await source.tables(), await target.tables())
    )
    order = at_target if target.is_server else at_source
    for name in at_source.keys() - at_target.keys():
        if await source.count(at_source[name]):
            raise SchemaMismatchError(f"the target has no table {name!r}, and the source has rows in it")
    return [
        _pair(source, target, at_source[name], at_target[name])
        for name in order
        if name in at_source and name in at_target
    ]


def _pair(source: End, target: End, at_source: TableInfo, at_target: TableInfo) -> _Pair:
    """A table at both ends, with its columns in one order."""
    missing = set(at_source.columns) - set(at_target.columns)
    if missing:
        raise SchemaMismatchError(
            f"table {at_target.name!r} of the target lacks {', '.join(sorted(missing))}"
        )
    key = at_target.key or at_source.key
    if not key:
        raise SchemaMismatchError(f"table {at_target.name!r} has no primary key, so it cannot be compared")
    return _pair_of(source, target, at_source, at_target, key, at_source.columns)


def _pair_of(
    source: End,
    target: End,
    at_source: TableInfo,
    at_target: TableInfo,
    key: tuple[str, ...],
    columns: tuple[str, ...],
) -> _Pair:
    ends = [
        TableInfo(
            each.name,
            columns,
            key,
            tuple(each.kinds[place] for place in each.places(columns)) if each.kinds else (),
        )
        for each in (at_source, at_target)
    ]
    kinds = ends[1].kinds or ends[0].kinds or ("",) * len(columns)
    return _Pair(source, target, ends[0], ends[1], kinds)


async def _copy_table(pair: _Pair, on_progress: Callable[[str, int, int], object]) -> TableReport:
    name, size = pair.at_source.name, await pair.source.count(pair.at_source)
    already = await pair.target.count(pair.at_target)
    if already == size:
        wanted = await _scan(pair, pair.source, pair.at_source)
        if await _scan(pair, pair.target, pair.at_target) == wanted:
            return TableReport(name, wanted.rows, f"{wanted.total:016x}")
    if not already:
        await pair.target.make_ready(pair.at_target)
    removed = await _remove_extra(pair) if already else 0
    wanted, added, changed = await _copy_rows(pair, bool(already), lambda done: on_progress(name, done, size))
    found = await _scan(pair, pair.target, pair.at_target)
    if found != wanted:
        raise ConflictError(
            f"table {name!r} differs after the copy ({found.rows:,} rows, not {wanted.rows:,}): stop whatever"
            " writes to the target, and copy again"
        )
    return TableReport(name, wanted.rows, f"{wanted.total:016x}", added, changed, removed)


async def _scan(pair: _Pair, end: End, table: TableInfo) -> Checksum:
    total, last = Checksum(), None
    while rows := await end.page(table, last, _PAGE):
        total = total.plus(pair.compared(rows))
        last = pair.key_of(rows[-1])
        if len(rows) < _PAGE:
            break
    return total


async def _remove_extra(pair: _Pair) -> int:
    """Remove the rows of the target that the source no longer has."""
    removed = 0
    async for gone in _extra_keys(pair):
        await pair.target.remove(pair.at_target, gone)
        removed += len(gone)
    return removed


async def _extra_keys(pair: _Pair) -> AsyncIterator[list[Row]]:
    """The keys of the target that the source lacks. Only keys are read."""
    table = pair.at_source
    short = _pair_of(pair.source, pair.target, table, pair.at_target, table.key, table.key)
    last = None
    while keys := await short.target.page(short.at_target, last, _PAGE):
        last = keys[-1]
        kept = set(short.compared(await short.source.find(short.at_source, keys)))
        gone = [key for key, form in zip(keys, short.compared(keys), strict=True) if form not in kept]
        if gone:
            yield gone


async def _copy_rows(
    pair: _Pair, compare: bool, on_progress: Callable[[int], object]
) -> tuple[Checksum, int, int]:
    total, added, changed, last = Checksum(), 0, 0, None
    while rows := await pair.source.page(pair.at_source, last, _PAGE):
        last = pair.key_of(rows[-1])
        there: dict[Row, Row] = {}
        if compare:
            found = await pair.target.find(pair.at_target, [pair.key_of(row) for row in rows])
            there = {pair.key_of(row): compared(pair.kinds, row) for row in found}
        new, different = _differences(pair, rows, there)
        for some in _by_size([*new, *different]):
            await pair.target.put(pair.at_target, some)
        added, changed = added + len(new), changed + len(different)
        total = total.plus(pair.compared(rows))
        on_progress(total.rows)
    return total, added, changed


def _differences(pair: _Pair, rows: Sequence[Row], there: dict[Row, Row]) -> tuple[list[Row], list[Row]]:
    """The rows that the target lacks, and those that are different there."""
    new = [row for row in rows if pair.key_of(row) not in there]
    different = [
        row
        for row in rows
        if pair.key_of(row) in there and there[pair.key_of(row)] != compared(pair.kinds, row)
    ]
    return new, different


def _by_size(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Rows in parts that are not too large for a statement."""
    start = size = 0
    for place, row in enumerate(rows):
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > 8_000_000:
            yield rows[start : place + 1]
            start, size = place + 1, 0
    if start < len(rows):
        yield rows[start:]
