"""How commands reach a server or a cluster, from one event loop.

Commands are sent once. The `redis` package's clients would send a command again after a lost connection, and
add a batch twice. A wire also knows whether a command was sent at all when something fails, and lets
a cancelled write end before it hands the cancellation on.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from ...cancellation import finish_despite_cancellation
from ...errors import StorageError, UnreachableError
from .errors import busy_fault, call_fault, connecting_fault, exceptions, is_for_another_node, redis_errors
from .lua import Script

T = TypeVar("T")
Argument: TypeAlias = bytes | str | int

_REDIRECTIONS = 16  # a cluster that points around longer is not of one mind
_GRACE = 1.0  # seconds: what a cancelled write may still take before its connection is cut
_LOOKING_UP = 1.0  # seconds between looking for nodes that took over: each time, all connections are renewed


class Wire(ABC):
    """The connections of one event loop to one server or cluster."""

    is_ours = True
    """Whether we opened the connections, and so must close them."""

    def __init__(self, server: str, most: int, patience: float | None) -> None:
        self.server = server
        self._free = asyncio.Semaphore(most)
        self._patience = patience

    async def read(self, key: bytes, *command: Argument) -> Any:
        """The answer to a command that changes nothing."""
        await self._wait_for_turn()
        return await self._send(key, command)

    async def run(self, script: Script, keys: Sequence[bytes], *arguments: Argument, writes: bool) -> Any:
        """What a script returns. One that writes is not cut short when the caller is cancelled."""
        rest = (len(keys), *keys, *map(_as_bytes, arguments))
        try:
            return await self._carry_out(keys[0], ("EVALSHA", script.digest, *rest), writes)
        except exceptions().NoScriptError:  # new to this server: it learns the script by running it
            return await self._carry_out(keys[0], ("EVAL", script.source, *rest), writes)

    @abstractmethod
    async def scan(self, cursor: bytes, pattern: bytes, count: int) -> tuple[bytes | None, list[bytes]]:
        """Some keys of hashes from a cursor on (empty at first), and the next one, `None` at the end."""

    @abstractmethod
    async def aclose(self) -> None:
        """Cut all connections."""

    async def _talk(self, connection: Any, command: Sequence[Argument]) -> Any:
        """Ask on a connection that is ours for now."""
        try:
            await _ensure_connected(connection)
        except redis_errors() as error:
            raise connecting_fault(error, self.server) from error
        try:
            await connection.send_command(*command)
            # As bytes: an entry that is not valid text must not keep the others from being read.
            return await connection.read_response(disable_decoding=True)
        except exceptions().NoScriptError:
            raise
        except redis_errors() as error:
            raise call_fault(error, self.server) from error

    @abstractmethod
    async def _send(self, key: bytes, command: Sequence[Argument]) -> Any:
        """Send a command and await its answer. Gives the turn back."""

    async def _carry_out(self, key: bytes, command: Sequence[Argument], writes: bool) -> Any:
        await self._wait_for_turn()
        sending = self._send(key, command)
        # A command that was sent may be carried out in any case. A cancelled caller must not learn that
        # later.
        return await (finish_despite_cancellation(sending, grace=_GRACE) if writes else sending)

    async def _wait_for_turn(self) -> None:
        """Wait here for a connection to be free: a pool would refuse at once."""
        if not self._free.locked():
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError:
            raise busy_fault(self.server) from None


def _as_bytes(argument: Argument) -> bytes | int:
    """Text as UTF-8, whatever encoding a client was given for its own."""
    return argument.encode("utf-8", "surrogatepass") if isinstance(argument, str) else argument


async def _ensure_connected(connection: Any) -> None:
    """Connect, also where the server has hung up while the connection was idle."""
    if connection.is_connected and not await connection.can_read():
        return
    await connection.disconnect(nowait=True)  # nothing was asked: what can be read is the end, or left over
    await connection.connect()


def _scan(cursor: bytes | str, pattern: bytes, count: int) -> tuple[Argument, ...]:
    return ("SCAN", cursor, "MATCH", pattern, "COUNT", count, "TYPE", "hash")


class ServerWire(Wire):
    """The connections to one server: those of a pool."""

    def __init__(self, pool: Any, server: str, patience: float | None) -> None:
        super().__init__(server, pool.max_connections, patience)
        self._pool = pool

    async def scan(self, cursor: bytes, pattern: bytes, count: int) -> tuple[bytes | None, list[bytes]]:
        """Some keys of hashes, and the next cursor."""
        following, keys = await self.read(b"", *_scan(cursor or b"0", pattern, count))
        return (following if int(following) else None), keys

    async def aclose(self) -> None:
        """Cut all connections."""
        await self._pool.aclose()

    async def _send(self, key: bytes, command: Sequence[Argument]) -> Any:  # noqa: ARG002
        try:
            connection = await self._take_connection()
            try:
                return await self._talk(connection, command)
            finally:
                await self._pool.release(connection)
        finally:
            self._free.release()

    async def _take_connection(self) -> Any:
        try:
            return await self._pool.get_connection()
        except redis_errors() as error:
            raise connecting_fault(error, self.server) from error


class ClusterWire(Wire):
    """The connections to a cluster: those of a client, which knows where a key is."""

    def __init__(self, client: Any, server: str, patience: float | None) -> None:
        super().__init__(server, client.connection_kwargs["max_connections"], patience)
        self._client = client
        self._looked_up = -_LOOKING_UP

    async def scan(self, cursor: bytes, pattern: bytes, count: int) -> tuple[bytes | None, list[bytes]]:
        """Some keys of hashes, one node after the other; the cursor says in which node."""
        await self._look_up(self._client.initialize)
        nodes = sorted(self._client.get_primaries(), key=lambda node: str(node.name))
        name, _, position = cursor.decode().partition(" ")
        left = [node for node in nodes if node.name >= name]
        if not left:
            return None, []
        started = left[0].name == name  # else the node has gone, and the next one is at its beginning
        following, keys = await self._scan_node(left[0], _scan(position if started else "0", pattern, count))
        if int(following):
            return f"{left[0].name} {int(following)}".encode(), keys
        return (f"{left[1].name} 0".encode() if left[1:] else None), keys

    async def aclose(self) -> None:
        """Cut all connections."""
        await self._client.aclose()

    async def _scan_node(self, node: Any, command: Sequence[Argument]) -> Any:
        await self._wait_for_turn()
        try:
            return await self._talk_to(node, command)
        finally:
            self._free.release()

    async def _send(self, key: bytes, command: Sequence[Argument]) -> Any:
        try:
            await self._look_up(self._client.initialize)
            return await self._follow(key, command)
        finally:
            self._free.release()

    async def _follow(self, key: bytes, command: Sequence[Argument]) -> Any:
        """Ask the node that has the key, and then those that are pointed to.

        The client would do that, but it cuts everybody's connections when it has been pointed around often.
        """
        node, asking = self._node_of(key), False
        attempt = 0
        while True:
            try:
                return await self._talk_to(node, command, asking)
            except StorageError as error:
                if attempt == _REDIRECTIONS or not is_for_another_node(error):
                    raise
                node, asking = await self._next_node(key, error, attempt)
            attempt += 1

    async def _next_node(self, key: bytes, error: StorageError, attempt: int) -> tuple[Any, bool]:
        """Who is to be asked after a node refused, and whether by `ASKING`, while the session moves there."""
        module = exceptions()
        refusal = error.__cause__
        if isinstance(refusal, module.MovedError):
            await self._client.nodes_manager.move_slot(refusal)
        elif isinstance(refusal, module.AskError):
            node = self._client.get_node(refusal.host, refusal.port)
            if node is not None:
                return node, True
            await self._look_up(self._client.nodes_manager.initialize)
        elif isinstance(error, UnreachableError):
            if time.monotonic() - self._looked_up < _LOOKING_UP:  # nobody has taken over yet
                raise error
            self._looked_up = time.monotonic()
            await self._look_up(self._client.nodes_manager.initialize)
        else:
            await asyncio.sleep(min(0.01 * 2**attempt, 0.2))
        return self._node_of(key), False

    async def _look_up(self, nodes: Callable[[], Awaitable[object]]) -> None:
        try:
            await nodes()
        except redis_errors() as error:
            raise connecting_fault(error, self.server) from error

    def _node_of(self, key: bytes) -> Any:
        try:
            return self._client.get_node_from_key(key)
        except redis_errors() as error:
            raise connecting_fault(error, self.server) from error

    async def _talk_to(self, node: Any, command: Sequence[Argument], asking: bool = False) -> Any:
        try:
            connection = node.acquire_connection()
        except redis_errors() as error:
            raise connecting_fault(error, self.server) from error
        try:
            await node.disconnect_if_needed(connection)
            if asking:
                await self._talk(connection, ("ASKING",))
            return await self._talk(connection, command)
        finally:
            node.release(connection)
