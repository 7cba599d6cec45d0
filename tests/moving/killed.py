"""The work of processes that tests kill. Each tells its progress by a pipe."""

import asyncio
from multiprocessing.connection import Connection

from recollect.memory.store import MemoryStore
from recollect.moving import importer
from recollect.moving.copying import copy
from recollect.moving.kinds import ReadOptions, kind_named


def import_lines(told: Connection, source: str, target: str) -> None:
    """Import a file in small batches."""
    importer._ROWS = 200
    asyncio.run(_import(told, source, target))
    told.send("done")


async def _import(told: Connection, source: str, target: str) -> None:
    async with MemoryStore(target, workers=0, embedder=None) as store:
        work = importer.Importer(store, learn=True, on_progress=lambda _: told.send("batch"))
        await work.run(kind_named("jsonl").read(source, ReadOptions()))


def copy_all(told: Connection, source: str, target: str) -> None:
    """Copy a database in small pages."""
    copy._PAGE = 300
    asyncio.run(copy.copy_database(source, target, lambda *_: told.send("page")))
    told.send("done")
