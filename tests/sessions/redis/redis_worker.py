"""Processes for the tests.

python redis_worker.py add URL PREFIX SESSION BATCHES SIZE    adds batches, prints each that is acknowledged
python redis_worker.py turns URL PREFIX SESSION TURNS NAME    takes turns of several calls under the run lock
"""

import asyncio
import sys

from recollect import run_lock
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import message


async def add(session: RedisSession, batches: int, size: int) -> None:
    for batch in range(batches):
        await session.add_items([message(f"{batch}/{n}") for n in range(size)])
        print(batch, flush=True)


async def take_turns(session: RedisSession, turns: int, name: str) -> None:
    for turn in range(turns):
        async with run_lock(session, timeout=30, lease=5):
            for part in range(3):
                await session.add_items([message(f"{name}/{turn}/{part}")])
                await asyncio.sleep(0.002)


async def main(task: str, url: str, prefix: str, session_id: str, number: str, argument: str) -> None:
    async with RedisSession.from_url(session_id, url=url, key_prefix=prefix) as session:
        if task == "add":
            await add(session, int(number), int(argument))
        else:
            await take_turns(session, int(number), argument)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
