"""A process that works on the sessions of a file: `python -m tests.faults.soak.sessions PATH SEED`.

Each line that it reads says how many calls to make; it makes them, some at a time, and writes a line with how
long they took. Sessions come, are added to, read, shortened and cleared: all in all, as much goes as comes.
"""

import asyncio
import json
import random
import sys
from collections.abc import Iterator
from time import perf_counter
from typing import Any

from recollect import SQLiteSession

_AT_ONCE = 16
_SESSIONS = 200
_LONGEST = 60  # items, after which a session is shortened
_TEXT = "what somebody says in a conversation that goes on for a while " * 4


def _items(chance: random.Random) -> list[dict[str, Any]]:
    return [{"role": "user", "content": _TEXT[: chance.randrange(20, len(_TEXT))]} for _ in range(2)]


async def _call(path: str, chance: random.Random) -> None:
    """One call on one of the sessions."""
    async with SQLiteSession(f"session-{chance.randrange(_SESSIONS)}", path) as session:
        choice = chance.random()
        if choice < 0.55:
            await session.add_items(_items(chance))
        elif choice < 0.8:
            await session.get_items(chance.choice([None, 10]))
        elif choice < 0.92:
            await session.pop_item()
        elif choice < 0.98:
            await session.transform_items(lambda items: items[-_LONGEST // 2 :])
        else:
            await session.clear_session()


async def _work(path: str, chance: random.Random, calls: Iterator[int], took: list[float]) -> None:
    for _ in calls:
        began = perf_counter()
        await _call(path, chance)
        took.append(perf_counter() - began)


async def _stretch(path: str, chance: random.Random, count: int) -> list[float]:
    took: list[float] = []
    calls = iter(range(count))
    await asyncio.gather(*(_work(path, chance, calls, took) for _ in range(_AT_ONCE)))
    return took


def main(path: str, seed: str) -> None:
    """Work as asked, line by line."""
    chance = random.Random(seed)
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(sorted(runner.run(_stretch(path, chance, int(line))))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
