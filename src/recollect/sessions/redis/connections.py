"""Connections that sessions share: one set for each URL or client, and in it one wire for each event loop.

A connection of asyncio belongs to the event loop that opened it. A wire is closed when its loop ends, or a
short time after the last session was closed.
"""

import asyncio
import contextlib
import inspect
import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

from ...event_loops import Lifetime, PerLoop
from ...extras import require_extra
from .wire import ClusterWire, ServerWire, Wire

_CLUSTER = "+cluster"
_MOST = 32  # connections per event loop and, in a cluster, per node
_PATIENCE = 20.0  # seconds to wait for a free connection
_DEFAULTS = {"socket_timeout": 30.0, "socket_connect_timeout": 10.0}
_OF_CLIENTS = ("single_connection_client", "auto_close_connection_pool")


class Source(Protocol):
    """Opens the connections of one event loop."""

    is_cluster: bool

    def open(self) -> Wire:
        """Open a wire for the running event loop. `is_ours` says whether we must close it."""
        ...


def _redis(module: str = "redis.asyncio") -> Any:
    return require_extra("redis", module, "RedisSession")


class URLSource:
    """Connections to the server of a URL."""

    def __init__(self, url: str, redis_kwargs: Mapping[str, Any]) -> None:
        scheme, separator, rest = url.partition("://")
        self.is_cluster = scheme.endswith(_CLUSTER)
        options = {**_DEFAULTS, "max_connections": _MOST, "retry": _no_retry(), **redis_kwargs}
        options |= _parse(f"{scheme.removesuffix(_CLUSTER)}{separator}{rest}")
        self._patience = options.pop("timeout", _PATIENCE)
        self._options = {name: value for name, value in options.items() if name not in _OF_CLIENTS}
        self._server = _name_of(self._options, self.is_cluster)
        self._check_options()

    def open(self) -> Wire:
        """Open a wire for the running event loop."""
        if self.is_cluster:
            return ClusterWire(self._make_cluster(), self._server, self._patience)
        return ServerWire(self._make_pool(), self._server, self._patience)

    def _check_options(self) -> None:
        """Create the objects that calls need, without connecting: unknown options raise here."""
        try:
            if self.is_cluster:
                self._make_cluster()
            else:
                self._make_pool().make_connection()
        except (TypeError, _redis("redis.exceptions").RedisClusterException) as error:
            raise ValueError(f"invalid option in the Redis URL or in redis_kwargs: {error}") from None

    def _make_pool(self) -> Any:
        return _redis().ConnectionPool(**self._options)

    def _make_cluster(self) -> Any:
        options = dict(self._options)
        options["ssl"] = options.pop("connection_class", None) is not None or options.get("ssl", False)
        return _redis().RedisCluster(**options)


def _no_retry() -> Any:
    """Connecting fails at once, without retries. For retries, wrap the session in a `RetryingSession`."""
    return _redis("redis.asyncio.retry").Retry(_redis("redis.backoff").NoBackoff(), 0)


def _parse(url: str) -> dict[str, Any]:
    """Parse the options in a URL. An error does not quote the URL, because it may contain a password."""
    try:
        options: dict[str, Any] = _redis("redis.asyncio.connection").parse_url(url)
    except ValueError:
        pass
    else:
        if options.get("host") or options.get("path") or url.split("://")[0] in ("redis", "rediss"):
            return options
    raise ValueError("not a Redis URL: use redis://host:6379/0, rediss://…, unix://… or redis+cluster://…")


class ClientSource:
    """Connections of a client that was passed in.

    They belong to the event loop that opened them: the one that first makes or uses a session on the client.
    That loop uses the client itself, which is never closed. Every other loop gets its own connections with
    the same options.
    """

    def __init__(self, client: Any) -> None:
        redis = _redis()
        if not isinstance(client, redis.Redis | redis.RedisCluster):
            kind = f"{type(client).__module__}.{type(client).__name__}"
            raise TypeError(f"redis_client must be a redis.asyncio.Redis or RedisCluster, not {kind}")
        self.is_cluster = isinstance(client, redis.RedisCluster)
        self.client = client
        with contextlib.suppress(RuntimeError):  # no loop is running
            self._is_at_home(asyncio.get_running_loop())

    def open(self) -> Wire:
        """Open a wire on the client itself in the first event loop, and on a copy in every other loop."""
        at_home = self._is_at_home(asyncio.get_running_loop())
        wire = self._wire_to_cluster(at_home) if self.is_cluster else self._wire_to_server(at_home)
        wire.is_ours = not at_home
        return wire

    def _is_at_home(self, loop: asyncio.AbstractEventLoop) -> bool:
        with _lock:
            return _homes.setdefault(self.client, weakref.ref(loop))() is loop

    def _wire_to_server(self, at_home: bool) -> Wire:
        pool = self.client.connection_pool
        server = _name_of(pool.connection_kwargs, False)
        return ServerWire(pool if at_home else _copy_pool(pool), server, getattr(pool, "timeout", _PATIENCE))

    def _wire_to_cluster(self, at_home: bool) -> Wire:
        client = self.client if at_home else _copy_cluster(self.client)
        first = client.startup_nodes[0]
        return ClusterWire(client, _name_of({"host": first.host, "port": first.port}, True), _PATIENCE)


def _copy_pool(pool: Any) -> Any:
    redis = _redis()
    if type(pool) not in (redis.ConnectionPool, redis.BlockingConnectionPool):
        kind = type(pool).__name__
        raise RuntimeError(
            f"a Redis client with a {kind} works in one event loop only: create one client per loop"
        )
    return redis.ConnectionPool(
        connection_class=pool.connection_class, max_connections=pool.max_connections, **pool.connection_kwargs
    )


def _copy_cluster(client: Any) -> Any:
    redis = _redis()
    known = inspect.signature(redis.RedisCluster.__init__).parameters
    options = {name: value for name, value in client.connection_kwargs.items() if name in known}
    return redis.RedisCluster(
        **options,
        startup_nodes=client.startup_nodes,
        ssl=client.connection_kwargs["connection_class"] is redis.SSLConnection,
        retry=client.retry,
        require_full_coverage=client.nodes_manager.require_full_coverage,
        address_remap=client.nodes_manager.address_remap,
    )


def _name_of(options: Mapping[str, Any], cluster: bool) -> str:
    """Return the name of the server for messages, without user and password."""
    if options.get("path"):
        return f"Redis at {options['path']}"
    kind = "Redis Cluster" if cluster else "Redis"
    return f"{kind} at {options.get('host', 'localhost')}:{options.get('port', 6379)}"


_LINGER = 0.5  # seconds: a request that opens and closes a session must not reconnect each time

# Keyed by URL and options, or by client. An entry disappears with the last reference to its connections. The
# lock is re-entrant: a session that is garbage-collected releases its connections while this thread may hold
# the lock.
_shared: weakref.WeakValueDictionary[Hashable, "Connections"] = weakref.WeakValueDictionary()
_lock = threading.RLock()

# The event loop that uses a client itself. It is remembered as long as the client exists: after the last
# session is gone, the client may still have connections of that loop.
_homes: weakref.WeakKeyDictionary[Any, "weakref.ref[asyncio.AbstractEventLoop]"] = weakref.WeakKeyDictionary()


def connections_to(url: str, redis_kwargs: Mapping[str, Any] | None) -> "Connections":
    """Return the connections that all sessions with this URL and these options share."""
    if not isinstance(url, str):
        raise TypeError(f"url must be a string, not {type(url).__name__}")
    options = dict(redis_kwargs or {})
    return _get_shared((url, _freeze(options)), lambda: URLSource(url, options))


def connections_of(client: Any) -> "Connections":
    """Return the connections that all sessions with this client share."""
    return _get_shared(id(client), lambda: ClientSource(client))


def _get_shared(key: Hashable, make_source: Callable[[], Source]) -> "Connections":
    with _lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = Connections(make_source())
        return found


def _freeze(value: Any) -> Hashable:
    """Convert options into a key.

    Equal options share connections; unhashable values are compared by identity.
    """
    if isinstance(value, Mapping):
        return tuple(sorted((name, _freeze(each)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_freeze, value))
    return value if isinstance(value, Hashable) else id(value)


class Connections:
    """The connections of all sessions of one URL or client."""

    def __init__(self, source: Source) -> None:
        self.is_cluster = source.is_cluster
        self._handles = 0
        self._wires = PerLoop(source.open, _close)
        self._idle_since = 0.0
        self._winding_down: set[asyncio.AbstractEventLoop] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def acquire(self) -> None:
        """Count one more session."""
        with _lock:
            self._handles += 1

    def release(self) -> None:
        """Count one session less. After the last, the connections are closed unless another comes soon."""
        with _lock:
            self._handles -= 1
            self._idle_since = time.monotonic()
            unused = [] if self._handles else self._wires.loops
            loops = [loop for loop in unused if loop not in self._winding_down]
            self._winding_down.update(loops)
        for loop in loops:
            try:
                loop.call_soon_threadsafe(self._close_if_unused, loop)
            except RuntimeError:  # the loop was closed without ending its generators
                self._forget(loop)

    def wire(self) -> Wire:
        """The wire of the running event loop."""
        return self._wires.get()

    def _close_if_unused(self, loop: asyncio.AbstractEventLoop) -> None:
        too_early = self._idle_since + _LINGER - time.monotonic()
        if too_early > 0 and not self._handles:
            loop.call_later(too_early, self._close_if_unused, loop)
            return
        self._winding_down.discard(loop)
        if not self._handles:
            lifetime = self._forget(loop)
            if lifetime is not None:
                closing = loop.create_task(lifetime.aclose())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    def _forget(self, loop: asyncio.AbstractEventLoop) -> Lifetime | None:
        with _lock:
            self._winding_down.discard(loop)
            return self._wires.forget(loop)


async def _close(wire: Wire) -> None:
    if wire.is_ours:
        await wire.aclose()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork_in_child)
