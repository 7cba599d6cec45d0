"""Processes that kill themselves before a certain statement of a transaction; each is a fork of this one.

python cut_off.py URL ACT

Reads numbers, one in a line. For each a process does what ACT says with the conversation `c`, and is killed
before the statement of that number. Prints whether it was: there may be fewer.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import asyncpg  # noqa: F401 - so that no fork has to load it

import recollect.sql.sqlalchemy.registry  # noqa: F401
from recollect.memory.pipeline.scheduler import RunScheduler
from recollect.memory.store import MemoryStore
from recollect.sql.scripts import Script

SAID = [{"role": "user", "content": "I swim"}]


def cut(script: Script[Any], number: int) -> Script[Any]:
    """A script whose process is killed when it comes to a statement."""
    statement = next(script)
    while True:
        if not number:
            os.kill(os.getpid(), signal.SIGKILL)
        number -= 1
        try:
            statement = script.send((yield statement))
        except StopIteration as end:
            return end.value


async def main(url: str, act: str, number: int) -> None:
    async with MemoryStore(url, workers=0, embedder=None) as store:
        database = store._database
        write = database.write

        async def write_until_cut(make_script: Callable[[], Script[Any]]) -> Any:
            return await write(lambda: cut(make_script(), number))

        database.write = write_until_cut  # type: ignore[method-assign]
        if act == "sweep":
            await RunScheduler(database, "default").step()
        elif act == "close":
            await store.close_conversation("c")
        else:
            await store.append_messages("c", SAID, learn_after=0 if act == "append_quietly" else None)


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(main(sys.argv[1], sys.argv[2], int(line)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        print(status != 0, flush=True)
