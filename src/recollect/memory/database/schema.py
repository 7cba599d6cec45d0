"""The tables of long-term memory.

A memory stands for one agent and one user. Its entries are rows of `memory_contents`, each with the messages
that it was learned from in `memory_evidence`, and its terms in `memory_terms`, by which it is found when
something is learned. Its stamps tell whoever holds a copy of its entries or turns that they have changed.
Conversations are rows with their messages; `learn_at` is when the messages from `waiting_from` on are to be
learned from. What is to be learned is a run, which keeps each stage that is finished. `memory_queue` says
when a memory may next be worked on, and by whom. `memory_keys` holds the secret under which a tenant's
receipts name whose data was erased, `memory_embedders` the model that a tenant's vectors are made with.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ...sql.description import (
    Column,
    PartialIndex,
    Table,
    add_columns_in_sqlite,
    create_in_sqlite,
    describe,
    put_key_first,
)
from ...sql.schema import Schema, Step
from ...sql.scripts import Script, Statement


def _optional(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, required=False) for name in names)


def _texts(*names: str) -> tuple[Column, ...]:
    return tuple(map(Column, names))


def _times(*names: str, required: bool = True) -> tuple[Column, ...]:
    return tuple(Column(name, "time", required) for name in names)


_TENANT = Column("tenant")
_VECTOR = (
    Column("content_vector", "vector", required=False),
    Column("vector_model", required=False),
    Column("vector_dimension", "integer", required=False),
)
_INDEXED_DIMENSIONS = (384, 512, 1536)  # of the embedders that there are; others are searched without
# Rows without a vector of the model in use are found at a cost that does not grow with all the others.
TOLD_ENTRIES = "retired_at IS NULL"
SPOKEN_MESSAGES = "role <> 'system'"
WAITING_CONVERSATIONS = "learn_at IS NOT NULL"
SPENT_TOKENS = "prompt_tokens + completion_tokens > 0"
# Of conversations; files that were made before get them in a step of their own.
_ADDED_LATER: tuple[Column, ...] = (
    Column("learn_at", "real", required=False),
    Column("waiting_from", "integer", required=False),
    Column("settings_version", "integer", required=False),
)
_METADATA = (Column("metadata", "json", required=False),)
_OF_MESSAGES = (*_optional("name"), Column("attachments", "json", required=False))
_REPLACED_INDEXES = (
    "recollect_conversations_memory_id_created_at",
    "recollect_conversations_session_id",
    "recollect_memory_runs_tenant_status_created_at",
)

MEMORIES = Table(
    "memories",
    (
        *_texts("memory_id", "tenant", "agent_id", "user_id", "owner_key", "user_key"),
        *_times("created_at", "updated_at"),
        Column("version", "integer"),
        Column("next_position", "integer"),
        Column("entries_stamp", "integer"),
        Column("turns_stamp", "integer"),
    ),
    key=("memory_id",),
    unique=(("owner_key",),),
    indexes=(("user_key",), ("tenant", "memory_id"), ("tenant", "user_key")),
)

CONTENTS = Table(
    "memory_contents",
    (
        Column("content_id"),
        _TENANT,
        Column("memory_id", parent="memories.memory_id"),
        Column("position", "integer"),
        *_texts("content_type", "content_text"),
        Column("content_data", "json"),
        Column("text_key"),
        *_optional("slot"),
        Column("confidence", "real"),
        *_times("learned_at"),
        *_times("said_at", required=False),
        *_optional("valid_from", "valid_to"),  # a day, a month or a year, and so no times
        *_times("retired_at", required=False),
        *_optional("superseded_by", "run_id"),
        *_VECTOR,
        *_METADATA,
    ),
    key=("content_id",),
    unique=(("memory_id", "position"),),
    indexes=(
        ("memory_id", "text_key"),
        ("memory_id", "slot"),
        ("superseded_by",),
        ("run_id",),
    ),
    partial=(PartialIndex("to_embed", ("tenant", "vector_model"), TOLD_ENTRIES),),
    vector_dimensions=_INDEXED_DIMENSIONS,
)

EVIDENCE = Table(
    "memory_evidence",
    (
        Column("content_id", parent="memory_contents.content_id"),
        _TENANT,
        *_texts("conversation_id", "message_id"),
        Column("source"),
        Column("place", "integer"),
        Column("wording"),
    ),
    key=("content_id", "source", "conversation_id", "message_id"),
    indexes=(("conversation_id", "message_id"),),
)

TERMS = Table(
    "memory_terms",
    (
        Column("memory_id", parent="memories.memory_id"),
        _TENANT,
        Column("term"),
        Column("position", "integer"),
    ),
    key=("memory_id", "term", "position"),
    indexes=(("memory_id", "position"),),
    without_rowid=True,
)

CONVERSATIONS = Table(
    "conversations",
    (
        *_texts("conversation_id", "tenant", "agent_id", "user_id", "session_id"),
        Column("memory_id", parent="memories.memory_id"),
        *_times("created_at", "updated_at"),
        *_times("closed_at", required=False),
        *_optional("provider_conversation_id"),
        Column("memory_strategy", "json", required=False),
        *_optional("memory_injection"),
        Column("next_index", "integer"),
        Column("pipeline_result", "json", required=False),
        *_ADDED_LATER,
        *_METADATA,
    ),
    key=("conversation_id",),
    indexes=(
        ("memory_id", "created_at", "conversation_id"),
        ("session_id", "created_at", "conversation_id"),
        ("tenant", "created_at", "conversation_id"),
        ("tenant", "updated_at"),
    ),
    partial=(
        PartialIndex("due", ("learn_at",), WAITING_CONVERSATIONS),
        PartialIndex("provided", ("provider_conversation_id",), "provider_conversation_id IS NOT NULL"),
    ),
)

MESSAGES = Table(
    "conversation_messages",
    (
        Column("conversation_id", parent="conversations.conversation_id"),
        _TENANT,
        Column("memory_id"),
        Column("message_index", "integer"),
        *_texts("message_id", "role", "content"),
        *_times("created_at"),
        *_VECTOR,
        *_OF_MESSAGES,
    ),
    key=("conversation_id", "message_index"),
    unique=(("conversation_id", "message_id"),),
    indexes=(("memory_id",),),
    partial=(PartialIndex("to_embed", ("tenant", "vector_model"), SPOKEN_MESSAGES),),
    vector_dimensions=_INDEXED_DIMENSIONS,
)

MESSAGE_ITEMS = Table(
    "message_items",
    (
        Column("conversation_id", parent="conversations.conversation_id"),
        _TENANT,
        Column("items_table"),
        Column("item_id", "integer"),
        Column("message_id"),
    ),
    key=("conversation_id", "items_table", "item_id"),
)

RUNS = Table(
    "memory_runs",
    (
        *_texts("run_id", "tenant"),
        Column("memory_id", parent="memories.memory_id"),
        Column("conversation_id", parent="conversations.conversation_id"),
        Column("sequence", "integer"),
        Column("first_index", "integer"),
        Column("last_index", "integer"),
        Column("status"),
        Column("is_open", "integer"),
        Column("attempts", "integer"),
        *_times("created_at"),
        *_times("started_at", "finished_at", required=False),
        *_optional("error", "model"),
    ),
    key=("run_id",),
    unique=(("memory_id", "sequence"),),
    indexes=(
        ("memory_id", "is_open", "sequence"),
        ("conversation_id",),
        ("tenant", "status", "run_id"),
        ("tenant", "status", "created_at", "run_id"),
    ),
)

STAGES = Table(
    "memory_run_stages",
    (
        Column("run_id", parent="memory_runs.run_id"),
        _TENANT,
        *_texts("stage", "model"),
        *_times("finished_at"),
        Column("result", "json"),
        Column("raw_response"),
        Column("prompt_tokens", "integer"),
        Column("completion_tokens", "integer"),
    ),
    key=("run_id", "stage"),
    partial=(PartialIndex("spent", ("tenant", "finished_at"), SPENT_TOKENS),),
)

FAILURES = Table(
    "memory_run_failures",
    (
        Column("run_id", parent="memory_runs.run_id"),
        _TENANT,
        Column("attempt", "integer"),
        Column("stage"),
        *_times("failed_at"),
        *_texts("error", "raw_response"),
        Column("prompt_tokens", "integer"),
        Column("completion_tokens", "integer"),
    ),
    key=("run_id", "attempt"),
    partial=(PartialIndex("spent", ("tenant", "failed_at"), SPENT_TOKENS),),
)

QUEUE = Table(
    "memory_queue",
    (
        Column("memory_id", parent="memories.memory_id"),
        _TENANT,
        Column("available_at", "real"),
        *_optional("lease"),
    ),
    key=("memory_id",),
    indexes=(("available_at",), ("tenant", "available_at")),
)

KEYS = Table("memory_keys", _texts("tenant", "secret"), key=("tenant",))

EMBEDDERS = Table(
    "memory_embedders", (*_texts("tenant", "vector_model"), *_times("chosen_at")), key=("tenant",)
)

TABLES = (
    MEMORIES,
    CONTENTS,
    EVIDENCE,
    TERMS,
    CONVERSATIONS,
    MESSAGES,
    MESSAGE_ITEMS,
    RUNS,
    STAGES,
    FAILURES,
    QUEUE,
    KEYS,
    EMBEDDERS,
)


def create_tables() -> Script[None]:
    """All tables, where they are missing."""
    yield from create_in_sqlite(TABLES)


def add_quiet_conversations() -> Script[None]:
    """What a file of before lacks: when conversations are to be learned from, and what lists them."""
    yield from add_columns_in_sqlite(CONVERSATIONS, _ADDED_LATER)
    for name in _REPLACED_INDEXES:
        yield Statement(f"DROP INDEX IF EXISTS {name}")
    yield from create_in_sqlite((CONVERSATIONS, RUNS))


def add_times_of_runs() -> Script[None]:
    """What a file of before lacks: the indexes that list runs by their age, and their tokens by day."""
    yield from create_in_sqlite((RUNS, STAGES, FAILURES))


def put_key_of_terms_first() -> Script[None]:
    """Give the terms of an older file the order of columns that SQLite's `integrity_check` expects."""
    yield from put_key_first(TERMS)


def add_names_and_metadata() -> Script[None]:
    """Names and attachments of messages, metadata of conversations and entries, and an index of users."""
    for table, columns in _NAMES_AND_METADATA.items():
        yield from add_columns_in_sqlite(table, columns)
    yield from create_in_sqlite((MEMORIES,))


def add_message_items() -> Script[None]:
    """The table that says which session items are copies of which messages."""
    yield from create_in_sqlite((MESSAGE_ITEMS,))


_NAMES_AND_METADATA = {CONVERSATIONS: _METADATA, CONTENTS: _METADATA, MESSAGES: _OF_MESSAGES}
_STEPS = (
    create_tables,
    add_quiet_conversations,
    add_times_of_runs,
    put_key_of_terms_first,
    add_names_and_metadata,
    add_message_items,
)


@dataclass(frozen=True)
class MemorySchema(Schema):
    """The schema of long-term memory."""

    @property
    def scope(self) -> str:
        """There is one in a database."""
        return "memory"

    def steps(self) -> Sequence[Step]:
        """The tables, and what was added to them."""
        return [Step(step.__name__, step) for step in _STEPS]

    def columns(self) -> Mapping[str, Set[str]]:
        """All that were there from the beginning: nobody else makes these tables."""
        later = {CONVERSATIONS.name: {column.name for column in _ADDED_LATER}}
        for table, columns in _NAMES_AND_METADATA.items():
            later.setdefault(table.name, set()).update(column.name for column in columns)
        first = (table for table in TABLES if table is not MESSAGE_ITEMS)
        return {table.name: set(table.column_names) - later.get(table.name, set()) for table in first}

    def describe(self) -> Any:
        """As SQLAlchemy's `MetaData`."""
        return describe(TABLES)
