"""Leaving nothing of what was erased in the files of a database."""

from typing import Protocol, runtime_checkable

from ...sessions.events.schema import EVENTS
from ...sessions.events.schema import HEADS as EVENT_HEADS
from ...strategies.summaries.schema import HEADS as SUMMARY_HEADS
from ...strategies.summaries.schema import SUMMARIES
from ..database.access import MemoryDatabase
from ..database.dialect import POSTGRESQL
from ..database.schema import TABLES
from .session_tables import Places, find_places

_OF_SQLITE = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")


@runtime_checkable
class Vacuums(Protocol):
    """An engine that has a way of its own to write its file anew."""

    async def vacuum(self) -> None:
        """Write the file anew, so that nothing of what was deleted is left in it or in its log."""
        ...


async def vacuum(database: MemoryDatabase, full: bool) -> None:
    """Have a database let go of what was deleted, in the tables of memory and of sessions."""
    engine = await database.prepared()
    if isinstance(engine, Vacuums):
        await engine.vacuum()
        return
    statements = list(_OF_SQLITE)
    if database.dialect is POSTGRESQL:
        places = await database.write(lambda: find_places(database.dialect))
        options = "FULL, ANALYZE" if full else "ANALYZE"
        statements = [f'VACUUM ({options}) "{name}"' for name in _tables_in(places)]
    for statement in statements:  # each by itself: none may stand in a transaction
        await database.fetch(statement, (), list)


def _tables_in(places: Places) -> list[str]:
    """The tables that may have held data of users."""
    names = [table.name for table in TABLES]
    names += [EVENTS, EVENT_HEADS] if places.has_events else []
    names += [SUMMARIES, SUMMARY_HEADS] if places.has_summaries else []
    return names + [name for tables in places.sessions for name in tables.all]
