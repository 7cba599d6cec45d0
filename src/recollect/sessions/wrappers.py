"""Sessions around other sessions: the base class, and `RetryingSession`.

`SessionWrapper` passes every call through. A subclass overrides only the methods it changes.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import Any, TypeVar

from ..errors import TransientError
from ..ids import new_hex
from .advanced.usage import store_or_log
from .protocol import Items, Session, SessionABC, own_method
from .settings import settings_of


class SessionWrapper(SessionABC):
    """The base class of sessions that wrap another session. Closing it closes the wrapped session."""

    keeps_abilities = True
    _own_id: str | None = None

    def __init__(self, session: Session) -> None:
        self.wrapped = session
        self.session_settings = settings_of(getattr(session, "session_settings", None))
        self._closed = False

    @property
    def session_id(self) -> str:
        """The id that was set, or that of the wrapped session, which may exist only after its first call."""
        return self.wrapped.session_id if self._own_id is None else self._own_id

    @session_id.setter
    def session_id(self, session_id: str) -> None:
        self._own_id = session_id

    async def get_items(self, limit: int | None = None) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones."""
        return await self.wrapped.get_items(self._effective_limit(limit))

    async def add_items(self, items: Items) -> None:
        """Append a batch: all of its items or none."""
        self._check_open()
        await self.wrapped.add_items(items)

    async def pop_item(self) -> Any:
        """Remove and return the newest item, or return `None` if there is none."""
        self._check_open()
        return await self.wrapped.pop_item()

    async def clear_session(self) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        await self.wrapped.clear_session()

    async def aclose(self) -> None:
        """Close this session and the one it wraps."""
        if self._closed:
            return
        self._closed = True
        close = getattr(self.wrapped, "aclose", None) or getattr(self.wrapped, "close", None)
        outcome = close() if close is not None else None
        if inspect.isawaitable(outcome):
            await outcome

    async def begin_run(self, wrapper: Any) -> None:
        """Pass the context of a run to the wrapped session, as `begin_run` of this module does."""
        await begin_run(self.wrapped, wrapper)

    def _context(self, wrapper: Any) -> dict[str, Any]:
        """Return the Runner's context as an argument if there is one and the wrapped session accepts it."""
        return {} if wrapper is None or not self._takes_context else {"wrapper": wrapper}

    @cached_property
    def _takes_context(self) -> bool:
        return takes_context(self.wrapped)


async def begin_run(session: Session, wrapper: Any) -> None:
    """Give a session the context of a run before the run reads its items by other means than `get_items`.

    A session without `begin_run` takes the context only as an argument of `get_items`. Such a session gets a
    call that reads no items.
    """
    begin = own_method(session, "begin_run")
    if begin is not None:
        await begin(wrapper)
    elif wrapper is not None and takes_context(session):
        read: Any = session.get_items
        await read(0, wrapper=wrapper)


def takes_context(session: Session) -> bool:
    """Whether all four methods accept the Runner's context. The Agents SDK passes it to all or to none."""
    methods = (session.get_items, session.add_items, session.pop_item, session.clear_session)
    return all("wrapper" in inspect.signature(method).parameters for method in methods)


T = TypeVar("T")
logger = logging.getLogger(__name__)

_MAYBE_APPLIED = (ConnectionError, TimeoutError)
# Each method beyond the contract, and whether it is idempotent.
_ABILITIES = {
    "transform_items": False,
    "replace_items": False,
    "revise_items": False,
    "pop_checked": False,
    "read_after": True,
    "read_before": True,
    "add_batch": True,
    "get_metadata": True,
    "set_metadata": True,
    "get_note": True,
    "set_note": False,
    "take_lease": True,
    "drop_lease": True,
    "current_branch": True,
    "create_branch_from_turn": False,
    "create_branch_from_content": False,
    "switch_to_branch": True,
    "delete_branch": False,
    "clear_branch": True,
    "list_branches": True,
    "diff_branches": True,
    "read_turns": True,
    "get_conversation_turns": True,
    "find_turns_by_content": True,
    "get_conversation_by_turns": True,
    "get_tool_usage": True,
    "count_run": True,
    "store_run_usage": True,
    "get_session_usage": True,
    "get_turn_usage": True,
}


class RetryingSession(SessionWrapper):
    """Retries calls to another session: by default 3 tries, with waits of 1 s and 2 s.

    A `TransientError` means that nothing was written, so every call is retried. After a lost connection or a
    timeout the write may have happened. Then only idempotent calls are retried: reads, `clear_session`, and
    `add_items` if the session recognizes a batch that it already has. All other errors are raised.
    """

    keeps_abilities = True

    def __init__(self, session: Session, *, tries: int = 3, delay: float = 1.0) -> None:
        if not tries >= 1 or tries != int(tries):
            raise ValueError(f"tries must be at least 1, not {tries}")
        if not delay >= 0:
            raise ValueError(f"delay must be 0 or more, not {delay}")
        super().__init__(session)
        self._tries = tries
        self._delay = delay

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None, **options: Any) -> Items:
        """Return all items, oldest first, or with a limit only the newest ones.

        The Runner passes its context as `wrapper`. It is passed on if the wrapped session accepts it.
        """
        limit = self._effective_limit(limit)
        options |= self._context(wrapper)
        return await self._retry(lambda: self.wrapped.get_items(limit, **options), repeatable=True)

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Append a batch once: all of its items or none."""
        self._check_open()
        context = self._context(wrapper)
        add_batch = own_method(self.wrapped, "add_batch")
        if add_batch is None or not items:
            await self._retry(lambda: self.wrapped.add_items(items, **context), repeatable=False)
        else:
            batch_id = new_hex()
            await self._retry(lambda: add_batch(items, batch_id, **context), repeatable=True)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Remove and return the newest item, or return `None` if there is none."""
        self._check_open()
        context = self._context(wrapper)
        return await self._retry(lambda: self.wrapped.pop_item(**context), repeatable=False)

    async def clear_session(self, *, wrapper: Any = None, **options: Any) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        options |= self._context(wrapper)
        await self._retry(lambda: self.wrapped.clear_session(**options), repeatable=True)

    def __getattr__(self, name: str) -> Any:
        """Return an ability of the wrapped session, with retries if that is safe."""
        if name == "store_run_usage" and own_method(self.wrapped, "count_run") is not None:
            # The method of the wrapped session only logs errors, so nothing would be retried.
            return partial(store_or_log, self.count_run, logger=logger)
        method = own_method(self.wrapped, name) if name in _ABILITIES else None
        if method is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        async def retried(*args: Any, **kwargs: Any) -> Any:
            self._check_open()
            return await self._retry(lambda: method(*args, **kwargs), repeatable=_ABILITIES[name])

        return retried

    async def _retry(self, call: Callable[[], Awaitable[T]], repeatable: bool) -> T:
        faults = (TransientError, *_MAYBE_APPLIED) if repeatable else (TransientError,)
        for attempt in range(1, self._tries):
            try:
                return await call()
            except faults as error:
                wait = self._delay * 2 ** (attempt - 1)
                logger.warning("try %d failed (%s), retrying in %g s", attempt, type(error).__name__, wait)
                await asyncio.sleep(wait)
        return await call()
