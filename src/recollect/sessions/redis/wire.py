"""Sends commands to a server or a cluster, from one event loop.

A command is sent once. The clients of the `redis` package would send a command again after a lost connection,
and so append a batch twice. When a call fails, a wire knows whether the command was sent. A cancelled write
is finished before the cancellation is raised.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from ...cancellation import finish_despite_cancellation
from ...errors import StorageError, UnreachableError
from .errors import busy_error, call_error, connect_error, is_for_another_node, redis_errors, redis_exceptions
from .lua import Script

T = TypeVar("T")
Argument: TypeAlias = bytes | str | int

_REDIRECTIONS = 16  # after so many, the nodes of the cluster disagree
_GRACE = 1.0  # seconds that a cancelled write has to finish before its connection is closed
_REFRESH_INTERVAL = 1.0  # seconds between refreshes of the cluster nodes: each closes all connections


class Wire(ABC):
    """The connections of one event loop to one server or cluster."""

    is_ours = True
    """Whether we opened the connections, and so must close them."""

    def __init__(self, server: str, most: int, patience: float | None) -> None:
        self.server = server
        self._slots = asyncio.Semaphore(most)
        self._patience = patience

    async def read(self, key: bytes, *command: Argument) -> Any:
        """Return the reply to a command that changes nothing."""
        await self._acquire_slot()
        return await self._send(key, command)

    async def run(self, script: Script, keys: Sequence[bytes], *arguments: Argument, writes: bool) -> Any:
        """Run a script and return its reply.

        A script that writes is finished even if the caller is cancelled.
        """
        rest = (len(keys), *keys, *map(_as_bytes, arguments))
        try:
            return await self._execute(keys[0], ("EVALSHA", script.digest, *rest), writes)
        except redis_exceptions().NoScriptError:  # the server does not know the script: EVAL also caches it
            return await self._execute(keys[0], ("EVAL", script.source, *rest), writes)

    @abstractmethod
    async def scan(self, cursor: bytes, pattern: bytes, count: int) -> tuple[bytes | None, list[bytes]]:
        """Return the next cursor (`None` at the end) and some keys of hashes. The first cursor is empty."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections."""

    async def _exchange(self, connection: Any, command: Sequence[Argument]) -> Any:
        """Send a command on a connection that no other caller uses now, and return the reply."""
        try:
            await _ensure_connected(connection)
        except redis_errors() as error:
            raise connect_error(error, self.server) from error
        try:
            await connection.send_command(*command)
            # As bytes: an entry that is not valid text must not make the other entries unreadable.
            return await connection.read_response(disable_decoding=True)
        except redis_exceptions().NoScriptError:
            raise
        except redis_errors() as error:
            raise call_error(error, self.server) from error

    @abstractmethod
    async def _send(self, key: bytes, command: Sequence[Argument]) -> Any:
        """Send a command and return its reply. Releases the slot that the caller acquired."""

    async def _execute(self, key: bytes, command: Sequence[Argument], writes: bool) -> Any:
        await self._acquire_slot()
        sending = self._send(key, command)
        # A command that was sent may be carried out in any case. A cancelled caller must not learn that
        # later.
        return await (finish_despite_cancellation(sending, grace=_GRACE) if writes else sending)

    async def _acquire_slot(self) -> None:
        """Wait for a free connection. The pool itself would raise at once."""
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._slots.acquire()
        except TimeoutError:
            raise busy_error(self.server) from None


def _as_bytes(argument: Argument) -> bytes | int:
    """Encode text as UTF-8, independent of the encoding of the client."""
    return argument.encode("utf-8", "surrogatepass") if isinstance(argument, str) else argument


async def _ensure_connected(connection: Any) -> None:
    """Connect, also if the server has closed the connection while it was idle."""
    if connection.is_connected and not await connection.can_read():
        return
    await connection.disconnect(nowait=True)  # no command is pending: readable data is the end or a leftover
    await connection.connect()


def _scan(cursor: bytes | str, pattern: bytes, count: int) -> tuple[Argument, ...]:
    return ("SCAN", cursor, "MATCH", pattern, "COUNT", count, "TYPE", "hash")


class ServerWire(Wire):
    """The connections of a pool to one server."""

    def __init__(self, pool: Any, server: str, patience: float | None) -> None:
        super().__init__(server, pool.max_connections, patience)
        self._pool = pool

    async def scan(self, cursor: bytes, pattern: bytes, count: int) -> tuple[bytes | None, list[bytes]]:
        """Return the next cursor and some keys of hashes."""
        following, keys = await self.read(b"", *_scan(cursor or b"0", pattern, count))
        return (following if int(following) else None), keys

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    async def _send(self, key: bytes, command: Sequence[Argument]) -> Any:  # noqa: ARG002
        try:
            connection = await self._take_connection()
            try:
                return await self._exchange(connection, command)
            finally:
                await self._pool.release(connection)
        finally:
            self._slots.release()

    async def _take_connection(self) -> Any:
        try:
            return await self._pool.get_connection()
        except redis_errors() as error:
            raise connect_error(error, self.server) from error


class ClusterWire(Wire):
    """The connections of a cluster client, which knows the node of each key."""

    def __init__(self, client: Any, server: str, patience: float | None) -> None:
        super().__init__(server, client.connection_kwargs["max_connections"], patience)
        self._client = client
        self._refreshed_at = -_REFRESH_INTERVAL

    async def scan(self, cursor: bytes, pattern: bytes, count: int) -> tuple[bytes | None, list[bytes]]:
        """Return the next cursor and some keys of hashes, node by node. The cursor contains the node."""
        await self._refresh_nodes(self._client.initialize)
        nodes = sorted(self._client.get_primaries(), key=lambda node: str(node.name))
        name, _, position = cursor.decode().partition(" ")
        left = [node for node in nodes if node.name >= name]
        if not left:
            return None, []
        started = left[0].name == name  # else the node no longer exists: start with the next one
        following, keys = await self._scan_node(left[0], _scan(position if started else "0", pattern, count))
        if int(following):
            return f"{left[0].name} {int(following)}".encode(), keys
        return (f"{left[1].name} 0".encode() if left[1:] else None), keys

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def _scan_node(self, node: Any, command: Sequence[Argument]) -> Any:
        await self._acquire_slot()
        try:
            return await self._exchange_with(node, command)
        finally:
            self._slots.release()

    async def _send(self, key: bytes, command: Sequence[Argument]) -> Any:
        try:
            await self._refresh_nodes(self._client.initialize)
            return await self._send_following(key, command)
        finally:
            self._slots.release()

    async def _send_following(self, key: bytes, command: Sequence[Argument]) -> Any:
        """Send a command to the node of the key, and follow redirections.

        The client would do that too, but after many redirections it closes the connections of all callers.
        """
        node, asking = self._node_of(key), False
        attempt = 0
        while True:
            try:
                return await self._exchange_with(node, command, asking)
            except StorageError as error:
                if attempt == _REDIRECTIONS or not is_for_another_node(error):
                    raise
                node, asking = await self._next_node(key, error, attempt)
            attempt += 1

    async def _next_node(self, key: bytes, error: StorageError, attempt: int) -> tuple[Any, bool]:
        """Return the node to try next, and whether to send `ASKING` because the session is moving there."""
        module = redis_exceptions()
        refusal = error.__cause__
        if isinstance(refusal, module.MovedError):
            await self._client.nodes_manager.move_slot(refusal)
        elif isinstance(refusal, module.AskError):
            node = self._client.get_node(refusal.host, refusal.port)
            if node is not None:
                return node, True
            await self._refresh_nodes(self._client.nodes_manager.initialize)
        elif isinstance(error, UnreachableError):
            if time.monotonic() - self._refreshed_at < _REFRESH_INTERVAL:  # no replica has taken over yet
                raise error
            self._refreshed_at = time.monotonic()
            await self._refresh_nodes(self._client.nodes_manager.initialize)
        else:
            await asyncio.sleep(min(0.01 * 2**attempt, 0.2))
        return self._node_of(key), False

    async def _refresh_nodes(self, nodes: Callable[[], Awaitable[object]]) -> None:
        try:
            await nodes()
        except redis_errors() as error:
            raise connect_error(error, self.server) from error

    def _node_of(self, key: bytes) -> Any:
        try:
            return self._client.get_node_from_key(key)
        except redis_errors() as error:
            raise connect_error(error, self.server) from error

    async def _exchange_with(self, node: Any, command: Sequence[Argument], asking: bool = False) -> Any:
        try:
            connection = node.acquire_connection()
        except redis_errors() as error:
            raise connect_error(error, self.server) from error
        try:
            await node.disconnect_if_needed(connection)
            if asking:
                await self._exchange(connection, ("ASKING",))
            return await self._exchange(connection, command)
        finally:
            node.release(connection)
