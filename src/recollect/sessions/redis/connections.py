"""Connections that sessions share: one set for each URL or client, and in it a wire for each event loop.

Connections of asyncio belong to the event loop they were opened in. A wire ends with its loop, or some time
after the last session was closed.
"""

import asyncio
import os
import threading
import time
import warnings
import weakref
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping
from typing import Any

from .sources import ClientSource, Source, URLSource
from .wire import Wire

_LINGER = 0.5  # seconds: a request that makes a session, uses and closes it must not connect anew each time

# Keyed by what the connections are made from, and gone when nobody has them any more. The lock is re-entrant
# because a session that is garbage-collected releases its connections, whatever this thread is doing.
_shared: weakref.WeakValueDictionary[Hashable, "Connections"] = weakref.WeakValueDictionary()
_lock = threading.RLock()


def connections_to(url: str, redis_kwargs: Mapping[str, Any] | None) -> "Connections":
    """The connections that all sessions of this URL and these options share."""
    if not isinstance(url, str):
        raise TypeError(f"url must be a string, not {type(url).__name__}")
    options = dict(redis_kwargs or {})
    return _get_shared((url, _freeze(options)), lambda: URLSource(url, options))


def connections_of(client: Any) -> "Connections":
    """The connections that all sessions of this client share."""
    return _get_shared(id(client), lambda: ClientSource(client))


def _get_shared(key: Hashable, make_source: Callable[[], Source]) -> "Connections":
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = Connections(make_source())
        return found


def _freeze(value: Any) -> Hashable:
    """Options as a key: equal ones share their connections, things without equality only with themselves."""
    if isinstance(value, Mapping):
        return tuple(sorted((name, _freeze(each)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    return value if isinstance(value, Hashable) else id(value)


class Connections:
    """The connections of all sessions of one URL or client."""

    def __init__(self, source: Source) -> None:
        self.is_cluster = source.is_cluster
        self._source = source
        self._handles = 0
        self._wires: dict[asyncio.AbstractEventLoop, tuple[Wire, _Lifetime | None]] = {}
        self._idle_since = 0.0
        self._winding_down: set[asyncio.AbstractEventLoop] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def acquire(self) -> None:
        """Count one more session."""
        with _lock:
            self._handles += 1

    def release(self) -> None:
        """Count one session less; after the last, the connections are closed if no other comes soon."""
        with _lock:
            self._handles -= 1
            self._idle_since = time.monotonic()
            loops = [] if self._handles else [loop for loop in self._wires if loop not in self._winding_down]
            self._winding_down.update(loops)
        for loop in loops:
            try:
                loop.call_soon_threadsafe(self._close_if_unused, loop)
            except RuntimeError:  # it closed without a word
                self._forget(loop)

    async def wire(self) -> Wire:
        """The way to the server from the running event loop."""
        loop = asyncio.get_running_loop()
        found = self._wires.get(loop)
        return await self._open(loop) if found is None else found[0]

    async def _open(self, loop: asyncio.AbstractEventLoop) -> Wire:
        with _lock:
            for other in [other for other in self._wires if other.is_closed()]:
                self._forget(other)
            wire, is_ours = self._source.open()
            lifetime = _Lifetime(wire, lambda: self._forget(loop, wire)) if is_ours else None
            self._wires[loop] = (wire, lifetime)
        if lifetime is not None:
            await _begin(lifetime.lasting, loop)
        return wire

    def _close_if_unused(self, loop: asyncio.AbstractEventLoop) -> None:
        too_early = self._idle_since + _LINGER - time.monotonic()
        if too_early > 0 and not self._handles:
            loop.call_later(too_early, self._close_if_unused, loop)
            return
        self._winding_down.discard(loop)
        if not self._handles:
            lifetime = self._forget(loop)
            if lifetime is not None:
                closing = loop.create_task(lifetime.end())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    def _forget(self, loop: asyncio.AbstractEventLoop, wire: Wire | None = None) -> "_Lifetime | None":
        """Let go of the wire of a loop, unless it is not this one: a new one may be in use by now."""
        with _lock:
            if wire is not None and self._wires.get(loop, (None,))[0] is not wire:
                return None
            self._winding_down.discard(loop)
            return self._wires.pop(loop, (None, None))[1]

    def forget_wires(self) -> None:
        """Leave the connections to the process that this one was forked from."""
        _inherited.append(self._wires)
        self._wires = {}
        self._winding_down = set()


class _Lifetime:
    """Lasts until we end it, or the event loop does: it ends all generators before it closes.

    Both may happen at once. The wire is closed by whoever comes first, in a task that both wait for, so that
    nobody meets a generator that another is just ending.
    """

    def __init__(self, wire: Wire, forget: Callable[[], object]) -> None:
        self._wire = wire
        self._forget = forget
        self._closing: asyncio.Task[None] | None = None
        self._is_ending = False
        self.lasting = self._last()

    async def _last(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            self._is_ending = True
            self._forget()
            await self._close()

    async def end(self) -> None:
        """Close the wire, and let the event loop forget the generator."""
        await self._close()
        if not self._is_ending:
            await self.lasting.aclose()

    async def _close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._wire.aclose())
        if not self._closing.done():
            await asyncio.wait([self._closing])


_begun: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()
_inherited: list[object] = []


async def _begin(lifetime: AsyncGenerator[None, None], loop: asyncio.AbstractEventLoop) -> None:
    """Let the event loop know of a generator, so that it ends it.

    A loop that was told to end all of them, and went on, warns of new ones. The SDK's `run_sync` does that to
    its loop after each run, and so ends ours: what is warned of does not happen.
    """
    if loop not in _begun:
        _begun.add(loop)
        await anext(lifetime)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        beginning = anext(lifetime)
    await beginning


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for connections in list(_shared.values()):
        connections.forget_wires()


os.register_at_fork(after_in_child=_after_fork_in_child)
