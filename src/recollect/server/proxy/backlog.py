"""Values that are written in the background, many at once. Nobody waits for them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from ...errors import ConnectionLostError, RecollectError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_WAITING = 20_000
_MOST_AT_ONCE = 500
_PAUSES = (0.5, 2.0, 8.0, 30.0)  # seconds before each further attempt


class Backlog(Generic[T]):
    """Writes values in batches. Adding one never waits and never fails.

    Values are collected for some seconds, then written. If the database fails, a batch is tried again for
    about 40 seconds. After that it is dropped, and so are values beyond a limit; the log says how many.
    Unless it may be written twice, a batch is dropped at once if the connection is lost while it is written.
    """

    def __init__(
        self,
        what: str,
        write: Callable[[Sequence[T]], Awaitable[None]],
        *,
        collect_seconds: float,
        may_write_twice: bool,
    ) -> None:
        self._what = what
        self._write = write
        self._collect_seconds = collect_seconds
        self._may_write_twice = may_write_twice
        self._waiting: list[T] = []
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()

    def add(self, value: T) -> None:
        """Write a value soon."""
        if len(self._waiting) >= _MOST_WAITING:
            self._warn("too many are waiting", 1)
            return
        self._waiting.append(value)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())

    async def wait(self) -> None:
        """Wait until all values so far are written or dropped."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])

    async def aclose(self, seconds: float) -> None:
        """Write what is waiting for so many seconds, and stop."""
        self._hurry.set()
        if self._writing is None:
            return
        await asyncio.wait([self._writing], timeout=seconds)
        if not self._writing.done():
            self._warn("the service stops", len(self._waiting))
            self._writing.cancel()
            await asyncio.wait([self._writing])

    async def _write_all(self) -> None:
        while self._waiting:
            await self._pause(self._collect_seconds)
            batch = self._waiting[:_MOST_AT_ONCE]
            await self._write_patiently(batch)
            del self._waiting[: len(batch)]

    async def _write_patiently(self, batch: Sequence[T]) -> None:
        for pause in (*_PAUSES, None):
            try:
                await self._write(batch)
                return
            except Exception as error:  # noqa: BLE001 - a batch that cannot be written must not stop the others
                if pause is None or not self._may_repeat(error):
                    self._warn(type(error).__name__, len(batch))
                    return
                await self._pause(pause)

    def _may_repeat(self, error: Exception) -> bool:
        """Whether a batch may be tried again. After a lost connection, it may have been written."""
        if isinstance(error, ConnectionLostError):
            return self._may_write_twice
        return isinstance(error, RecollectError | OSError)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not while the service stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._hurry.wait()
        except TimeoutError:
            pass

    def _warn(self, reason: str, count: int) -> None:
        logger.warning(
            "proxied calls not accounted for", extra={"what": self._what, "error": reason, "count": count}
        )
