"""Clients and workers that begin at once: each is a fork of this process, which has all modules loaded.

python -m tests.faults.memory.processes

Reads orders, one in a line of JSON, and prints the number of the process that carries each out. Until the
next order that number is nobody else's, even if the process has ended, so that a handle on it can be had
first. On SIGUSR1 a process says on standard error where its threads are, on SIGUSR2 where its tasks wait.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeAlias

import asyncpg  # noqa: F401 - so that no fork has to load it
import psycopg  # noqa: F401

import recollect.sql.sqlalchemy.registry  # noqa: F401
from recollect.errors import ModelUnavailableError
from recollect.memory.conversation import read_messages
from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.times import now

from .client import carry_out
from .orders import Order, read_order

CarryOut: TypeAlias = Callable[[Order], Coroutine[Any, Any, None]]
_NOBODY = "http://127.0.0.1:9/v1"


async def warm_up() -> None:
    """Load what is loaded when it is used for the first time."""
    said = read_messages([{"role": "user", "content": "I bought a hat"}], now())
    await OfflineExtractor().modification(Excerpt("agent", "user", said))
    async with OpenAIExtractor(base_url=_NOBODY, api_key="none", timeout=5) as extractor:
        try:
            await extractor.modification(Excerpt("agent", "user", said))
        except ModelUnavailableError:
            return


def serve_orders(carry_out: CarryOut) -> None:
    """Carry out orders until there are no more, and take all that was started along."""
    logging.disable()  # faults are meant
    faulthandler.register(signal.SIGUSR1)
    children: list[int] = []
    for line in sys.stdin:
        children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            asyncio.run(_listen_and_do(carry_out, read_order(line)))
            os._exit(0)
        children.append(child)
        print(child, flush=True)
    for child in children:  # none was waited for, so these numbers are still theirs
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


async def _listen_and_do(carry_out: CarryOut, order: Order) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, _tell_tasks)
    await carry_out(order)


def _tell_tasks() -> None:
    for task in asyncio.all_tasks():
        print(task.get_name(), *_waits(task.get_coro()), sep="\n  ", file=sys.stderr, flush=True)


def _waits(awaited: Any) -> Iterator[str]:
    """Where a coroutine waits for another, and so on."""
    while frame := getattr(awaited, "cr_frame", None):
        yield f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        awaited = awaited.cr_await


if __name__ == "__main__":
    asyncio.run(warm_up())
    serve_orders(carry_out)
