"""SQLite's own `PRAGMA integrity_check` finds nothing wrong with a file, new or of an older release."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from recollect.memory.store import MemoryStore
from recollect.server.access.audit import AuditLog
from recollect.testing.contract import in_event_loop

RELEASED = Path(__file__).parents[1] / "faults" / "upgrades" / "released"


def complaints(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [line for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]


def stored(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return sorted(connection.execute(query))


TERMS = "SELECT memory_id, tenant, term, position FROM memory_terms"
AUDITED = "SELECT entry_id, tenant, at, key_id, action, target, status, request_id FROM audit_log"


@in_event_loop
async def test_a_new_file_passes_the_integrity_check(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with MemoryStore(path, workers=0, embedder=None) as store:
        await store.add_entry("agent", "user", "profile", "The user sails on Sundays.")
    async with AuditLog(path) as log:
        await log.record("tenant", None, "conversations.create", None, 200)
    assert stored(path, TERMS) != []
    assert complaints(path) == []


@pytest.mark.parametrize("release", ["long-term-memory", "service", "promises"])
@in_event_loop
async def test_a_file_of_an_older_release_passes_it_once_it_was_opened(tmp_path: Path, release: str) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((RELEASED / f"{release}.db.gz").read_bytes()))
    terms = stored(path, TERMS)
    audited = [] if release == "long-term-memory" else stored(path, AUDITED)
    async with MemoryStore(path, workers=0, embedder=None) as store, AuditLog(path) as log:
        assert await store.get_memory("nobody", "nobody") is None
        assert await log.tenants() == sorted({str(row[1]) for row in audited})
    assert terms != []
    assert (stored(path, TERMS), stored(path, AUDITED)) == (terms, audited)
    assert complaints(path) == []
