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
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ..memory.extraction import build_extractor
from ..memory.pipeline.stages import Extractor
from ..memory.search.embedders import build_embedder
from ..memory.store import MemoryStore
from .access.budget import Budget, TokenLedger
from .settings import Settings
from .telemetry.collector import database_of, embedding_of
from .telemetry.logs import configure_logging

GOODBYE = 15.0
"""Seconds that a learning process has at the end to hand back what it is at."""

_log = logging.getLogger("recollect.learning")
_FIRST_PAUSE = 1.0  # seconds until a process that died is started again; doubled each time
_LONGEST_PAUSE = 60.0
_TELL_EVERY = 5.0
_NICE = 10
_LONGEST_SETTINGS = 2**24  # bytes: each tenant may have limits of its own


@dataclass(frozen=True)
class Learner:
    """What learns: a store whose workers have not been started yet, and what it goes by."""

    store: MemoryStore
    extractor: Extractor
    budget: Budget


@asynccontextmanager
async def open_learner(settings: Settings, tenant: str | None = None) -> AsyncIterator[Learner]:
    """What learns as the settings say, for all tenants or for one."""
    place, url = settings.database.options(), settings.database.url
    whose: dict[str, Any] = {"all_tenants": True} if tenant is None else {"tenant": tenant}
    extractor = build_extractor(settings.memory.extractor)
    try:
        async with TokenLedger(url, **place) as ledger:
            budget = Budget(ledger, lambda tenant: settings.limits_for(tenant).tokens_per_day)
            store = MemoryStore(
                url,
                extractor=extractor,
                embedder=build_embedder(settings.memory.embedder),
                workers=settings.memory.workers,
                meter=budget,
                **whose,
                **place,
            )
            async with store:
                yield Learner(store, extractor, budget)
    finally:
        await extractor.aclose()


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
        self.is_disk_full = False
        """What the process has told last."""
        self.is_alive = False
        """Whether the process works: from its first report until it ends."""
        self.count_tokens: Callable[[int], object] = lambda _: None
        """Is told of the tokens that models were asked for since it was told last."""

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
            try:
                if await self._listen(self._process):
                    pause = _FIRST_PAUSE
            finally:
                self.is_alive = False
            code = await self._process.wait()
            _log.error("the learning process ended with %d, and is started again", code)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _launch(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recollect.server.learner", stdin=PIPE, stdout=PIPE
        )
        assert process.stdin is not None
        process.stdin.write(self._told)
        return process

    async def _listen(self, process: Process) -> bool:
        """Note what the process tells, until it ends; returns whether it told anything."""
        assert process.stdout is not None
        has_told, tokens = False, 0
        while line := await process.stdout.readline():
            told = json.loads(line)
            self.embedder_failures = told["failures"]
            self.unusable_texts = told["unusable"]
            self.is_embedder_failing = told["is_failing"]
            self.is_disk_full = told["is_disk_full"]
            self.is_alive = True
            self.count_tokens(told["tokens"] - tokens)
            has_told, tokens = True, told["tokens"]
        return has_told


async def _end(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(GOODBYE):
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
    try:
        async with open_learner(settings) as learner:
            learner.store.start()
            await _tell_until(ended, learner)
    finally:
        watching.cancel()


async def _input() -> asyncio.StreamReader:
    orders = asyncio.StreamReader(limit=_LONGEST_SETTINGS)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    return orders


async def _set_at_end(orders: asyncio.StreamReader, ended: asyncio.Event) -> None:
    await orders.read()
    ended.set()


async def _tell_until(ended: asyncio.Event, learner: Learner) -> None:
    while not ended.is_set():
        with contextlib.suppress(BrokenPipeError):  # nobody listens any more: then the input ends, too
            print(json.dumps(_state_of(learner)), flush=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TELL_EVERY):
                await ended.wait()


def _state_of(learner: Learner) -> dict[str, Any]:
    embedding, database = embedding_of(learner.store), database_of(learner.store)
    is_full = database.is_full
    database.forget_full()  # it is noted again by the next write that fails
    return {
        "tokens": learner.budget.spent_here,
        "failures": 0 if embedding is None else embedding.failures,
        "unusable": 0 if embedding is None else embedding.unusable,
        "is_failing": embedding is not None and embedding.last_error is not None,
        "is_disk_full": is_full,
    }


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(_NICE)
    asyncio.run(_learn())
