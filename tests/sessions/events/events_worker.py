"""A process that works on an event log. It says `ready`, and begins once it is told to.

python events_worker.py TASK BATCHES SESSION_FILE URL CREATE_TABLES

It prints, for each batch that is acknowledged, its number and the sequence number of its first event.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from recollect import SQLiteSession
from recollect.sessions.events import EventLog
from tests.sessions.events.databases import somewhere_of

SIZE = 3


def batch_of(name: str, number: int) -> list[dict[str, str]]:
    """The items of a batch."""
    return [{"role": "user", "content": f"{name}/{number}/{n}"} for n in range(SIZE)]


async def append(log: EventLog, _path: str, name: str, number: int) -> int:
    """Append a batch."""
    events = await log.append("shared", batch_of(name, number))
    return events[0].sequence_number


async def project(log: EventLog, path: str, name: str, number: int) -> int:
    """Add a batch to the session that all share, and project it."""
    async with SQLiteSession("shared", path) as session:
        await session.add_items(batch_of(name, number))
        await log.project(session)
    return 0


TASKS = {"append": append, "project": project}


async def main(task: str, batches: str, path: str, *arguments: str) -> None:
    async with somewhere_of(*arguments).open(EventLog) as log:
        print("ready", flush=True)
        name = sys.stdin.readline().strip()
        for number in range(int(batches)):
            print(number, await TASKS[task](log, path, name, number), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
