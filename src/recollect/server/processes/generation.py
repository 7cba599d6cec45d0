"""The server processes that were started together, with the same configuration."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from .child import ServerProcess, StartError

_log = logging.getLogger("recollect.supervisor")
_FIRST_PAUSE = 1.0  # seconds until a process that could not start is started again; doubled each time
_LONGEST_PAUSE = 60.0


class Generation:
    """Keeps a number of server processes running, from `start` until `end`.

    `launch(is_quiet)` starts one and returns it when it is ready.
    """

    def __init__(self, launch: Callable[[bool], Coroutine[Any, Any, ServerProcess]], count: int) -> None:
        self._launch = launch
        self._count = count
        self._keepers: list[asyncio.Task[None]] = []
        self.processes: set[ServerProcess] = set()
        self.restarts = 0
        """How many processes ended unexpectedly and were started again."""

    async def start(self, *, is_quiet: bool) -> None:
        """Start all processes, and return when they are ready. If one cannot start, none is left running.

        The first one starts alone: it may have to create or migrate the database.
        """
        try:
            self.processes.add(await self._launch(is_quiet))
            async with asyncio.TaskGroup() as others:
                for _ in range(self._count - 1):
                    others.create_task(self._add())
        except BaseExceptionGroup as group:
            await self._kill_all()
            raise _first_of(group) from None
        except BaseException:
            await self._kill_all()
            raise
        self._keepers = [asyncio.create_task(self._keep(process)) for process in self.processes]

    async def _kill_all(self) -> None:
        await asyncio.gather(*(process.kill() for process in self.processes))

    async def _add(self) -> ServerProcess:
        process = await self._launch(True)
        self.processes.add(process)
        return process

    async def _keep(self, process: ServerProcess) -> None:
        while True:
            code = await process.wait()
            self.processes.discard(process)
            _log.error(
                "server process ended unexpectedly, restarting", extra={"pid": process.pid, "exit_code": code}
            )
            process = await self._start_again()
            self.restarts += 1

    async def _start_again(self) -> ServerProcess:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._add()
            except (StartError, OSError) as error:  # the system may have no memory or process id left
                _log.error("server process could not start, will retry", extra={"reason": str(error)})
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def end(self, ask: Callable[[ServerProcess], object], seconds: float) -> None:
        """Ask each process to end, and wait until all have. Those that take too long are killed."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        waiting: list[Awaitable[None]] = []
        for process in list(self.processes):
            ask(process)
            waiting.append(self._remove_when_ended(process, seconds))
        await asyncio.gather(*waiting)

    async def _remove_when_ended(self, process: ServerProcess, seconds: float) -> None:
        await process.wait_or_kill(seconds)
        self.processes.discard(process)


def _first_of(error: BaseException) -> BaseException:
    """The first error of a group."""
    return _first_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
