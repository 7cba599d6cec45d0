"""Learning in a process of its own: in this one it would take the processor from the requests.

The process is given the settings, works until its input ends, which is also when its parent dies, and tells
now and then how its embedder is. It takes what nobody else needs of the processor. One that dies is started
again, and what it was at is taken up where it was.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from typing import Any

from ..memory.models.named import extractor_named
from ..memory.search.embedders.named import embedder_named
from ..memory.store import MemoryStore
from .access.budget import Budget, TokenLedger
from .settings import Settings
from .telemetry.gathering import embedding_of
from .telemetry.logs import configure_logging

_log = logging.getLogger("recollect.learning")
_FIRST_PAUSE = 1.0  # seconds until a process that died is started again; doubled each time
_LONGEST_PAUSE = 60.0
_GOODBYE = 15.0  # seconds that it has to hand back what it is at
_TELL_EVERY = 5.0
_NICE = 10


class LearningProcess:
    """Keeps a learning process running, from `start` until `stop`."""

    def __init__(self, settings: Settings) -> None:
        # What it is told has no secrets: keys of models come from the environment.
        self._told = settings.model_dump_json(exclude={"chat"}).encode() + b"\n"
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.embedder_failures = 0
        self.unusable_texts = 0
        self.is_embedder_failing = False
        """What the process has told last."""

    def start(self) -> None:
        """Start the process; twice is harmless."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep_running())

    async def stop(self) -> None:
        """Let the process hand back what it is at, and wait until it has ended. Twice is harmless."""
        task, self._task = self._task, None
        process, self._process = self._process, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        if process is not None:
            await _end(process)

    async def _keep_running(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            self._process = await self._launch()
            if await self._listen(self._process):
                pause = _FIRST_PAUSE
            code = await self._process.wait()
            _log.error("the learning process ended with %d, and is started again", code)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _launch(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recollect.server.learning", stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        process.stdin.write(self._told)
        return process

    async def _listen(self, process: Process) -> bool:
        """Note what the process tells, until it ends; returns whether it told anything."""
        assert process.stdout is not None
        has_told = False
        while line := await process.stdout.readline():
            told = json.loads(line)
            self.embedder_failures = told["failures"]
            self.unusable_texts = told["unusable"]
            self.is_embedder_failing = told["is_failing"]
            has_told = True
        return has_told


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_GOODBYE):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # its leases run out, and others take over
        await process.wait()


# --- in the process itself ---


async def _learn() -> None:
    """Work until the input ends, or a signal comes."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)  # it is meant for the parent
    orders = await _input()
    settings = Settings.model_validate_json(await orders.readline())
    configure_logging(settings.logging)
    watching = asyncio.create_task(_set_at_end(orders, ended))
    place, url = settings.database.options(), settings.database.url
    extractor = extractor_named(settings.memory.extractor)
    try:
        async with TokenLedger(url, **place) as ledger:
            store = MemoryStore(
                url,
                extractor=extractor,
                embedder=embedder_named(settings.memory.embedder),
                workers=settings.memory.workers,
                all_tenants=True,
                meter=Budget(ledger, lambda tenant: settings.limits_for(tenant).tokens_per_day),
                **place,
            )
            async with store:
                store.start()
                await _tell_until(ended, store)
    finally:
        watching.cancel()
        await extractor.aclose()


async def _input() -> asyncio.StreamReader:
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    return orders


async def _set_at_end(orders: asyncio.StreamReader, ended: asyncio.Event) -> None:
    await orders.read()
    ended.set()


async def _tell_until(ended: asyncio.Event, store: MemoryStore) -> None:
    while not ended.is_set():
        with contextlib.suppress(BrokenPipeError):  # nobody listens any more: then the input ends, too
            print(json.dumps(_state_of(store)), flush=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TELL_EVERY):
                await ended.wait()


def _state_of(store: MemoryStore) -> dict[str, Any]:
    embedding = embedding_of(store)
    if embedding is None:
        return {"failures": 0, "unusable": 0, "is_failing": False}
    return {
        "failures": embedding.failures,
        "unusable": embedding.unusable,
        "is_failing": embedding.last_error is not None,
    }


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICE)
    asyncio.run(_learn())
