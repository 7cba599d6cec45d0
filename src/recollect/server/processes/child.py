"""A server process, seen from the supervisor."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from ...errors import RecollectError
from ..telemetry.processes import Snapshot
from .link import Link

_MODULE = "recollect.server.processes.server_process"
_START_SECONDS = 240.0  # a busy machine may take long


class StartError(RecollectError):
    """A server process could not start."""


class ServerProcess:
    """A running server process with its link."""

    def __init__(self, process: asyncio.subprocess.Process, link: Link) -> None:
        self._process = process
        self._link = link
        self._is_ready = asyncio.Event()
        self._failure = "a server process ended before it was ready"
        self._listening = asyncio.create_task(self._listen())
        self.metrics: Snapshot = ()
        """Its latest metrics."""
        self.on_work: Callable[[], None] = lambda: None
        """Called when the process has something to learn."""
        self.on_ask: Callable[[], Mapping[str, Snapshot]] = dict
        """Called when the process asks for the metrics of all."""

    @classmethod
    async def launch(cls, start: Mapping[str, Any], descriptors: Sequence[int]) -> "ServerProcess":
        """Start a process that inherits file descriptors. It gets `start` as its first message."""
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as on_failure:
            on_failure.enter_context(ours)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _MODULE, str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *descriptors),
            )
            on_failure.pop_all()
        link = await Link.open(ours)
        link.send("start", start)
        return cls(process, link)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait_until_ready(self) -> None:
        """Wait until it accepts connections. Else it is killed, and a `StartError` says why."""
        ready = asyncio.create_task(self._is_ready.wait())
        try:
            done, _ = await asyncio.wait(
                {ready, self._listening}, timeout=_START_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise StartError(f"a server process was not ready within {_START_SECONDS:.0f} seconds")
            if ready not in done:
                raise StartError(self._failure)
        except BaseException:
            await self.kill()
            raise
        finally:
            ready.cancel()

    async def _listen(self) -> None:
        async for kind, content in self._link.messages():
            if kind == "ready":
                self._is_ready.set()
            elif kind == "failed":
                self._failure = content
            elif kind == "work":
                self.on_work()
            elif kind == "metrics":
                self.metrics = content
            elif kind == "ask":
                self.metrics = content["metrics"]
                self.send("answer", {"number": content["number"], "metrics": self.on_ask()})

    def send(self, kind: str, content: Any = None) -> None:
        """Send a message to the process."""
        self._link.send(kind, content)

    def terminate(self) -> None:
        """Ask it to stop gracefully."""
        self._signal(signal.SIGTERM)

    async def kill(self) -> None:
        """Kill it, and wait until it has ended."""
        self._signal(signal.SIGKILL)
        await self.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def wait(self) -> int:
        """Wait until it has ended; returns its exit code."""
        code = await self._process.wait()
        self._listening.cancel()
        self._link.close()
        return code

    async def wait_or_kill(self, seconds: float) -> None:
        """Wait until it has ended. After some time it is killed."""
        try:
            async with asyncio.timeout(seconds):
                await self.wait()
        except TimeoutError:
            await self.kill()
