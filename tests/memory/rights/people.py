"""Users with something in every table, all of it marked by a word of their own."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from recollect import ConversationSummaryStore, EventLog, Memory, SessionMetadata, open_session

from .kit import AGENT, Somewhere, Store, learn, said

SHARED_TABLES = {"recollect_migrations", "sqlite_sequence", "alembic_version"}
Rows = dict[str, list[tuple[Any, ...]]]


async def move_in(somewhere: Somewhere, store: Store, *marks: str) -> None:
    """Users with sessions, events, summaries, a memory, and runs that are done, failed and queued."""
    for mark in marks:
        await _talk(somewhere, mark)
        await _note_down(somewhere, mark)
        await store.save_memory(Memory(f"{AGENT} {mark}", f"user {mark}", memory_id=f"{mark} memory"))
        await _record(store, mark, "1", "home: lives in %s town", "pet: keeps a tortoise called %s")
        await _record(store, mark, "2", "home: moved to a farm near %s", "feeling: longs for the sea at %s")
        await _record(store, mark, "3", "garbage from %s")
    await learn(store)
    for mark in marks:
        await _record(store, mark, "4", "job: mends clocks of %s")


async def _record(store: Store, mark: str, name: str, *texts: str) -> None:
    await store.record_conversation(
        f"{AGENT} {mark}",
        f"user {mark}",
        said(*(text % mark for text in texts), prefix=f"{mark} message "),
        conversation_id=f"{mark} conversation {name}",
        session_id=f"{mark} session",
        memory_id=f"{mark} memory",
    )


async def attach_words(store: Store, mark: str) -> None:
    """Put a word into the columns that few rows fill: names, attachments, metadata and tags."""
    for name in ("name", "attachment", "metadata", "tags"):
        message: dict[str, Any] = {"role": "tool", "content": "see below", "message_id": f"m {name}"}
        if name == "name":
            message["name"] = f"{mark} participant"
        if name == "attachment":
            image = {"type": "image_url", "image_url": {"url": f"https://example.org/{mark}.png"}}
            message["content"] = [{"type": "text", "text": "see below"}, image]
        await store.record_conversation(
            f"{AGENT} {mark}",
            f"user {mark}",
            [message],
            conversation_id=f"{mark} conversation with {name}",
            metadata={"source": f"{mark} source"} if name == "metadata" else None,
            tags=[f"{mark} tag"] if name == "tags" else None,
        )
    text = "The user keeps bees."
    labels: dict[str, Any] = {"metadata": {"by": f"{mark} writer"}, "tags": [f"{mark} label"]}
    await store.add_entry(f"{AGENT} {mark}", f"user {mark}", "profile", text, **labels)


async def _talk(somewhere: Somewhere, mark: str) -> None:
    """Sessions with all that stands beside them: batches, notes, branches, leases."""
    options: dict[str, Any] = {"create_tables": True} if somewhere.create_tables else {}
    metadata = SessionMetadata(f"user {mark}", f"{AGENT} {mark}", f"title {mark}", {"mark": mark})
    session: Any = open_session(somewhere.url, f"{mark} session", advanced=True, metadata=metadata, **options)
    await session.add_items([{"role": "user", "content": f"hello from {mark}"}])
    await session.add_batch([{"role": "user", "content": f"more from {mark}"}], f"batch {mark}")
    await session.set_note("summary", {"text": f"note on {mark}"}, 0)
    await session.create_branch_from_turn(2, f"branch {mark}")
    await session.add_items([{"role": "user", "content": f"aside from {mark}"}])
    assert await session.take_lease(f"owner {mark}", 600)
    await session.aclose()


async def _note_down(somewhere: Somewhere, mark: str) -> None:
    options: dict[str, Any] = {"create_tables": somewhere.create_tables}
    async with EventLog(somewhere.url, **options) as log:
        await log.append(f"{mark} session", [{"role": "user", "content": f"event of {mark}"}])
        await log.append(f"{mark} conversation 1", [{"role": "user", "content": f"said by {mark}"}])
    async with ConversationSummaryStore(somewhere.url, **options) as summaries:
        await summaries.add(f"{mark} session", f"a session of {mark}")
        await summaries.add(f"{mark} conversation 2", f"a conversation of {mark}")


def rows_of(url: str) -> Rows:
    """Every row of every table, past all that is under test."""
    rows = _rows_of_postgres(url) if url.startswith("postgresql") else _rows_of_file(path_of(url))
    return {name: sorted(found, key=repr) for name, found in rows.items() if name not in SHARED_TABLES}


def path_of(url: str) -> Path:
    """The file of a SQLite URL."""
    return Path(url.partition(":///")[2] or url)


def plain(url: str) -> str:
    """The URL without the driver."""
    return url.replace("+asyncpg", "").replace("+psycopg", "")


def _rows_of_file(path: Path) -> Rows:
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names}


def _rows_of_postgres(url: str) -> Rows:
    with psycopg.connect(plain(url), autocommit=True) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names}  # type: ignore[call-overload]


def marked(rows: Rows, mark: str) -> Rows:
    """The rows that hold a word, by the tables that have such."""
    found = {name: [row for row in held if mark in repr(row)] for name, held in rows.items()}
    return {name: held for name, held in found.items() if held}


def unmarked(rows: Rows, mark: str) -> Rows:
    """All other rows."""
    return {name: [row for row in held if mark not in repr(row)] for name, held in rows.items()}


def bytes_of(url: str) -> bytes:
    """Every page of the database's files: of tables and their indexes, also of those that hold long texts."""
    if url.startswith("postgresql"):
        with psycopg.connect(plain(url), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            pages = connection.execute(
                "SELECT pg_read_binary_file(pg_relation_filepath(oid)) FROM pg_class"
                " WHERE relkind IN ('r', 'i', 't') AND pg_relation_filepath(oid) IS NOT NULL AND oid >= 16384"
            ).fetchall()
        return b"".join(bytes(page) for (page,) in pages)
    path = path_of(url)
    files = [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]
    return b"".join(file.read_bytes() for file in files if file.exists())
