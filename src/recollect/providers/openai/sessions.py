"""The sessions of chats: the items that a model sees, in tables of their own."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ...errors import ConflictError, RunLockTimeoutError
from ...items import Item, decode_item, encode_items, role_of
from ...memory.conversation import Conversation, Message
from ...memory.database.message_items import ItemLinks
from ...memory.store import MemoryStore
from ...sessions.advanced.scripts import Place
from ...sessions.advanced.session import AdvancedSession
from ...sessions.advanced.sqlalchemy import AdvancedSQLAlchemySession
from ...sessions.advanced.sqlite import AdvancedSQLiteSession
from ...sessions.protocol import SessionMetadata
from ...sessions.run_lock import run_lock
from ...sessions.sdk_hooks import encode_batch
from ...sessions.sql.dialects import queries_for
from ...sql.scripts import MakeScript, Row, Script, Statement
from ...sql.urls import is_in_memory, sqlite_path
from ...strategies.session import StrategySession
from ...strategies.summaries import ConversationSummaryStore
from ...strategies.summarizers.protocol import Summarizer
from ...strategies.values import Strategy
from ..errors import ConversationBusyError, TurnLostError
from .database.schema import MESSAGES, SESSION_TABLES, SESSIONS
from .database.turns import ChatTurns

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_MIRRORED = "mirrored"
_BRANCHES = "branches"
_LAST_ITEM = 'SELECT coalesce(max(id), 0) FROM "{}" WHERE session_id = ?1'
_ITEMS_AFTER = 'SELECT id, message_data FROM "{}" WHERE session_id = ?1 AND id > ?2 ORDER BY id'


class ChatSession(AdvancedSession):
    """What the sessions of chats share. What they know is part of their metadata, in one transaction with it.

    The messages of the conversation before the index `mirrored` are in the session, or need not be.
    """

    _is_held: MakeScript[bool] | None = None

    def write_only_while(self, is_held: MakeScript[bool]) -> None:
        """Refuse items, with a `TurnLostError`, once this is so no more: it is asked in their transaction.

        A run that has lost its conversation to another, and does not know it yet, writes nothing into that.
        """
        self._is_held = is_held

    async def known(self) -> dict[str, Any]:
        """What is stored beside the items; empty where there is no session yet."""
        return dict((await self.get_metadata()).data)

    async def mirrored(self) -> int:
        """The index of the first message of the conversation that the session does not have."""
        return int((await self.known()).get(_MIRRORED, 0))

    async def mirror(self, copies: Mapping[str, Item], first: int, after: int, links: ItemLinks) -> bool:
        """Append the messages from `first` on, up to `after`: their items, by the ids of the messages.

        Returns `False` if that was done before, or if the conversation no longer exists.
        """
        encoded = await encode_batch(list(copies.values()))
        return await self._write(partial(self._mirror, list(copies), encoded, first, after, links))

    async def link_answer(self, message_id: str, after: int, links: ItemLinks) -> None:
        """Store that the newest assistant message after a position is a copy of this message."""
        await self._write(partial(self._link_answer, message_id, after, links))

    async def create_branch(self, turn: int, name: str | None) -> str:
        """As `create_branch_from_turn`, and remember what it was made from."""
        return await self._write(partial(self._branch_off_noted, turn, name))

    async def place(self) -> Place:
        """Where the session stands: its current branch, the newest user turn of that, and the newest item."""
        await self._scope()  # items that no branch shows are taken into one
        place = self._branch_queries.place
        return await self._engine.fetch(place, (self.session_id,), lambda rows: Place(*rows[0]))

    async def undo_after(self, branch: str, position: int, end: MakeScript[bool]) -> bool:
        """Remove from a branch what stands after a position: a run that failed leaves nothing half done.

        `end` is done first, in the same transaction; where it says `False`, nothing is removed.
        """
        return await self._write(partial(self._undo_after, branch, position, end))

    def _append(self, encoded: list[str]) -> Script[None]:
        yield from self._check_held()
        yield from super()._append(encoded)

    def _pop(self, accept: Callable[[Item], bool] | None = None) -> Script[Item | None]:
        yield from self._check_held()
        return (yield from super()._pop(accept))

    def _check_held(self) -> Script[None]:
        if self._is_held is None:
            return
        yield from self._lock()  # so that whoever ends the run comes before this, or undoes it
        if not (yield from self._is_held()):
            raise TurnLostError

    def _mirror(
        self, message_ids: list[str], encoded: list[str], first: int, after: int, links: ItemLinks
    ) -> Script[bool]:
        tenant = yield from links.share_conversation()
        if tenant is None:
            return False
        yield from self._lock(make=True)
        known = yield from self._known_within()
        if known.get(_MIRRORED, 0) != first:
            return False
        if encoded:
            ((last,),) = yield Statement(_LAST_ITEM.format(links.items_table), (self.session_id,))
            yield from self._append(encoded)
            rows = yield from self._items_after(links.items_table, last)
            ids = [item_id for item_id, _ in rows]
            yield from links.add(tenant, dict(zip(ids, message_ids, strict=True)))
        yield from self._know({**known, _MIRRORED: after})
        return True

    def _link_answer(self, message_id: str, after: int, links: ItemLinks) -> Script[None]:
        tenant = yield from links.share_conversation()
        if tenant is None:
            return
        yield from self._lock()
        for item_id, stored in reversed((yield from self._items_after(links.items_table, after))):
            item = decode_item(stored)
            if item is not None and role_of(item) == "assistant":
                yield from links.add(tenant, {item_id: message_id})
                return

    def _items_after(self, table: str, position: int) -> Script[list[Row]]:
        return (yield Statement(_ITEMS_AFTER.format(table), (self.session_id, position)))

    def _branch_off_noted(self, turn: int, name: str | None) -> Script[str]:
        yield from self._lock(make=True)
        _, source = yield from self._scope_within()
        branch = yield from self._branch_off(turn, name)
        known = yield from self._known_within()
        made_from = {**known.get(_BRANCHES, {}), branch: [source, turn]}
        yield from self._know({**known, _BRANCHES: made_from})
        return branch

    def _undo_after(self, branch: str, position: int, end: MakeScript[bool]) -> Script[bool]:
        if not (yield from end()):
            return False
        yield from self._lock()
        yield from self._remove_after((self.session_id, branch), position)
        return True

    def _known_within(self) -> Script[dict[str, Any]]:
        rows: list[Row] = yield Statement(self._queries.get_metadata, (self.session_id,))
        stored = rows[0][3] if rows else (self._new_metadata or (None, None, None, "{}"))[3]
        known: dict[str, Any] = json.loads(stored)
        return known

    def _know(self, known: Mapping[str, Any]) -> Script[None]:
        user_id, agent_id, title, _ = self._new_metadata or (None, None, None, "")
        (data,) = encode_items([dict(known)])
        yield from self._describe((user_id, agent_id, title, data))


class ChatSQLiteSession(ChatSession, AdvancedSQLiteSession):
    """The session of a chat in a SQLite file."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Tables of structure and usage under names of their own: the fixed ones may be those of others.
        self._queries = queries_for("sqlite", SESSION_TABLES)
        self._reads = self._reads_of(self._queries)


class ChatSQLAlchemySession(ChatSession, AdvancedSQLAlchemySession):
    """The session of a chat on a database server."""


def made_from(known: Mapping[str, Any], branch: str) -> tuple[str | None, int | None]:
    """The branch and the turn that a branch was made from, as far as that is known."""
    source, turn = known.get(_BRANCHES, {}).get(branch, (None, None))
    return source, turn


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


class ChatSessionManager:
    """Gives runs their sessions, and keeps the summaries that these make."""

    def __init__(
        self,
        store: OpenAISQLAlchemySessionStore,
        summaries: ConversationSummaryStore,
        summarizer: Summarizer | None = None,
    ) -> None:
        self.store = store
        self._summaries = summaries
        self._summarizer = summarizer

    async def acquire_session(
        self, conversation: Conversation, tenant: str, session_id: str, strategy: Strategy | None
    ) -> StrategySession:
        """The session of a conversation under a strategy; whoever asked closes it."""
        return self.viewed(await self.store.open_for(conversation, tenant, session_id), strategy)

    def viewed(self, session: ChatSession, strategy: Strategy | None) -> StrategySession:
        """A session as a strategy shows it."""
        return StrategySession(
            session, strategy, summarizer=self._summarizer, on_summary=self._summaries.on_summary
        )


def log_of(session: StrategySession) -> ChatSession:
    """The session itself, with all that is stored."""
    return cast(ChatSession, session.wrapped)


_AT_ONCE = 500  # messages


def item_of(message: Message) -> Item:
    """A message as the Agents SDK writes one; halves of characters, which no API takes, are replaced."""
    return {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}


def items_to_add(messages: Sequence[Message], answers: Set[str]) -> dict[str, Item]:
    """The items of messages, by their ids, without the answers of chats: a run has added those itself."""
    return {each.message_id: item_of(each) for each in messages if each.message_id not in answers}


async def mirror_messages(
    session: ChatSession, store: MemoryStore, turns: ChatTurns, conversation_id: str
) -> None:
    """Append to a session what its conversation has and it has not, some at a time."""
    is_whole = False
    while not is_whole:
        first = await session.mirrored()
        after = first - 1 if first else None
        found = await store.list_messages(conversation_id, after=after, limit=_AT_ONCE) or []
        if not found:
            return
        answers = await turns.answers_among(conversation_id, found)
        copies, links = items_to_add(found, answers), turns.item_links(conversation_id)
        was_mine = await session.mirror(copies, first, found[-1].message_index + 1, links)
        is_whole = was_mine and len(found) < _AT_ONCE


@asynccontextmanager
async def alone_on(
    store: OpenAISQLAlchemySessionStore, conversation_id: str, timeout: float, lease: float
) -> AsyncIterator[None]:
    """Hold a conversation; a `ConversationBusyError` if another holds it for longer than `timeout` seconds.

    The lock goes by our own id of the conversation, whatever its session is called.
    """
    session = store.open(conversation_id)
    lock = run_lock(session, timeout=timeout, lease=lease)
    try:
        try:
            await lock.__aenter__()
        except RunLockTimeoutError as error:
            raise ConversationBusyError(conversation_id, timeout) from error
        try:
            yield
        finally:
            await lock.__aexit__(None, None, None)
    finally:
        await session.aclose()
