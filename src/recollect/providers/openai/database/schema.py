"""The tables of the provider: the turns of chats, and the tables of their sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....memory.database.schema import MemorySchema
from ....sessions.sql.tables import Tables
from ....sql.description import Column, PartialIndex, Table, describe
from ....sql.schema import Schema

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


@dataclass(frozen=True)
class ChatSchema(Schema):
    """The schema of the turns. Turns refer to conversations, so the schema of memory comes first."""

    @property
    def scope(self) -> str:
        """The name under which its steps are recorded: a database has one."""
        return "chat"

    def described(self) -> Sequence[Table]:
        """One table."""
        return (CHAT_TURNS,)

    def describe(self) -> Any:
        """The table as SQLAlchemy's `MetaData`. Conversations are part of another schema."""
        return describe(self.described(), parents=MemorySchema().describe())
