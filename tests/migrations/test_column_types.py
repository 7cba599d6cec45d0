"""A database whose times and documents are texts migrates to `timestamptz` and `jsonb`, and loses nothing."""

import json
import logging
from typing import Any

import pytest

from recollect import MemoryStore, SchemaMismatchError
from recollect.migrations import migrate
from recollect.server.access.audit import AuditLog
from recollect.sessions.events import EventLog
from recollect.strategies.summaries import ConversationSummaryStore
from recollect.testing.contract import in_event_loop, message

from ..sessions.postgres.database import by, sql
from .test_migrations import EVERYTHING, differences, downgrade, empty_database

__all__ = ["empty_database"]

SAID = [{"role": "user", "content": "I sail.", "created_at": "2026-05-01T10:00:00.000001Z"}]
TEXTS = (
    "SELECT created_at, updated_at, closed_at, pipeline_result, memory_strategy FROM conversations",
    "SELECT created_at FROM conversation_messages",
    "SELECT learned_at, said_at, retired_at, content_data FROM memory_contents ORDER BY position",
    "SELECT created_at, started_at, finished_at FROM memory_runs",
    "SELECT finished_at, result FROM memory_run_stages ORDER BY stage",
    "SELECT at FROM audit_log",
    "SELECT created_at, ingested_at FROM conversation_events",
    "SELECT created_at, expires_at FROM conversation_summaries",
)


async def fill(url: str) -> None:
    async with MemoryStore(url, workers=1, embedder=None) as store:
        await store.record_conversation(
            "agent", "ada", SAID, conversation_id="c", created_at="0001-01-01T00:00:00Z"
        )
        await store.drain(60)
        await store.add_entry("agent", "ada", "profile", "The user skis.", content_id="skis")
        await store.change_conversation_settings("c", memory_strategy={"mode": "trim", "nul": "a\0b"})
    async with AuditLog(url) as log, EventLog(url) as events, ConversationSummaryStore(url) as summaries:
        await log.record("tenant", None, "conversations.create", None, 200)
        await events.append("c", [message("kept")])
        await summaries.add("c", "a summary", ttl=60)


async def read(url: str) -> list[Any]:
    async with MemoryStore(url, workers=0, embedder=None) as store, AuditLog(url) as log:
        conversation = await store.get_conversation("c")
        assert conversation is not None
        entries = await store.list_entries("agent", "ada")
        return [
            conversation.to_dict(),
            await store.get_conversation_settings("c"),
            [entry.to_dict() for entry in entries],
            [run.to_dict() for run in await store.list_runs_of("c")],
            await log.list("tenant"),
        ]


def types_of(url: str) -> dict[str, set[str]]:
    """The columns of each type, of all tables."""
    found: dict[str, set[str]] = {}
    for table, column, kind in sql(
        url, "SELECT table_name, column_name, data_type FROM information_schema.columns"
    ):
        found.setdefault(kind, set()).add(f"{table}.{column}")
    return found


@in_event_loop
async def test_times_and_documents_have_types_of_their_own(empty_database: str) -> None:
    await migrate(empty_database)
    found = types_of(empty_database)
    described = {
        f"{table.name}.{column.name}"
        for schema in EVERYTHING
        for table in schema.describe().sorted_tables
        for column in table.columns
    }
    times = {name for name in described if name.endswith((".at", "_at"))}
    numbers = {name for name in times if name in found["double precision"]}
    of_the_sdk = {name for name in times if name in found["timestamp without time zone"]}
    assert times - numbers - of_the_sdk <= found["timestamp with time zone"]
    assert found["jsonb"] & described == {
        "memory_contents.content_data",
        "conversations.pipeline_result",
        "conversations.memory_strategy",
        "conversations.metadata",
        "conversations.tags",
        "conversation_messages.attachments",
        "memory_contents.metadata",
        "memory_contents.tags",
        "memory_run_stages.result",
        "chat_turns.details",
        "idempotency_keys.made",
    }


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
@in_event_loop
async def test_texts_become_times_and_documents_and_texts_again(empty_database: str, driver: str) -> None:
    url = by(driver, empty_database)
    await migrate(url)
    await fill(url)
    before = await read(url)
    await downgrade(empty_database, "0011")
    texts = [sql(empty_database, query) for query in TEXTS]
    assert texts[0][0][0] == "0001-01-01T00:00:00.000000Z"
    assert json.loads(texts[0][0][4]) == {"mode": "trim", "nul": "a\0b"}
    await migrate(url)
    assert await differences(empty_database) == []
    assert await read(url) == before
    await downgrade(empty_database, "0011")
    assert [sql(empty_database, query) for query in TEXTS] == texts


@in_event_loop
async def test_what_cannot_be_read_is_set_aside_and_the_rest_migrates(
    empty_database: str, caplog: pytest.LogCaptureFixture
) -> None:
    await migrate(empty_database)
    await fill(empty_database)
    await downgrade(empty_database, "0011")
    for column, text in (("retired_at", "2026-02-30T00:00:00.000000Z"), ("said_at", "yesterday")):
        sql(empty_database, f"UPDATE memory_contents SET {column} = %s WHERE content_id = 'skis'", text)
    sql(empty_database, "UPDATE conversations SET updated_at = '2026-05-01 12:00:00+02'")
    sql(empty_database, "UPDATE conversations SET pipeline_result = %s", '{"cut')
    with caplog.at_level(logging.WARNING, "recollect.migrations"):
        await migrate(empty_database)
    assert await differences(empty_database) == []
    warned = [record.getMessage() for record in caplog.records if record.name == "recollect.migrations"]
    assert sorted(line.split(": ")[1] for line in warned) == [
        "memory_contents.retired_at, 1 rows",
        "memory_contents.said_at, 1 rows",
    ]
    aside = sql(
        empty_database,
        "SELECT column_name, row_key ->> 'content_id', value FROM recollect_unreadable_times ORDER BY 1",
    )
    assert aside == [
        ("retired_at", "skis", "2026-02-30T00:00:00.000000Z"),
        ("said_at", "skis", "yesterday"),
    ]
    retired = "SELECT content_id FROM memory_contents WHERE retired_at <= now()"
    assert sql(empty_database, retired) == [("skis",)]
    hour = "to_char(updated_at AT TIME ZONE 'UTC', 'HH24:MI')"
    found = sql(empty_database, f"SELECT {hour}, pipeline_result #>> '{{}}' FROM conversations")
    assert found == [("10:00", '{"cut')]


@in_event_loop
async def test_a_database_of_texts_says_that_a_migration_is_needed(empty_database: str) -> None:
    await migrate(empty_database)
    await fill(empty_database)
    await downgrade(empty_database, "0011")
    async with MemoryStore(empty_database, workers=0, embedder=None, create_tables=True) as store:
        with pytest.raises(SchemaMismatchError, match="is a text: run `recollect migrate`"):
            await store.get_memory("agent", "ada")
    async with MemoryStore(empty_database, workers=0, embedder=None) as store:
        with pytest.raises(SchemaMismatchError, match="recollect migrate"):
            await store.record_conversation("agent", "ada", SAID)
