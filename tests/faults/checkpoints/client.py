"""A client, which stores steps, and a worker, which prunes: until they are done, told to end, or killed."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import uuid4

from recollect.errors import ConflictError, ConnectionLostError, DiskFullError, RecollectError, TransientError
from recollect.integrations.langgraph import Checkpointer

from ..leaks import held, left_behind
from ..memory.journal import Journal
from ..memory.orders import Order
from .state import CHANNEL, Item, Operation, config_of, metadata_of, new_checkpoint, wrong_with

T = TypeVar("T")

KEPT = ("kept-0", "kept-1", "kept-2")
"""Threads of which nothing is removed."""
PRUNED = ("pruned-0", "pruned-1")
"""Threads of which the worker leaves the newest checkpoint alone."""
_PASSING = (TransientError, ConnectionLostError, DiskFullError)
_PAUSE = 0.05  # seconds until a database that failed is asked again


class BrokenPromiseError(Exception):
    """Something was not as it must be."""


async def carry_out(order: Order) -> None:
    """Do what an order says, and tell in the journal what was not let go of."""
    journal = Journal(Path(order.journal))
    before = held()
    async with Checkpointer(order.url) as checkpointer:
        await (_prune if order.is_worker else _work)(checkpointer, order, journal)
    await asyncio.get_running_loop().shutdown_default_executor()
    journal.ended(await left_behind(before))
    journal.close()


async def _prune(checkpointer: Checkpointer, order: Order, journal: Journal) -> None:  # noqa: ARG001
    """Prune until told to end."""
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    while not end.is_set():
        try:
            await checkpointer.aprune(PRUNED)
        except _PASSING as error:
            journal.refused(0, type(error).__name__)
        await asyncio.sleep(_PAUSE)
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


async def _work(checkpointer: Checkpointer, order: Order, journal: Journal) -> None:
    left = iter(range(order.operations))
    async with asyncio.TaskGroup() as group:
        for task in range(order.tasks):
            name = f"{order.client}.{order.life}.{task}"
            worker = _Task(checkpointer, journal, task, name, Random(f"{order.seed}/{name}"))
            group.create_task(worker.run(left))


class _Task:
    """Does one operation after another."""

    def __init__(
        self, checkpointer: Checkpointer, journal: Journal, task: int, name: str, random: Random
    ) -> None:
        self._saver = checkpointer
        self._journal = journal
        self._task = task
        self._name = name
        self._random = random
        self._number = 0
        self._copies: list[str] = []
        self._at: dict[str, tuple[Any, list[Item]]] = {}
        """Where this task goes on in each thread: a checkpoint that it stored or read, and its items."""

    async def run(self, left: Iterator[int]) -> None:
        """Do operations as long as there are some left."""
        kinds = {
            self._step: 10,
            self._cancelled: 2,
            self._look: 3,
            self._list: 2,
            self._copy: 1,
            self._delete: 1,
        }
        for _ in left:
            (kind,) = self._random.choices(list(kinds), list(kinds.values()))
            try:
                await kind()
            except BrokenPromiseError as error:
                self._journal.wrong(str(error))
                return
            except RecollectError as error:  # none that the faults there are may lead to
                self._journal.wrong(f"a call was refused for good: {type(error).__name__}: {error}")
                return

    async def _until_done(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except _PASSING as error:
                self._journal.refused(self._task, type(error).__name__)
                await asyncio.sleep(_PAUSE)

    async def _step(self) -> None:
        """Store a checkpoint after the last one, or after the newest, and then what a task wrote."""
        thread = self._random.choice((*KEPT, *PRUNED))
        parent, checkpoint, items = await self._next(thread)
        self._journal.intend(self._task, Operation("put", thread, checkpoint["id"]))
        put = partial(
            self._saver.aput, parent, checkpoint, metadata_of(items), checkpoint["channel_versions"]
        )
        config = await self._until_done(put)
        self._journal.acknowledged(self._task, "put")
        self._at[thread] = (config, items)
        text = f"{self._name}/{self._number}"
        self._journal.intend(self._task, Operation("put_writes", thread, checkpoint["id"], text=text))
        writes = [(CHANNEL, [{"text": text}]), ("other", text)]
        await self._until_done(partial(self._saver.aput_writes, config, writes, str(uuid4()), ""))
        self._journal.acknowledged(self._task, "put_writes")

    async def _next(self, thread: str) -> tuple[Any, Any, list[Item]]:
        """The config of a parent, a checkpoint after it, and its items: some added, some replaced."""
        if thread not in self._at or self._random.random() < 0.2:
            found = await self._until_done(partial(self._saver.aget_tuple, config_of(thread)))
            values: Any = {} if found is None else found.checkpoint["channel_values"]
            self._at[thread] = (found.config if found else config_of(thread), values.get(CHANNEL, []))
        parent, items = self._at[thread]
        self._number += 1
        new = [
            {"by": self._name, "n": self._number, "part": part, "text": "x" * self._random.randrange(400)}
            for part in range(self._random.randint(1, 3))
        ]
        changed = [*items, *new]
        if items and self._random.random() < 0.2:
            changed[self._random.randrange(len(items))] = {"by": self._name, "n": self._number, "part": -1}
        if len(changed) > 200:
            changed = changed[-50:]
        version = self._saver.get_next_version(f"{len(changed) + self._number:032}.0", None)
        return parent, new_checkpoint(changed, version), changed

    async def _cancelled(self) -> None:
        """Give up waiting for a checkpoint: it is stored whole, or not at all."""
        thread = self._random.choice(KEPT)
        parent, checkpoint, items = await self._next(thread)
        self._at.pop(thread)
        storing = asyncio.ensure_future(
            self._saver.aput(parent, checkpoint, metadata_of(items), checkpoint["channel_versions"])
        )
        for _ in range(self._random.randrange(6)):
            await asyncio.sleep(0)
        storing.cancel()
        with suppress(asyncio.CancelledError, *_PASSING):
            await storing
        self._journal.looked(self._task, "cancelled put")

    async def _look(self) -> None:
        thread = self._random.choice((*KEPT, *PRUNED))
        found = await self._until_done(partial(self._saver.aget_tuple, config_of(thread)))
        if found is not None and (wrong := wrong_with(found)):
            raise BrokenPromiseError(f"{thread}: {wrong}")
        self._journal.looked(self._task, "get_tuple")

    async def _list(self) -> None:
        thread = self._random.choice((*KEPT, *PRUNED))

        async def read() -> list[Any]:
            return [found async for found in self._saver.alist(config_of(thread), limit=5)]

        for found in await self._until_done(read):
            if wrong := wrong_with(found):
                raise BrokenPromiseError(f"{thread}: {wrong}")
        self._journal.looked(self._task, "list")

    async def _copy(self) -> None:
        source, target = self._random.choice(KEPT), f"copy-{uuid4()}"
        if await self._until_done(partial(self._saver.aget_tuple, config_of(source))) is None:
            self._journal.looked(self._task, "get_tuple")
            return
        self._journal.intend(self._task, Operation("copy", source, to=target))
        with suppress(ConflictError):  # an attempt before, whose end was not heard of, has made it
            await self._until_done(partial(self._saver.acopy_thread, source, target))
        self._journal.acknowledged(self._task, "copy")
        self._copies.append(target)

    async def _delete(self) -> None:
        thread = self._copies.pop() if self._copies else f"none-{uuid4()}"
        self._journal.intend(self._task, Operation("delete", thread))
        await self._until_done(partial(self._saver.adelete_thread, thread))
        self._journal.acknowledged(self._task, "delete")
