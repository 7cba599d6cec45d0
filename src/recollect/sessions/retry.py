"""A session that tries again when a fault passes by, and cannot store a batch twice by it."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from ..errors import TransientError
from .advanced.runs import store_or_log
from .protocol import Items, Session, own_method
from .wrapper import SessionWrapper

T = TypeVar("T")
logger = logging.getLogger(__name__)

_MAYBE_APPLIED = (ConnectionError, TimeoutError)
# Each method beyond the contract, and whether doing it twice is the same as doing it once.
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
    """Retries calls to another session: 3 tries, after 1 s, then 2 s, by default.

    A `TransientError` says that nothing was written, so any call is tried again. After a lost connection or a
    timeout the write may have happened: then only reads and `clear_session` are tried again, and `add_items`
    where the session recognises a batch it already has. In all other cases the error is raised.
    """

    keeps_abilities = True

    def __init__(self, session: Session, *, tries: int = 3, delay: float = 1.0) -> None:
        if not tries >= 1 or tries != int(tries):
            raise ValueError(f"tries must be at least 1, and it is {tries}")
        if not delay >= 0:
            raise ValueError(f"delay must not be negative, and it is {delay}")
        super().__init__(session)
        self._tries = tries
        self._delay = delay

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None, **options: Any) -> Items:
        """All items, oldest first; with a limit the newest of them.

        The Runner passes its context as `wrapper`, which the wrapped session may want to know of.
        """
        limit = self._effective_limit(limit)
        options |= self._context(wrapper)
        return await self._retry(lambda: self.wrapped.get_items(limit, **options), repeatable=True)

    async def add_items(self, items: Items, *, wrapper: Any = None) -> None:
        """Append a batch, whole or not at all, and once."""
        self._check_open()
        context = self._context(wrapper)
        add_batch = own_method(self.wrapped, "add_batch")
        if add_batch is None or not items:
            await self._retry(lambda: self.wrapped.add_items(items, **context), repeatable=False)
        else:
            batch_id = uuid.uuid4().hex
            await self._retry(lambda: add_batch(items, batch_id, **context), repeatable=True)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        context = self._context(wrapper)
        return await self._retry(lambda: self.wrapped.pop_item(**context), repeatable=False)

    async def clear_session(self, *, wrapper: Any = None, **options: Any) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        options |= self._context(wrapper)
        await self._retry(lambda: self.wrapped.clear_session(**options), repeatable=True)

    def __getattr__(self, name: str) -> Any:
        """The abilities of the wrapped session, tried again as far as that is safe."""
        if name == "store_run_usage" and own_method(self.wrapped, "count_run") is not None:
            # That of the wrapped session only logs errors, so nothing would be tried again.
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
                logger.warning("try %d failed (%s), the next in %g s", attempt, type(error).__name__, wait)
                await asyncio.sleep(wait)
        return await call()
