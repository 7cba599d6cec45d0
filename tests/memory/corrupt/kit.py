"""A memory with a few rows in every table, and a way to corrupt one of them."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from recollect.memory.store import MemoryStore

from ...sessions.postgres.database import sql
from ..databases import Place
from ..rights.kit import AGENT, learn
from ..vectors.kit import embedder

USER = "ada"
SECRET = "Persimmon"  # stands in what is said, and must be in no log
OPTIONS: dict[str, Any] = {"embedder": embedder()}


class Case(NamedTuple):
    """A column of the first row of a table, and what is put there."""

    table: str
    column: str
    value: Any


# PostgreSQL refuses values of another type, so only these can be corrupt there.
ANYWHERE = [
    Case("conversations", "pipeline_result", f'["{SECRET}"]'),
    Case("conversations", "memory_strategy", f'["{SECRET}"]'),
    Case("conversations", "memory_injection", '"perhaps"'),
    Case("conversations", "agent_id", ""),
    Case("conversations", "metadata", f'["{SECRET}"]'),
    Case("conversations", "tags", f'{{"{SECRET}": 1}}'),
    Case("conversation_messages", "attachments", f'{{"{SECRET}": 1}}'),
    Case("memory_contents", "metadata", f'["{SECRET}"]'),
    Case("memory_contents", "tags", f'[["{SECRET}"]]'),
    Case("conversation_messages", "role", SECRET),
    Case("conversation_messages", "content", f"\x01{SECRET}\\ud8"),
    Case("memory_contents", "content_type", SECRET),
    Case("memory_contents", "content_text", f"\x01{SECRET}\\ud8"),
    Case("memory_contents", "content_data", f'["{SECRET}"]'),
    Case("memory_contents", "valid_from", SECRET),
    Case("memory_evidence", "wording", f"\x01{SECRET}\\ud8"),
    Case("memory_runs", "status", SECRET),
    Case("memory_runs", "error", f"\x01{SECRET}\\ud8"),
    Case("memory_run_stages", "result", f'["{SECRET}"]'),
    Case("memory_run_stages", "raw_response", f"\x01{SECRET}\\ud8"),
    Case("memory_run_failures", "raw_response", f"\x01{SECRET}\\ud8"),
]
IN_SQLITE = [
    Case("memories", "created_at", SECRET),
    Case("memories", "updated_at", b"\xff"),
    Case("conversations", "created_at", SECRET),
    Case("conversations", "updated_at", SECRET),
    Case("conversations", "closed_at", SECRET),
    Case("conversations", "pipeline_result", f'{{"{SECRET}'),
    Case("conversations", "memory_strategy", SECRET),
    Case("conversations", "next_index", SECRET),
    Case("conversation_messages", "created_at", SECRET),
    Case("conversation_messages", "content", SECRET.encode()),
    Case("conversation_messages", "content_vector", b"123"),
    Case("conversation_messages", "content_vector", SECRET),
    Case("message_records", "head", b"123"),
    Case("message_records", "head", SECRET),
    Case("message_records", "terms", b"12345"),
    Case("message_records", "counts", None),
    Case("memory_contents", "learned_at", "2024-01-01"),
    Case("memory_contents", "said_at", SECRET),
    Case("memory_contents", "retired_at", SECRET),
    Case("memory_contents", "confidence", SECRET),
    Case("memory_contents", "position", SECRET),
    Case("memory_contents", "content_data", f'{{"{SECRET}'),
    Case("memory_contents", "content_text", SECRET.encode()),
    Case("memory_contents", "content_vector", b"12345678"),
    Case("memory_contents", "content_vector", SECRET),
    Case("memory_evidence", "wording", SECRET.encode()),
    Case("memory_runs", "created_at", SECRET),
    Case("memory_runs", "finished_at", SECRET),
    Case("memory_runs", "first_index", SECRET),
    Case("memory_runs", "attempts", SECRET),
    Case("memory_run_stages", "finished_at", SECRET),
    Case("memory_run_stages", "prompt_tokens", SECRET),
    Case("memory_run_failures", "failed_at", SECRET),
]
# Columns that no reading of everything reads.
UNREAD = {
    ("conversations", "next_index"),
    ("memory_evidence", "wording"),
    ("conversation_messages", "content_vector"),
}
_KEYS = {
    "memories": "memory_id",
    "conversations": "conversation_id",
    "conversation_messages": "message_id",
    "message_records": "message_id",
    "memory_contents": "content_id",
    "memory_evidence": "content_id",
    "memory_runs": "run_id",
    "memory_run_stages": "run_id",
    "memory_run_failures": "run_id",
}
_FIRST = {
    "conversations": "SELECT conversation_id FROM conversations WHERE session_id = 'first'",
    "conversation_messages": "SELECT message_id FROM conversation_messages WHERE message_id = 'm0'",
    "message_records": "SELECT message_id FROM message_records WHERE message_id = 'm0'",
    "memory_contents": "SELECT content_id FROM memory_contents ORDER BY position LIMIT 1",
}


@dataclass(frozen=True)
class Told:
    """The ids of what was recorded."""

    first: str
    second: str
    third: str


async def fill(place: Place) -> Told:
    """Three conversations of a user: two are learned from, and the run of the third has failed."""
    async with place.open(**OPTIONS) as store:
        said = [f"home: {SECRET} street 5", "health: allergic to peanuts", "garbage to nobody's taste"]
        talks = [await _record(store, number, text) for number, text in enumerate(said)]
        await store.close_conversation(talks[0])
        await store.change_conversation_settings(
            talks[0], memory_strategy={"mode": "none"}, memory_injection=True
        )
        await learn(store)
        await store.embed_pending()
    return Told(*talks)


async def _record(store: MemoryStore, number: int, text: str) -> str:
    messages = [
        {"role": "user", "content": text, "message_id": f"m{number}"},
        {"role": "assistant", "content": "I see.", "message_id": f"a{number}"},
    ]
    session = ("first", "second", "third")[number]
    return (await store.record_conversation(AGENT, USER, messages, session_id=session)).conversation_id


def corrupt(place: Place, case: Case) -> str:
    """Put a value into the first row of a table, whatever the database thinks of it; returns its id."""
    key = _KEYS[case.table]
    first = _FIRST.get(case.table, f"SELECT {key} FROM {case.table} ORDER BY {key} LIMIT 1")
    row_id = str(run_sql(place, first)[0][0])
    mark = "%s" if _is_server(place) else "?"
    run_sql(place, f"UPDATE {case.table} SET {case.column} = {mark} WHERE {key} = {mark}", case.value, row_id)
    return row_id


def _is_server(place: Place) -> bool:
    return place.url.startswith("postgresql")


def run_sql(place: Place, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement, past the store."""
    if _is_server(place):
        return sql(place.url.replace("+asyncpg", ""), text, *parameters)
    with closing(sqlite3.connect(place.url)) as connection, connection:
        return connection.execute(text, parameters).fetchall()
