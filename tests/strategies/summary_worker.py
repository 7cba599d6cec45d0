"""Reads a session with a summary to be made, in a process of its own, and prints the summary it sees."""

import asyncio
import os
import sys

from recollect import SQLiteSession
from recollect.strategies.session import StrategySession
from recollect.strategies.summarizers import SummaryRequest
from recollect.strategies.values import Summarize

path, calls = sys.argv[1:]


def note_call() -> None:
    with open(calls, "a", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")


async def summarize(_request: SummaryRequest) -> str:
    note_call()
    await asyncio.sleep(0.5)
    return f"summary by {os.getpid()}"


async def main() -> None:
    async with StrategySession(SQLiteSession("s", path), Summarize(4, 2), summarizer=summarize) as session:
        print((await session.get_items())[1]["content"])


asyncio.run(main())
