"""A TCP proxy of ours that drops, delays and truncates what passes between a client and a server."""

import asyncio
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Self, cast


class CuttingProxy:
    """A proxy on a free loopback port, in a thread of its own, that can be told to do harm.

    What it is told holds for the connections there are and for those to come, until `mend`.
    """

    def __init__(self, target_port: int, target_host: str = "127.0.0.1") -> None:
        self._target = (target_host, target_port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faults-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._ends: set[_End] = set()
        self._delay = 0.0
        self._left: int | None = None  # bytes of answers until everything is cut
        self._refuses = False
        self.passed = 0
        """Bytes that went through, both ways."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._in_thread(self._listen)
        return self

    def __exit__(self, *exc_info: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def port(self) -> int:
        """Where clients connect to."""
        if self._server is None:
            raise RuntimeError("the proxy is not running")
        return cast(int, self._server.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        return sum(end.is_client for end in list(self._ends))

    # --- harm ---

    def cut(self, refuse: bool = False) -> int:
        """End all connections as a broken network does, and say how many; `refuse` new ones until `mend`."""
        return int(self._in_thread(lambda: self._cut(refuse)))

    def delay(self, seconds: float) -> None:
        """Hold up everything that passes for so long."""
        self._in_thread(lambda: self._set(delay=seconds))

    def truncate_after(self, answered: int) -> None:
        """Let so many bytes of answers through, and end all connections in the middle of the next."""
        self._in_thread(lambda: self._set(left=answered))

    @property
    def has_truncated(self) -> bool:
        """Whether the bytes that `truncate_after` let through are used up."""
        return self._left == 0

    def mend(self) -> None:
        """Do no more harm."""
        self._in_thread(lambda: self._set())

    # --- in the thread ---

    def _in_thread(self, work: Callable[[], Any]) -> Any:
        async def call() -> Any:
            result = work()
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(lambda: _End(self, None), "127.0.0.1", 0)

    async def _stop(self) -> None:
        self._cut(refuse=True)
        if self._server is not None:
            self._server.close()
        while self._ends:  # noqa: ASYNC110 - there is nothing to be told by
            await asyncio.sleep(0.001)

    def _set(self, delay: float = 0.0, left: int | None = None) -> None:
        self._delay, self._left, self._refuses = delay, left, False

    def _cut(self, refuse: bool) -> int:
        self._refuses = refuse
        ends = list(self._ends)
        for end in ends:
            end.abort()
        return sum(end.is_client for end in ends)

    def pass_on(self, data: bytes, to: "_End", is_answer: bool) -> None:
        """Send what one end has said to the other, with the harm that was asked for."""
        self.passed += len(data)
        if is_answer and self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        to.send(data, self._delay)
        if self._left == 0:  # at once, lest something passes after the bytes that are missing
            self._cut(refuse=False)

    def connect(self, client: "_End") -> None:
        """Connect to the server for a client that has come."""
        if self._refuses:
            client.abort()
        else:
            client.connecting = self._loop.create_task(self._reach(client))

    async def _reach(self, client: "_End") -> None:
        try:
            await self._loop.create_connection(lambda: _End(self, client), *self._target)
        except OSError:  # the server is down, and the client hears of that as it would without us
            client.abort()

    def add(self, end: "_End") -> None:
        """Know of a connection that was made."""
        self._ends.add(end)

    def remove(self, end: "_End") -> None:
        """Forget a connection that has ended."""
        self._ends.discard(end)


class _End(asyncio.Protocol):
    """One of the two connections that a client's way to the server is made of."""

    def __init__(self, proxy: CuttingProxy, client: "_End | None") -> None:
        self._proxy = proxy
        self.is_client = client is None
        self.other: _End | None = client
        self.connecting: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []  # what a client said before its server was reached
        self._late: deque[bytes] = deque()  # what is held up
        self._due = 0.0  # when the last of it is sent

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._proxy.add(self)
        if self.other is None:
            self._proxy.connect(self)
        else:
            self.other.joined(self)

    def joined(self, server: "_End") -> None:
        """The server was reached."""
        self.other = server
        if self._transport is None or self._transport.is_closing():
            server.abort()
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self._proxy.pass_on(data, server, is_answer=False)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._waiting.append(data)
        else:
            self._proxy.pass_on(data, self.other, is_answer=not self.is_client)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._proxy.remove(self)
        if self.other is not None and self.other._transport is not None:
            self.other._transport.close()

    def send(self, data: bytes, delay: float) -> None:
        """Send it after a while, and after all that was to be sent before it."""
        if not delay and not self._late:
            self._write(data)
            return
        loop = asyncio.get_running_loop()
        self._due = max(self._due, loop.time() + delay)
        self._late.append(data)
        loop.call_at(self._due, lambda: self._write(self._late.popleft()))

    def _write(self, data: bytes) -> None:
        """Send it, unless this end was cut meanwhile."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def abort(self) -> None:
        """End at once; what was not yet sent is lost."""
        if self._transport is not None:
            self._transport.abort()
