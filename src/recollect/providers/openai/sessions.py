"""The sessions of chats: the items that a model sees, on tables of their own."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from ...errors import ConflictError, RunLockTimeoutError
from ...items import Item
from ...memory.conversation import Conversation, Message
from ...memory.database.message_items import ItemLinks
from ...memory.store import MemoryStore
from ...sessions.advanced.session import AdvancedSession
from ...sessions.advanced.sqlite import AdvancedSQLiteSession
from ...sessions.advanced.transaction import SessionTransaction
from ...sessions.protocol import SessionMetadata
from ...sessions.run_lock import run_lock
from ...sessions.sdk_hooks import encode_batch
from ...sql.scripts import Script, T, run_all
from ...sql.urls import is_in_memory, sqlite_path
from ..errors import ConversationBusyError
from .database.schema import MESSAGES, SESSIONS
from .database.turns import ChatTurns

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_TABLES: dict[str, Any] = {"sessions_table": SESSIONS, "messages_table": MESSAGES}
MIRRORED = "mirrored"
_BRANCHES = "branches"
_BATCH = 500  # messages


class ChatSession:
    """The session of one conversation, and how much of the conversation it mirrors.

    Two facts are stored in the `data` of the session's metadata, in one transaction with the items:
    `mirrored`, the index of the first message of the conversation that the session does not have, and
    `branches`, the branch and the turn that each branch was made from.
    """

    def __init__(self, session: AdvancedSession) -> None:
        self.session = session
        self._transaction = SessionTransaction(session)

    async def read_data(self) -> dict[str, Any]:
        """The data of the metadata; empty if the session does not exist yet."""
        return dict((await self.session.get_metadata()).data)

    async def read_mirrored(self) -> int:
        """The index of the first message of the conversation that the session does not have."""
        return int((await self.read_data()).get(MIRRORED, 0))

    async def mirror(self, copies: Mapping[str, Item], first: int, after: int, links: ItemLinks) -> bool:
        """Append the messages from index `first` up to `after`: their items, by the ids of the messages.

        Returns `False` if another call did it, or if the conversation no longer exists.
        """
        encoded = await encode_batch(list(copies.values()))
        return await self._transaction.run(partial(self._mirror, list(copies), encoded, first, after, links))

    async def create_branch(self, turn: int, name: str | None) -> str:
        """Make a branch of all items before a user turn, make it current, and store where it came from."""
        return await self._transaction.run(partial(self._create_branch, turn, name))

    async def run(self, make_script: Callable[[SessionTransaction], Script[T]]) -> T:
        """Run a transaction that is made of steps on the session and of others."""
        return await self._transaction.run(lambda: make_script(self._transaction))

    async def aclose(self) -> None:
        """Close the session."""
        await self.session.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _mirror(
        self, message_ids: list[str], encoded: list[str], first: int, after: int, links: ItemLinks
    ) -> Script[bool]:
        # Lock order: the conversation before the session.
        tenant = yield from links.share_conversation()
        if tenant is None:
            return False
        steps = self._transaction
        yield from steps.lock(make=True)
        data = yield from steps.read_data()
        if data.get(MIRRORED, 0) != first:
            return False
        if encoded:
            place = yield from steps.place()
            ids = yield from steps.append_items(encoded)
            linked = links.add(tenant, dict(zip(ids, message_ids, strict=True)))
            yield from run_all([*steps.structure(place, ids, encoded), *linked])
        yield from steps.write_data({**data, MIRRORED: after})
        return True

    def _create_branch(self, turn: int, name: str | None) -> Script[str]:
        steps = self._transaction
        yield from steps.lock(make=True)
        source = yield from steps.current_branch()
        branch = yield from steps.branch_off(turn, name)
        data = yield from steps.read_data()
        yield from steps.write_data({**data, _BRANCHES: {**data.get(_BRANCHES, {}), branch: [source, turn]}})
        return branch


def branch_origin(data: Mapping[str, Any], branch: str) -> tuple[str | None, int | None]:
    """The branch and the turn that a branch was made from; `None` for both if they are not stored."""
    source, turn = data.get(_BRANCHES, {}).get(branch, (None, None))
    return source, turn


class OpenAISQLAlchemySessionStore:
    """Opens the sessions of chats: in a SQLite file by our own engine, or on a server through SQLAlchemy.

    Give it a URL or path, or an `engine` of SQLAlchemy, which is used as it is and never disposed of. Files
    get their tables automatically, servers by `recollect migrate` unless `create_tables` is set.
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

    def open(
        self,
        session_id: str,
        metadata: SessionMetadata | None = None,
    ) -> AdvancedSession:
        """A handle on a session, which the caller closes. `metadata` are stored with its first items."""
        options: dict[str, Any] = {**_TABLES, "metadata": metadata}
        path = None if self._url is None else sqlite_path(self._url)
        if path is None:
            return self._open_on_server(session_id, options)
        # one_pair=False: the structure and usage tables of fixed names may belong to other sessions.
        return AdvancedSQLiteSession(session_id=session_id, db_path=path, one_pair=False, **options)

    def _open_on_server(self, session_id: str, options: Mapping[str, Any]) -> AdvancedSession:
        from ...sessions.advanced.sqlalchemy import AdvancedSQLAlchemySession  # a file does not need it

        # ensure_ascii=False: the database of the service is in UTF-8.
        options = {**options, "create_tables": self._create_tables, "ensure_ascii": False}
        if self._engine is not None:
            return AdvancedSQLAlchemySession(session_id, engine=self._engine, **options)
        assert self._url is not None
        return AdvancedSQLAlchemySession.from_url(
            session_id, url=self._url, engine_kwargs=self._engine_kwargs, **options
        )

    def chat(self, conversation: Conversation, tenant: str, session_id: str) -> ChatSession:
        """The session of a conversation, which the caller closes. The begin of a turn checks its owner."""
        return ChatSession(self.open(session_id, owner_of(conversation, tenant)))

    async def open_chat(self, conversation: Conversation, tenant: str, session_id: str) -> ChatSession:
        """The session of a conversation, which the caller closes.

        Raises a `ConflictError` if the session belongs to another conversation.
        """
        chat = self.chat(conversation, tenant, session_id)
        try:
            check_owner(await chat.read_data(), conversation.conversation_id)
        except BaseException:
            await chat.aclose()
            raise
        return chat

    @asynccontextmanager
    async def lock(self, conversation_id: str, timeout: float, lease: float) -> AsyncIterator[None]:
        """Run one turn at a time on a conversation, in all processes that use its database.

        Raises a `ConversationBusyError` if another turn holds the lock for longer than `timeout` seconds. The
        lock uses our own id of the conversation, also if its session has another id.
        """
        async with self.open(conversation_id) as session:
            lock = run_lock(session, timeout=timeout, lease=lease)
            try:
                await lock.__aenter__()
            except RunLockTimeoutError as error:
                raise ConversationBusyError(conversation_id, timeout) from error
            try:
                yield
            finally:
                await lock.__aexit__(None, None, None)


def owner_of(conversation: Conversation, tenant: str) -> SessionMetadata:
    """The owner of a session, as its metadata: exports and erasures of a user find the session by it."""
    data = {"tenant": tenant, "conversation_id": conversation.conversation_id}
    return SessionMetadata(conversation.user_id, conversation.agent_id, None, data)


def check_owner(data: Mapping[str, Any], conversation_id: str) -> None:
    """Raise a `ConflictError` if the data of a session name another conversation."""
    if data.get("conversation_id", conversation_id) != conversation_id:
        raise ConflictError("the session belongs to another conversation")


# --- messages as items ---


def item_from_message(message: Message) -> Item:
    """A message as an item of the Agents SDK. Lone surrogates are replaced, since no API accepts them."""
    return {"role": message.role, "content": message.content.encode("utf-8", "replace").decode()}


def items_to_mirror(messages: Sequence[Message], answers: Set[str]) -> dict[str, Item]:
    """The items of messages by their ids, without the answers of turns: a run stores its answer itself."""
    return {each.message_id: item_from_message(each) for each in messages if each.message_id not in answers}


async def mirror_messages(
    chat: ChatSession, store: MemoryStore, turns: ChatTurns, conversation_id: str
) -> None:
    """Append to a session the messages of its conversation that it does not have, in batches."""
    is_complete = False
    while not is_complete:
        first = await chat.read_mirrored()
        after = first - 1 if first else None
        found = await store.list_messages(conversation_id, after=after, limit=_BATCH) or []
        if not found:
            return
        answers = await turns.answers_among(conversation_id, found)
        copies, links = items_to_mirror(found, answers), turns.item_links(conversation_id)
        is_ours = await chat.mirror(copies, first, found[-1].message_index + 1, links)
        is_complete = is_ours and len(found) < _BATCH
