"""Files to import: they are read whole, or refused, and a bad one changes nothing."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect.cli.user_data import _read_document, _skipped_kinds
from recollect.errors import ConflictError, ImportFormatError, InvalidItemError
from recollect.memory.rights.imports import parse_export
from recollect.memory.store import MemoryStore
from recollect.sessions.history import import_session
from recollect.sessions.in_memory import InMemorySession
from recollect.sessions.sdk_import import import_sdk_sessions

from ..supply import Supply
from ..target import Check
from .files import changed_file

_NOW = "2024-05-07 10:00:00.000000"
_BEFORE = [{"role": "user", "content": "was there before"}]


@contextmanager
def open_history_files() -> Iterator[Check]:
    """A history comes in whole from JSON or JSON Lines, or what was there stays."""
    with asyncio.Runner() as runner, TemporaryDirectory(prefix="recollect-fuzzing-") as folder:
        path = Path(folder) / "history"

        def check(data: bytes) -> None:
            supply = Supply(data)
            form = supply.choose(("json", "jsonl"))
            path.write_bytes(supply.rest())
            runner.run(_check_history(path, form))
            _check_document(path)

        yield check


async def _check_history(path: Path, form: Any) -> None:
    session = InMemorySession("s")
    await session.add_items(list(_BEFORE))
    try:
        count = await import_session(session, path, form)
    except (ImportFormatError, InvalidItemError):
        assert await session.get_items() == _BEFORE, "a file that was refused changed something"
    else:
        assert len(await session.get_items()) == count


def _check_document(path: Path) -> None:
    try:
        document = _read_document(path)
        _skipped_kinds(document)
        parse_export(document, "tenant", _NOW)
    except ImportFormatError:
        return


# --- exports of users ---


def exported() -> dict[str, Any]:
    """An export with something of everything."""
    with asyncio.Runner() as runner:
        return runner.run(_exported())


async def _exported() -> dict[str, Any]:
    async with MemoryStore(":memory:", embedder=None, workers=1) as store:
        said = "I live in Lisbon. I love rain. Yesterday I bought a bicycle."
        messages = [{"role": "user", "content": said}, {"role": "assistant", "content": "I see."}]
        await store.record_conversation("agent", "user", messages)
        await store.drain(60)
        return await store.export_user("user")


@contextmanager
def open_exports() -> Iterator[Check]:
    """An export with anything in any place comes back whole, or nothing of it does."""
    original = exported()
    with asyncio.Runner() as runner:
        store = MemoryStore(":memory:", embedder=None, workers=0)
        yield lambda data: runner.run(_check_export(store, original, Supply(data)))
        runner.run(store.aclose())


async def _check_export(store: MemoryStore, original: dict[str, Any], supply: Supply) -> None:
    document = deepcopy(original)
    for _ in range(1 + supply.number(3)):
        change(document, supply)
    try:
        counts = await store.import_user(document)
    except (ImportFormatError, ConflictError):
        assert not await store.list_memories(limit=1), "a file that was refused left something"
        return
    users = {memory.user_id for memory in await store.list_memories(limit=10)}
    assert len(users) == min(counts["memories"], 1)
    for user in users:
        again = await store.export_user(user)
        assert len(again["entries"]) == counts["entries"]
        await store.erase_user(user)


def change(document: Any, supply: Supply) -> None:
    """Put anything in the place of something within, or take it out."""
    inside = document
    while True:
        names = list(inside) if isinstance(inside, Mapping) else list(range(len(inside)))
        if not names:
            return
        name = supply.choose(names)
        if not isinstance(inside[name], dict | list) or supply.byte() % 4 == 0:
            break
        inside = inside[name]
    if supply.byte() % 4 == 0:
        del inside[name]
    else:
        inside[name] = supply.value()


# --- files of the Agents SDK ---

_TABLES = """
CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at);
CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER, branch_id TEXT);
"""


def _sdk_file(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.executescript(_TABLES)
        for session in ("a", "b"):
            connection.execute("INSERT INTO agent_sessions (session_id) VALUES (?)", (session,))
            for number in range(4):
                item = json.dumps({"role": "user", "content": f"message {number}"})
                added = connection.execute(
                    "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", (session, item)
                )
                row = (session, added.lastrowid, "main" if number else "other")
                connection.execute(
                    "INSERT INTO message_structure (session_id, message_id, branch_id) VALUES (?, ?, ?)", row
                )
        connection.commit()
    return path.read_bytes()


@contextmanager
def open_sdk_files() -> Iterator[Check]:
    """A file of the SDK with anything in any byte gives sessions, or is refused."""
    with asyncio.Runner() as runner, TemporaryDirectory(prefix="recollect-fuzzing-") as folder:
        path = Path(folder) / "sdk.db"
        original = _sdk_file(path)

        def check(data: bytes) -> None:
            path.write_bytes(changed_file(original, Supply(data)))
            runner.run(_check_sdk_file(path))

        yield check


async def _check_sdk_file(path: Path) -> None:
    sessions: dict[str, InMemorySession] = {}
    try:
        report = await import_sdk_sessions(
            path, lambda session_id: sessions.setdefault(session_id, InMemorySession(session_id))
        )
    except ImportFormatError:
        return
    assert report.items == sum([len(await session.get_items()) for session in sessions.values()])
