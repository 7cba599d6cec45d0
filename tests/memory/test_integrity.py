"""SQLite's own `PRAGMA integrity_check` finds nothing wrong with a file."""

import sqlite3
from contextlib import closing
from pathlib import Path

from recollect.memory.store import MemoryStore
from recollect.server.access.audit import AuditLog
from recollect.testing.contract import in_event_loop


def complaints(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]


def stored(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.execute(query))


TERMS = "SELECT memory_id, tenant, term, position FROM memory_terms"


@in_event_loop
async def test_a_new_file_passes_the_integrity_check(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with MemoryStore(path, workers=0, embedder=None) as store:
        await store.add_entry("agent", "user", "profile", "The user sails on Sundays.")
    async with AuditLog(path) as log:
        await log.record("tenant", None, "conversations.create", None, 200)
    assert stored(path, TERMS) != []
    assert complaints(path) == []
