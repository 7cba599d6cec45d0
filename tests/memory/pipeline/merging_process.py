"""Workers that learn all that is pending; each is a fork of this process, which has all modules loaded.

python merging_process.py URL

Reads numbers, one in a line. For each, a worker kills itself before the statement of that number in the
transaction that merges. Prints whether it did: there may be fewer statements.
"""

import asyncio
import os
import signal
import sys
from typing import Any

import asyncpg  # noqa: F401 - so that no fork has to load it
from cut_off import cut
from extractors import DiaryExtractor

import recollect.sql.sqlalchemy.registry  # noqa: F401 - so that no fork has to load it
from recollect.memory.pipeline.execution import Execution
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.store import MemoryStore

LEASE = 0.3  # seconds: the next worker takes the run over


async def main(url: str, number: int) -> None:
    merge = Execution._merge_script

    def merge_until_cut(self: Any, now: str) -> Any:
        return cut(merge(self, now), number)

    Execution._merge_script = merge_until_cut  # type: ignore[method-assign]
    options = RunOptions(lease_seconds=LEASE)
    store = MemoryStore(url, workers=1, embedder=None, options=options, extractor=DiaryExtractor())
    async with store:
        await store.drain(30)


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(main(sys.argv[1], int(line)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
        print(status != 0, flush=True)
