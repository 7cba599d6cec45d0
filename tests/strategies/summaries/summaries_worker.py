"""A process that adds summaries to a conversation and prints the version of each once it is acknowledged.

python summaries_worker.py COUNT URL CREATE_TABLES
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from recollect.strategies.summaries import ConversationSummaryStore
from tests.sessions.events.databases import somewhere_of


async def main(count: str, *arguments: str) -> None:
    async with somewhere_of(*arguments).open(ConversationSummaryStore) as store:
        for number in range(int(count)):
            print((await store.add("c", f"text {number}")).version, flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
