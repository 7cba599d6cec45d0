"""Sessions in OpenAI's store, through the Conversations API."""

import asyncio
import json
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import WeakKeyDictionary, ref

from ..errors import (
    ConversationNotCreatedError,
    InvalidItemError,
    PartialBatchError,
    SessionClosedError,
    StorageError,
)
from ..event_loops import PerLoop
from ..extras import require_extra
from ..items import Item, encode_items, is_tail
from ..models.clients import can_copy, close_client, copy_client
from ..models.errors import retry_after_seconds
from .protocol import Items, Session, SessionABC

if TYPE_CHECKING:
    import openai
    from openai import AsyncOpenAI

    _Base = SessionABC
else:
    try:
        import openai
    except ImportError:
        openai = None  # the constructor raises MissingExtraError
    try:
        from agents.memory import OpenAIConversationsSession as _SdkSession
        from agents.memory import Session as _SdkProtocol
    except ImportError:
        _Base = SessionABC
    else:
        # The Runner checks for the SDK's class with isinstance, and treats its items specially.
        class _Base(SessionABC, _SdkSession):
            """The base of our sessions and the SDK's class that ours replaces."""

        _SdkProtocol.register(_Base)

T = TypeVar("T")

_BATCH = 20  # items that the API accepts in a request
_PAGE = 100  # items that it returns in a response
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0  # seconds before a rejected request is sent again
_LONGEST_RETRY_AFTER = 120.0  # seconds; if the API asks for more, the request fails


async def start_openai_conversations_session(openai_client: "AsyncOpenAI | None" = None) -> str:
    """Create a conversation and return its id."""
    async with OpenAIConversationsSession(openai_client=openai_client) as session:
        return await session._get_session_id()


class OpenAIConversationsSession(_Base):
    """A session in a conversation of OpenAI. The first call that needs the conversation creates it.

    Without a client it uses the default client of the Agents SDK if one was set, otherwise `AsyncOpenAI()`.

    A cancelled call returns to its caller at once. A write in progress is still finished, and later calls
    wait for it. A batch is therefore not torn, and no write happens after a later call.
    """

    def __init__(
        self,
        *,
        conversation_id: str | None = None,
        openai_client: "AsyncOpenAI | None" = None,
        session_settings: Any = None,
    ) -> None:
        require_extra("openai", "openai", type(self).__name__)
        # The base class validates the id. A conversation that does not exist yet has a placeholder.
        super().__init__("not created" if conversation_id is None else conversation_id, session_settings)
        self._session_id = conversation_id
        self._client_is_ours = False
        if openai_client is None:
            openai_client = _default_client()
        if openai_client is None:
            openai_client = openai.AsyncOpenAI()
            self._client_is_ours = True
        self._openai_client: AsyncOpenAI = openai_client
        self._clients = _copies_of(openai_client)
        self._lock = CrossLoopLock()
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def session_id(self) -> str:
        """The id of the conversation. Raises `ConversationNotCreatedError` before it is created."""
        if self._session_id is None:
            raise ConversationNotCreatedError
        return self._session_id

    @session_id.setter
    def session_id(self, conversation_id: str) -> None:
        self._session_id = conversation_id

    async def _get_session_id(self) -> str:
        """The id of the conversation, which is created if there is none. The SDK's class has this too."""
        self._check_open()
        return await self._run_exclusively(self._conversation)

    # --- the contract ---

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them.

        What was remembered for a question and sent with it is no part of the history, and is left out.
        """
        limit = self._effective_limit(limit)
        if self._session_id is None:
            await self._run_exclusively(self._conversation)
        if limit == 0:
            return []
        turn = await self._lock.acquire()
        try:
            return await self._read(await self._conversation(), limit)
        finally:
            self._lock.release(turn)

    async def add_items(self, items: Items) -> None:
        """Append a batch: up to 20 items atomically, more in batches of 20.

        An error of the API is raised unchanged if nothing of the batch was stored. If part of it was stored,
        `PartialBatchError` says how much.
        """
        self._check_open()
        copies = _sendable(items)
        if copies:
            await self._run_exclusively(partial(self._append, copies))

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        return await self._run_exclusively(self._pop)

    async def clear_session(self) -> None:
        """Delete the conversation. The next call that needs one creates another, with another id."""
        self._check_open()
        await self._run_exclusively(self._delete)

    def close(self) -> None:
        """Reject further calls, and release a client that was created here. Idempotent."""
        self._closed = True
        if self._client_is_ours:
            self._clients.forget_all()

    async def aclose(self) -> None:
        """Like `close`, after the running operation has ended."""
        self._closed = True
        if self._client_is_ours:
            turn = await self._lock.acquire()
            try:
                await self._clients.aclose()
                await self._openai_client.close()
            finally:
                self._lock.release(turn)

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosedError(self._session_id or "of a conversation not yet created")

    # --- requests; all of them run while this session holds its lock ---

    async def _run_exclusively(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run an operation under the lock. It runs to its end even if the caller is cancelled.

        A cancelled caller does not wait for the end; the lock is released only then.
        """
        turn = await self._lock.acquire()
        task = asyncio.create_task(operation())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self._lock.release(turn))
        return await asyncio.shield(task)

    async def _conversation(self) -> str:
        """The id of the conversation, which is created if there is none."""
        if self._session_id is None:
            client = self._client()
            response = await client.conversations.with_raw_response.create(items=[])
            with _check_response():
                created = response.parse().id
                if not isinstance(created, str):
                    raise TypeError("the id of the conversation is missing")
            self._session_id = created
        return self._session_id

    async def _append(self, items: list[Item]) -> None:
        conversation_id = await self._conversation()
        for start in range(0, len(items), _BATCH):
            batch = items[start : start + _BATCH]
            try:
                await self._append_batch(conversation_id, batch)
            except openai.OpenAIError as error:
                if start == 0:
                    raise
                in_doubt = len(batch) if _may_have_succeeded(error) else 0
                raise PartialBatchError(start, in_doubt, len(items)) from error

    async def _append_batch(self, conversation_id: str, batch: list[Any]) -> None:
        await self._send_once(
            lambda client: client.conversations.items.with_raw_response.create(conversation_id, items=batch)
        )

    async def _pop(self) -> Item | None:
        conversation_id = await self._conversation()
        missed = None
        while newest := await self._read(conversation_id, 1):
            item = newest[0]
            try:
                await self._delete_item(conversation_id, item["id"])
            except openai.NotFoundError:
                if item["id"] == missed:
                    raise
                missed = item["id"]  # another client popped it between our two requests
            else:
                return item
        return None

    async def _delete_item(self, conversation_id: str, item_id: str) -> None:
        await self._send_once(
            lambda client: client.conversations.items.with_raw_response.delete(
                item_id, conversation_id=conversation_id
            )
        )

    async def _delete(self) -> None:
        if (conversation_id := self._session_id) is None:
            return
        client = self._client()
        with suppress(openai.NotFoundError):  # it is already deleted
            await client.conversations.with_raw_response.delete(conversation_id)
        if self._session_id == conversation_id:
            self._session_id = None

    async def _read(self, conversation_id: str, limit: int | None) -> list[Item]:
        """All items, or the newest `limit`, oldest first, in as few pages as possible."""
        order: Literal["asc", "desc"] = "asc" if limit is None else "desc"
        client = self._client()
        found: list[Item] = []
        after: str | None = ""
        while after is not None and (limit is None or len(found) < limit):
            response = await client.conversations.items.with_raw_response.list(
                conversation_id,
                order=order,
                limit=_PAGE if limit is None else min(_PAGE, limit - len(found)),
                after=after or openai.omit,
            )
            with _check_response():
                page = response.parse()
                items = [item.model_dump(exclude_unset=True, warnings=False) for item in page.data]
                found += [item for item in items if not is_tail(item)]
                after = page.last_id if page.has_next_page() else None
        return found if limit is None else found[:limit][::-1]

    async def _send_once(self, request: Callable[["AsyncOpenAI"], Awaitable[object]]) -> None:
        """Send a request that must not be executed twice.

        The client would retry it after a lost response, although the API may have executed it. Here it is
        retried, as often as the client would, only if the API certainly has not executed it.
        """
        client = self._client()
        for attempt in range(client.max_retries + 1):
            try:
                await request(client.with_options(max_retries=0))
                return
            except openai.APIError as error:
                wait = None if _may_have_succeeded(error) else _wait_before_retry(error, attempt)
                if wait is None or attempt == client.max_retries:
                    raise
                await asyncio.sleep(wait)

    def _client(self) -> "AsyncOpenAI":
        client = self._openai_client
        return self._clients.get() if can_copy(client) else client


Session.register(OpenAIConversationsSession)


def _default_client() -> "AsyncOpenAI | None":
    """The default client of the Agents SDK, if one was set."""
    shared = sys.modules.get("agents.models._openai_shared")  # loaded if a client was set
    return None if shared is None else shared.get_default_openai_client()


# --- items ---


def _sendable(items: Items) -> list[Item]:
    """Copies of the items. Raises `InvalidItemError` for an item that cannot be sent unchanged."""
    copies: list[Item] = [json.loads(encoded) for encoded in encode_items(items)]
    for index, copy in enumerate(copies):
        try:
            json.dumps(copy, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InvalidItemError("it contains a lone surrogate, which UTF-8 cannot encode", index) from None
    return copies


# --- errors of the API ---


@contextmanager
def _check_response() -> Iterator[None]:
    """Raise `StorageError` for a response of another shape. The client does not validate responses."""
    try:
        yield
    except (ValueError, TypeError, AttributeError) as error:
        raise StorageError("the API returned a response that cannot be parsed") from error


def _may_have_succeeded(error: "openai.OpenAIError") -> bool:
    """Whether the API may have executed the request in spite of the error."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code >= 500 or error.status_code == 408
    return type(error.__cause__).__name__ not in ("ConnectError", "ConnectTimeout", "PoolTimeout")


def _wait_before_retry(error: "openai.APIError", attempt: int) -> float | None:
    """Seconds until a rejected request may be sent again; `None` if it must not be."""
    retry_after: float | None = None
    if isinstance(error, openai.APIStatusError):
        if error.status_code not in (409, 429):
            return None
        retry_after = retry_after_seconds(error.response.headers)
    if retry_after is None:
        return min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT)
    return retry_after if retry_after <= _LONGEST_RETRY_AFTER else None


# --- several event loops ---


def _copies_of(client: "AsyncOpenAI") -> "PerLoop[AsyncOpenAI]":
    """The copies of a client, one for each event loop. Sessions that share a client share its copies."""
    copies = _copies.get(client)
    if copies is None:
        # A weak reference: the client is a key here, and a copy must not keep it alive.
        original = ref(client)
        copies = _copies.setdefault(client, PerLoop(lambda: copy_client(openai, original()), close_client))
    return copies


_copies: "WeakKeyDictionary[AsyncOpenAI, PerLoop[AsyncOpenAI]]" = WeakKeyDictionary()


class CrossLoopLock:
    """A fair lock for tasks of several event loops and threads: waiting tasks get it in order."""

    def __init__(self) -> None:
        self._guard = threading.RLock()  # reentrant: the garbage collector may end a waiting task at any time
        self._holder: asyncio.Future[None] | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> "asyncio.Future[None]":
        """Wait for the lock. The result is passed to `release`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._guard:
            # A loop that was closed while a task held the lock will never release it.
            if self._holder is None or self._holder.get_loop().is_closed():
                self._holder = turn
                return turn
            self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            self.release(turn)
            raise
        return turn

    def release(self, turn: "asyncio.Future[None]") -> None:
        """Pass the lock to the next waiting task, or leave the queue if this one is still waiting."""
        with self._guard:
            if turn is not self._holder:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                return
            self._holder = None
            while self._waiting and self._holder is None:
                waiter = self._waiting.popleft()
                try:
                    waiter.get_loop().call_soon_threadsafe(_wake, waiter)
                except RuntimeError:
                    continue  # its loop is closed
                self._holder = waiter


def _wake(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)
