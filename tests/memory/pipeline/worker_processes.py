"""Worker processes that begin at once: each is a fork of this one, which has all modules loaded.

python worker_processes.py URL BASE_URL API_KEY LEASE_SECONDS [FOLDER]

Reads names, one in a line, starts a worker that calls its model so, and prints the number of its process. A
file CONVERSATION-STAGE in the folder kills the worker that is about to store that stage, and is gone then.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import asyncpg  # noqa: F401 - so that no fork has to load it

import recollect.sql.sqlalchemy.registry  # noqa: F401
from recollect.errors import ModelUnavailableError
from recollect.memory.conversation import read_messages
from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.pipeline.execution import Execution
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.pipeline.stages import Excerpt
from recollect.memory.store import MemoryStore
from recollect.memory.times import now

NOBODY = "http://127.0.0.1:9/v1"


def kill_before_storing(folder: Path) -> None:
    """Let workers kill themselves after they have worked and before they store the result."""
    store = Execution._store

    async def store_unless_killed(self: Any, *given: Any, **named: Any) -> None:
        mark = folder / f"{self._task.run.conversation_id}-{self.stage}"
        if mark.exists():
            mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        await store(self, *given, **named)

    Execution._store = store_unless_killed  # type: ignore[method-assign]


async def work(
    name: str, url: str, base_url: str, api_key: str, lease_seconds: str, folder: str | None = None
) -> None:
    if folder is not None:
        kill_before_storing(Path(folder))
    options = RunOptions(lease_seconds=float(lease_seconds))
    extractor = OpenAIExtractor(name, base_url=base_url, api_key=api_key)
    async with MemoryStore(url, extractor=extractor, embedder=None, workers=1, options=options) as store:
        store.start()
        await asyncio.Event().wait()


async def warm_up() -> None:
    """Load what a client loads when it is used for the first time."""
    async with OpenAIExtractor(base_url=NOBODY, api_key="none", timeout=5) as extractor:
        said = read_messages([{"role": "user", "content": "hello"}], now())
        try:
            await extractor.modification(Excerpt("agent", "user", said))
        except ModelUnavailableError:
            return


def main() -> None:
    asyncio.run(warm_up())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that are killed
    children = []
    for name in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(work(name.strip(), *sys.argv[1:]))
        children.append(child)
        print(child, flush=True)
    for child in children:
        if os.path.exists(f"/proc/{child}"):
            os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
