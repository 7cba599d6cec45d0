"""A process that adds batches to a session and prints the number of each once it is acknowledged.

python sqlite_worker.py PATH SESSION BATCHES SIZE
"""

import asyncio
import sys

from recollect import SQLiteSession


async def add_batches(path: str, session_id: str, batches: int, size: int) -> None:
    session = SQLiteSession(session_id, path)
    for batch in range(batches):
        await session.add_items([{"role": "user", "content": f"{batch}/{n}"} for n in range(size)])
        print(batch, flush=True)
    session.close()


if __name__ == "__main__":
    asyncio.run(add_batches(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
