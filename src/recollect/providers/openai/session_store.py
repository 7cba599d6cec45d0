"""Where the items of chats are kept: sessions on tables of their own, beside all other sessions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...errors import ConflictError
from ...memory.conversation import Conversation
from ...sessions.protocol import SessionMetadata
from ...sql.urls import is_in_memory, sqlite_path
from .chat_session import ChatSession, ChatSQLAlchemySession, ChatSQLiteSession
from .database.schema import MESSAGES, SESSIONS

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_TABLES: dict[str, Any] = {"sessions_table": SESSIONS, "messages_table": MESSAGES}


class OpenAISQLAlchemySessionStore:
    """Opens the sessions of chats, on a SQLite file by our own engine, or on a server through SQLAlchemy.

    Give it a URL or path, or an `engine` of SQLAlchemy, which is used as it is and never disposed of. Files
    get their tables by themselves, servers by `recollect migrate` unless `create_tables` is set.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        engine: "AsyncEngine | None" = None,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if (url is None) == (engine is None):
            raise ValueError("give a url or an engine, one of them")
        if url is not None and is_in_memory(url):
            raise ValueError("chats need a database that its parts can share: a file, and not :memory:")
        self._url = url
        self._engine = engine
        self._create_tables = create_tables
        self._engine_kwargs = dict(engine_kwargs or {})

    def open(self, session_id: str, metadata: SessionMetadata | None = None) -> ChatSession:
        """A handle on a session, which the caller closes; `metadata` are stored with its first items."""
        options: dict[str, Any] = {**_TABLES, "metadata": metadata}
        if self._engine is not None:
            return ChatSQLAlchemySession(
                session_id,
                engine=self._engine,
                create_tables=self._create_tables,
                ensure_ascii=False,
                **options,
            )
        assert self._url is not None
        path = sqlite_path(self._url)
        if path is not None:
            return ChatSQLiteSession(session_id=session_id, db_path=path, **options)
        return ChatSQLAlchemySession.from_url(
            session_id,
            url=self._url,
            engine_kwargs=self._engine_kwargs,
            create_tables=self._create_tables,
            ensure_ascii=False,  # the database of the service is in UTF-8
            **options,
        )

    async def open_for(self, conversation: Conversation, tenant: str, session_id: str) -> ChatSession:
        """The session of a conversation; a `ConflictError` if it is that of another."""
        session = self.open(session_id, owner_of(conversation, tenant))
        try:
            known = await session.known()
            if known.get("conversation_id", conversation.conversation_id) != conversation.conversation_id:
                raise ConflictError("the session belongs to another conversation")
        except BaseException:
            await session.aclose()
            raise
        return session


def owner_of(conversation: Conversation, tenant: str) -> SessionMetadata:
    """Whose session it is: by this it is found when a user's data are exported or erased."""
    data = {"tenant": tenant, "conversation_id": conversation.conversation_id}
    return SessionMetadata(conversation.user_id, conversation.agent_id, None, data)
