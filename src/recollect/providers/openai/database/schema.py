"""The tables of the provider: the turns of chats, and the tables of their sessions."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ....memory.database.schema import MemorySchema
from ....sessions.sql.tables import Tables
from ....sql.description import Column, PartialIndex, Table, create_in_sqlite, describe
from ....sql.schema import Schema, Step
from ....sql.scripts import Script

SESSIONS = "sdk_agent_sessions"
MESSAGES = "sdk_agent_session_messages"
# one_pair=False: other advanced sessions in a SQLite file may own the tables with fixed names.
SESSION_TABLES = Tables(SESSIONS, MESSAGES, advanced=True, one_pair=False)

RUNNING = "status = 'running'"

CHAT_TURNS = Table(
    "chat_turns",
    (
        Column("turn_id"),
        Column("tenant"),
        Column("conversation_id", parent="conversations.conversation_id"),
        Column("agent"),
        Column("status"),
        Column("error_code", required=False),
        Column("model"),
        Column("started_at", "time"),
        Column("finished_at", "time", required=False),
        Column("requests", "integer"),
        Column("input_tokens", "integer"),
        Column("output_tokens", "integer"),
        Column("user_message_id"),
        Column("assistant_message_id"),
        Column("details", "json"),
    ),
    key=("turn_id",),
    indexes=(("conversation_id", "started_at"), ("tenant", "started_at")),
    partial=(PartialIndex("running", ("conversation_id",), RUNNING),),
)


def create_turns() -> Script[None]:
    """Create the table of turns."""
    yield from create_in_sqlite([CHAT_TURNS])


@dataclass(frozen=True)
class ChatSchema(Schema):
    """The schema of the turns. Turns refer to conversations, so the schema of memory comes first."""

    @property
    def scope(self) -> str:
        """The name under which its steps are recorded: a database has one."""
        return "chat"

    def steps(self) -> Sequence[Step]:
        """One step: the table of turns."""
        return [Step("create_turns", create_turns)]

    def columns(self) -> Mapping[str, Set[str]]:
        """All columns, since no other program creates this table."""
        return {CHAT_TURNS.name: set(CHAT_TURNS.column_names)}

    def describe(self) -> Any:
        """The table as SQLAlchemy's `MetaData`. Conversations are part of another schema."""
        return describe([CHAT_TURNS], parents=MemorySchema().describe())
