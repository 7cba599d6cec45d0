"""One resource for each event loop.

A connection, lock or semaphore of asyncio works only in the event loop that first used it. An application may
run several loops, one after the other or in several threads, and share a session between them.
"""

import asyncio
import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Opens a resource when an event loop first needs it, and closes it when that loop ends.

    Without `close`, a resource needs no closing, such as a lock. `abandon` is called with the resource of a
    loop that was closed without ending its async generators, as `asyncio.run` does: such a resource can no
    longer be closed.

    A process that was forked forgets all resources of its parent, and neither uses nor closes them.
    """

    def __init__(
        self,
        open_resource: Callable[[], T],
        close: Callable[[T], Awaitable[object]] | None = None,
        abandon: Callable[[T], object] | None = None,
    ) -> None:
        self._open_resource = open_resource
        self._close = close
        self._abandon = abandon
        self._by_loop: dict[asyncio.AbstractEventLoop, tuple[T, Lifetime | None]] = {}
        # Re-entrant: an object that is garbage-collected while the lock is held may forget its resources.
        self._lock = threading.RLock()
        _alive.add(self)

    def get(self) -> T:
        """Return the resource of the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._by_loop.get(loop)
        return self._open(loop) if found is None else found[0]

    @property
    def loops(self) -> list[asyncio.AbstractEventLoop]:
        """The event loops that have a resource now."""
        with self._lock:
            return list(self._by_loop)

    def forget(self, loop: asyncio.AbstractEventLoop) -> "Lifetime | None":
        """Forget the resource of one loop, and return its lifetime: the caller closes it, in that loop."""
        with self._lock:
            return self._by_loop.pop(loop, (None, None))[1]

    def forget_all(self) -> "Lifetime | None":
        """Forget all resources, and return the lifetime of the running loop's, which the caller may close.

        Every other loop closes its own resource soon. So does the running loop if the caller drops the
        lifetime.
        """
        with self._lock:
            by_loop, self._by_loop = self._by_loop, {}
        try:
            return by_loop.get(asyncio.get_running_loop(), (None, None))[1]
        except RuntimeError:  # no loop is running
            return None

    async def aclose(self) -> None:
        """Close the resource of the running loop now. Every other loop closes its own soon."""
        lifetime = self.forget_all()
        if lifetime is not None:
            await lifetime.aclose()

    def _open(self, loop: asyncio.AbstractEventLoop) -> T:
        with self._lock:
            self._abandon_closed_loops()
            resource = self._open_resource()
            lifetime = None if self._close is None else self._begin_lifetime(loop, resource, self._close)
            self._by_loop[loop] = (resource, lifetime)
        return resource

    def _begin_lifetime(
        self, loop: asyncio.AbstractEventLoop, resource: T, close: Callable[[T], Awaitable[object]]
    ) -> "Lifetime":
        this = weakref.ref(self)  # a lifetime must not keep its owner alive

        async def forget_and_close() -> None:
            owner = this()
            if owner is not None:
                owner._forget_if_current(loop, resource)
            await close(resource)

        return Lifetime(forget_and_close, loop)

    def _forget_if_current(self, loop: asyncio.AbstractEventLoop, resource: T) -> None:
        """Forget a resource that is about to be closed. By now, the loop may have a new one."""
        with self._lock:
            if loop in self._by_loop and self._by_loop[loop][0] is resource:
                del self._by_loop[loop]

    def _abandon_closed_loops(self) -> None:
        for loop in [loop for loop in self._by_loop if loop.is_closed()]:
            resource, _ = self._by_loop.pop(loop)
            if self._abandon is not None:
                self._abandon(resource)

    def _leave_to_parent(self) -> None:
        """Forget the resources of the parent process. They stay referenced, so nothing closes them here."""
        self._lock = threading.RLock()
        _inherited.append(self._by_loop)
        self._by_loop = {}


class Lifetime:
    """The time from opening a resource until it is closed.

    The resource is closed by `aclose()`, by the end of its event loop, or soon after the last reference to
    this object is gone.
    """

    def __init__(self, close: Callable[[], Awaitable[object]], loop: asyncio.AbstractEventLoop) -> None:
        self._end = _End(close, loop)

    async def aclose(self) -> None:
        """Close the resource. Call it in the event loop of the resource."""
        await self._end.come()

    def __del__(self) -> None:
        self._end.come_soon()


class _End:
    """The end of a lifetime: closes the resource once.

    A loop closes its async generators when it ends. The generator here waits for that, and then closes the
    resource. `aclose()` may come at the same time. The resource is closed in one task that both wait for,
    because a generator cannot be closed while it is being closed.
    """

    def __init__(self, close: Callable[[], Awaitable[object]], loop: asyncio.AbstractEventLoop) -> None:
        self._close = close
        self._loop = loop
        self._closing: asyncio.Future[object] | None = None
        self._coming: asyncio.Task[None] | None = None
        self._is_loop_ending = False
        self._generator = self._wait_for_loop()
        _start(self._generator, loop)
        _unclosed_in(loop).add(self)

    async def come(self) -> None:
        """Close the resource, and let the loop forget the generator."""
        await self._close_once()
        if not self._is_loop_ending:
            await self._generator.aclose()

    def come_soon(self) -> None:
        """Close the resource when the loop runs next, unless it is closed or being closed. Never waits."""
        if self._closing is None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._closing is None:
            self._coming = self._loop.create_task(self.come())

    async def _close_once(self) -> None:
        if self._closing is None or self._closing.cancelled():  # the loop cancels all tasks before it ends
            self._closing = asyncio.ensure_future(self._close())
        if not self._closing.done():
            await asyncio.wait([self._closing])
        if not self._closing.cancelled():
            self._closing.result()

    async def _wait_for_loop(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            self._is_loop_ending = True
            await self._close_once()
            _unclosed_in(self._loop).discard(self)


def _unclosed_in(loop: asyncio.AbstractEventLoop) -> set[_End]:
    """Return the ends that the loop must reach: it closes only generators that are referenced when it ends.

    The loop itself refers to them, so that they are garbage-collected together with a loop that never ends.
    """
    ends: set[_End] = vars(loop).setdefault("_recollect_unclosed", set())
    return ends


_used: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


def _start(generator: AsyncGenerator[None], loop: asyncio.AbstractEventLoop) -> None:
    """Run a generator up to its `yield`, without awaiting. From then on its loop knows it.

    A loop that has ended its generators and runs on warns about new ones. The SDK's `run_sync` does that to
    its loop after each run. It ends the new generators the next time, so the warning does not apply.
    """
    if loop not in _used:
        _used.add(loop)
        step = generator.asend(None)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            step = generator.asend(None)
    try:
        step.send(None)
    except StopIteration:
        return
    raise AssertionError("the generator awaits something before its yield")


_alive: "weakref.WeakSet[PerLoop[Any]]" = weakref.WeakSet()
_inherited: list[object] = []


def _after_fork_in_child() -> None:
    for resources in list(_alive):
        resources._leave_to_parent()


os.register_at_fork(after_in_child=_after_fork_in_child)
