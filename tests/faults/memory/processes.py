"""Clients and workers that begin at once: each is a fork of this process, which has all modules loaded.

python -m tests.faults.memory.processes

Reads orders, one in a line of JSON, and prints the number of the process that carries each out.
"""

import asyncio
import logging
import os
import signal
import sys

import asyncpg  # noqa: F401 - so that no fork has to load it
import psycopg  # noqa: F401

import recollect.sessions.sqlalchemy.shared  # noqa: F401
from recollect.errors import ModelUnavailableError
from recollect.memory.conversation import read_messages
from recollect.memory.models import OpenAIExtractor
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.times import now

from .client import carry_out
from .orders import read_order

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


def main() -> None:
    """Carry out orders until there are no more, and take all that was started along."""
    logging.disable()  # faults are meant
    asyncio.run(warm_up())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are killed
    children = []
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            asyncio.run(carry_out(read_order(line)))
            os._exit(0)
        children.append(child)
        print(child, flush=True)
    for child in children:
        if os.path.exists(f"/proc/{child}"):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
