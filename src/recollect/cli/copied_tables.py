"""The tables of the databases of a copy: created where they are missing, and brought to the same version."""

from collections.abc import Iterable

from ..migrations import all_schemas, migrate
from ..sql.schema import Schema
from ..sql.urls import sqlite_path

_PREFIX = "recollect_"  # of names that only Recollect gives


async def create_tables(source: str, target: str) -> None:
    """Bring the tables of both databases to the newest version, and create those that the target lacks."""
    pairs = await _session_pairs(source)
    for url in (source, target):
        if sqlite_path(url) is None:
            await migrate(url)
    if sqlite_path(source) is not None:
        await _prepare(source, await _present(source))
    if sqlite_path(target) is not None:
        await _prepare(target, all_schemas())
    await _prepare(target, pairs)


async def our_tables(source: str) -> set[str]:
    """The tables of a database that are Recollect's, and not those of other applications beside them."""
    from ..memory.database.schema import TABLES

    ours = {table.name for table in TABLES}
    for schema in [*all_schemas(), *await _session_pairs(source)]:
        ours |= schema.columns().keys()
    return {name for name in await _table_names(source) if name in ours or name.startswith(_PREFIX)}


async def _present(url: str) -> list[Schema]:
    """The schemas whose tables a file has, at least in part."""
    names = set(await _table_names(url))
    return [schema for schema in all_schemas() if names & schema.columns().keys()]


async def _prepare(url: str, schemas: Iterable[Schema]) -> None:
    from ..sql.database import open_database

    database = open_database(url, create_tables=True)
    try:
        for schema in schemas:
            await database.engine.prepare(schema)
    finally:
        await database.aclose()


async def _table_names(url: str) -> list[str]:
    from ..moving.copying.ends import open_end

    async with open_end(url, to_write=False) as end:
        return list(await end.tables())


async def _session_pairs(source: str) -> list[Schema]:
    """The schemas of sessions under other names than the default ones."""
    from ..memory.database.access import MemoryDatabase
    from ..memory.rights.personal_data import find_personal_tables
    from ..sessions.sql.schema import session_schema
    from ..sessions.sql.tables import tables_named

    async with MemoryDatabase(source) as database:
        found = await database.write(lambda: find_personal_tables(database.dialect))
    default = ("agent_sessions", "agent_messages")
    return [
        session_schema(
            tables_named(pair.sessions, pair.messages, advanced=pair.structure is not None, one_pair=False)
        )
        for pair in found.sessions
        if (pair.sessions, pair.messages) != default
    ]


async def add_search_indexes(url: str) -> None:
    """Create the indexes of vectors on a server: a copy fills the tables without them."""
    if sqlite_path(url) is not None:
        return
    from ..memory.database.access import MemoryDatabase
    from ..memory.database.schema import TABLES
    from ..sql.sqlalchemy.metadata import nearest_index

    async with MemoryDatabase(url) as database:
        for table in TABLES:
            for dimension in table.vector_dimensions:
                await database.fetch(nearest_index(table, dimension), (), list)
