"""A session that tries again when a fault passes by, and cannot store a batch twice by it."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ..errors import TransientError
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
}


class RetryingSession(SessionWrapper):
    """Retries calls to another session: 3 tries, after 1 s, then 2 s, by default.

    A `TransientError` says that nothing was written, so any call is tried again. After a lost connection or a
    timeout the write may have happened: then only reads and `clear_session` are tried again, and `add_items`
    where the session recognises a batch it already has. In all other cases the error is raised.
    """

    def __init__(self, session: Session, *, tries: int = 3, delay: float = 1.0) -> None:
        if not tries >= 1 or tries != int(tries):
            raise ValueError(f"tries must be at least 1, and it is {tries}")
        if not delay >= 0:
            raise ValueError(f"delay must not be negative, and it is {delay}")
        super().__init__(session)
        self._tries = tries
        self._delay = delay

    async def get_items(self, limit: int | None = None) -> Items:
        """All items, oldest first; with a limit the newest of them."""
        limit = self._effective_limit(limit)
        return await self._retry(lambda: self.wrapped.get_items(limit), repeatable=True)

    async def add_items(self, items: Items) -> None:
        """Append a batch, whole or not at all, and once."""
        self._check_open()
        add_batch = own_method(self.wrapped, "add_batch")
        if add_batch is None or not items:
            await self._retry(lambda: self.wrapped.add_items(items), repeatable=False)
        else:
            batch_id = uuid.uuid4().hex
            await self._retry(lambda: add_batch(items, batch_id), repeatable=True)

    async def pop_item(self) -> Any:
        """Remove the newest item and return it, `None` if there is none."""
        self._check_open()
        return await self._retry(self.wrapped.pop_item, repeatable=False)

    async def clear_session(self) -> None:
        """Remove all items and the session itself."""
        self._check_open()
        await self._retry(self.wrapped.clear_session, repeatable=True)

    def __getattr__(self, name: str) -> Any:
        """The abilities of the wrapped session, tried again as far as that is safe."""
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
