"""A process that adds batches to a session and prints the number of each once it is acknowledged.

python postgres_worker.py URL SESSION BATCHES SIZE SESSIONS_TABLE MESSAGES_TABLE
"""

import asyncio
import sys

from recollect.sessions.sqlalchemy import SQLAlchemySession


async def add_batches(url: str, session_id: str, batches: int, size: int, tables: dict[str, str]) -> None:
    async with SQLAlchemySession.from_url(session_id, url=url, create_tables=True, **tables) as session:
        for batch in range(batches):
            await session.add_items([{"role": "user", "content": f"{batch}/{n}"} for n in range(size)])
            print(batch, flush=True)


if __name__ == "__main__":
    names = {"sessions_table": sys.argv[5], "messages_table": sys.argv[6]}
    asyncio.run(add_batches(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), names))
