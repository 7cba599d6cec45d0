"""A worker that learns all that is pending, and kills itself before a statement of the merging transaction.

python merging_process.py URL NUMBER
"""

import asyncio
import sys
from typing import Any

from cut_off import cut

from recollect.memory.pipeline.execution import Execution
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.store import MemoryStore

LEASE = 0.5  # seconds: the next process takes the run over


async def main(url: str, number: int) -> None:
    merge = Execution._merge_script

    def merge_until_cut(self: Any, now: str) -> Any:
        return cut(merge(self, now), number)

    Execution._merge_script = merge_until_cut  # type: ignore[method-assign]
    options = RunOptions(lease_seconds=LEASE)
    async with MemoryStore(url, workers=1, embedder=None, options=options) as store:
        await store.drain(30)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
