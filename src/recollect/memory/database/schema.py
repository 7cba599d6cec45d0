"""The tables of long-term memory.

A memory belongs to one agent and one user. Its entries are rows of `memory_contents`. The messages that an
entry was learned from are in `memory_evidence`. Its terms are in `memory_terms`: by these it is found when
something similar is learned. The stamps of a memory change with its entries and messages, so that caches
notice it. `message_records` holds what the search needs of each message. A conversation has rows of messages;
from `learn_at` on, a run is due for those from `waiting_from` on. `message_items` says which session items
are copies of which messages. A run stores each finished stage. `memory_queue` says when a memory may be
claimed next, and who has its lease. `memory_keys` holds the secret of a tenant's receipts, and
`memory_embedders` the model of a tenant's vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...sql.description import Column, Index, PartialIndex, Table, View
from ...sql.schema import Schema


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
_INDEXED_DIMENSIONS = (384, 512, 1536)  # of our embedders; others are searched without an index
# Conditions of partial indexes: rows without a vector are found without reading all the others.
CURRENT_ENTRIES = "retired_at IS NULL"
EXPIRING_ENTRIES = "expires_at IS NOT NULL"
REJECTED_ENTRIES = "rejected_at IS NOT NULL"
INSTRUCTIONS = "content_type = 'instruction'"
SPOKEN_MESSAGES = "role <> 'system'"
WAITING_CONVERSATIONS = "learn_at IS NOT NULL"
TAGGED = "tags IS NOT NULL"
DESCRIBED = "metadata IS NOT NULL"
RECORDS_TO_MAKE = "head IS NULL"
SPENT_TOKENS = "prompt_tokens + completion_tokens > 0"
_LABELS = (Column("metadata", "json", required=False), Column("tags", "json", required=False))
# Filters read only the rows of a memory that have tags or metadata.
_LABELLED = (
    PartialIndex("tagged", ("memory_id",), TAGGED),
    PartialIndex("described", ("memory_id",), DESCRIBED),
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
        *_optional("valid_from", "valid_to"),  # a day, a month or a year
        *_times("retired_at", required=False),
        *_optional("superseded_by", "run_id"),
        *_VECTOR,
        *_LABELS,
        *_times("expires_at", "last_confirmed_at", "rejected_at", required=False),
    ),
    key=("content_id",),
    unique=(("memory_id", "position"),),
    indexes=(
        ("memory_id", "text_key"),
        ("memory_id", "slot"),
        ("superseded_by",),
        ("run_id",),
    ),
    partial=(
        PartialIndex("to_embed", ("tenant", "vector_model"), CURRENT_ENTRIES),
        *_LABELLED,
        PartialIndex("expiring", ("memory_id", "expires_at"), EXPIRING_ENTRIES),
        PartialIndex("to_purge", ("tenant", "expires_at"), EXPIRING_ENTRIES),
        PartialIndex("rejected", ("memory_id", "position"), REJECTED_ENTRIES),
        PartialIndex("instructions", ("memory_id", "position"), INSTRUCTIONS),
    ),
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
    # A search over many users. In a file it compares everything.
    named=(Index("recollect_memory_terms_tenant_term", ("tenant", "term"), database="server"),),
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
        Column("learn_at", "real", required=False),
        Column("waiting_from", "integer", required=False),
        Column("settings_version", "integer", required=False),
        *_LABELS,
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
        *_LABELLED,
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
        *_optional("name"),
        Column("attachments", "json", required=False),
    ),
    key=("conversation_id", "message_index"),
    unique=(("conversation_id", "message_id"),),
    indexes=(("memory_id",),),
    partial=(PartialIndex("to_embed", ("tenant", "vector_model"), SPOKEN_MESSAGES),),
    vector_dimensions=_INDEXED_DIMENSIONS,
)

# A row for each message that is searched. Without a head, its record is still to be made.
MESSAGE_RECORDS = Table(
    "message_records",
    (
        Column("conversation_id", parent="conversations.conversation_id"),
        _TENANT,
        Column("memory_id"),
        Column("message_id"),
        Column("stamp", "integer"),
        Column("vector_model", required=False),
        *(Column(name, "bytes", required=False) for name in ("head", "terms", "counts", "vectors")),
    ),
    key=("conversation_id", "message_id"),
    numbers="terms",
    indexes=(("memory_id", "stamp"),),
    partial=(PartialIndex("to_make", ("tenant",), RECORDS_TO_MAKE),),
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
        *_optional("error", "model", "kind"),
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
    MESSAGE_RECORDS,
    MESSAGE_ITEMS,
    RUNS,
    STAGES,
    FAILURES,
    QUEUE,
    KEYS,
    EMBEDDERS,
)


@dataclass(frozen=True)
class MemorySchema(Schema):
    """The schema of long-term memory."""

    @property
    def scope(self) -> str:
        """A database has one long-term memory."""
        return "memory"

    def described(self) -> Sequence[Table]:
        """The tables."""
        return TABLES

    def views(self) -> Sequence[View]:
        """Memories and conversations as documents, for people who write SQL."""
        from .views import VIEWS

        return VIEWS
