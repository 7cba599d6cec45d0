"""Work in processes of its own, where contenders cannot disturb one another.

The processes are forked from a server that has imported everything and opened nothing. So each starts at
once, has a heap like that of a real application, the same for every contender, and inherits no connection.
"""

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

_TIMEOUT = 180.0
_PRELOADED = [
    "agents",
    "agents.extensions.memory.async_sqlite_session",
    "recollect.sessions.sqlite",
    "psutil",
]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(_PRELOADED)


class WorkerError(RuntimeError):
    """A worker failed; the message is its traceback."""


class Worker:
    """A process that runs `work(connection, *arguments)` and sends what that returns."""

    def __init__(self, work: Callable[..., Any], *arguments: Any) -> None:
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(target=_run, args=(theirs, work, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, message: Any) -> None:
        """Hand a message to the work."""
        self._connection.send(message)

    def receive(self) -> Any:
        """The next message of the work, or its result."""
        if not self._connection.poll(_TIMEOUT):
            raise WorkerError(f"no answer within {_TIMEOUT:.0f} s")
        succeeded, message = self._connection.recv()
        if not succeeded:
            raise WorkerError(message)
        return message

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._process.kill()
        self._process.join(_TIMEOUT)
        self._connection.close()


class Parent:
    """The other end, for the work to talk to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def wait_for_start(self) -> None:
        """Say that all is ready, and wait until the others are too."""
        self._connection.send((True, "ready"))
        self._connection.recv()


def call_in_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """What `work(parent, *arguments)` returns in a new process."""
    with Worker(work, *arguments) as worker:
        return worker.receive()


def _run(connection: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        connection.send((True, work(Parent(connection), *arguments)))
    except Exception:  # noqa: BLE001 - the end of the process: whoever started it must hear of it
        connection.send((False, traceback.format_exc()))
