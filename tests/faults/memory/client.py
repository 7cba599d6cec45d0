"""A client, and a worker: a process with a store, until it is done, told to end, or killed."""

import asyncio
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from recollect.errors import RecollectError
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.store import MemoryStore

from ..leaks import held, left_behind
from .calls import BrokenPromiseError, acknowledged, look
from .journal import Journal
from .model import SHARED, apply
from .models import close, embedder_of, extractor_of
from .orders import Order
from .workload import Chooser, Name

OPTIONS = RunOptions(lease_seconds=2.0, attempts=4, backoff_seconds=0.02, longest_backoff_seconds=0.2)


async def carry_out(order: Order) -> None:
    """Do what an order says, and tell in the journal what was not let go of."""
    journal = Journal(Path(order.journal))
    before = held()
    extractor = extractor_of(order.provider, order.api_key) if order.is_worker else None
    embedder = embedder_of(order.provider, order.api_key) if order.searches_by_meaning else None
    async with MemoryStore(
        order.url, extractor=extractor, embedder=embedder, workers=int(order.is_worker) * 2, options=OPTIONS
    ) as store:
        await (_learn(store) if order.is_worker else _client(store, order, journal))
    await close(extractor, embedder)
    await asyncio.get_running_loop().shutdown_default_executor()
    journal.ended(await left_behind(before))
    journal.close()


async def _learn(store: MemoryStore) -> None:
    """Learn until told to end."""
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    store.start()
    await end.wait()
    asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)


async def _client(store: MemoryStore, order: Order, journal: Journal) -> None:
    """Do so many operations, several at a time."""
    left = iter(range(order.operations))
    names = [Name(order.client, order.life, task) for task in range(order.tasks)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(_task(store, Chooser(order.seed, name), name.task, journal, left))


async def _task(
    store: MemoryStore, chooser: Chooser, task: int, journal: Journal, left: Iterator[int]
) -> None:
    for _ in left:
        try:
            await (_look if chooser.is_look() else _write)(store, chooser, task, journal)
        except BrokenPromiseError as error:
            journal.wrong(str(error))
            return
        except RecollectError as error:  # none that the faults there are may lead to
            journal.wrong(f"a call was refused for good: {type(error).__name__}: {error}")
            return


async def _look(store: MemoryStore, chooser: Chooser, task: int, journal: Journal) -> None:
    kind, user = chooser.look()
    await look(store, kind, user, chooser, partial(journal.refused, task))
    journal.looked(task, f"look at {kind}")


async def _write(store: MemoryStore, chooser: Chooser, task: int, journal: Journal) -> None:
    operation = chooser.write()
    journal.intend(task, operation)
    content_id = await acknowledged(store, operation, partial(journal.refused, task))
    journal.acknowledged(task, operation.do, content_id)
    if operation.do != SHARED:
        (user,) = (user for user in chooser.users if user.name == operation.user)
        apply(user, operation, content_id)
