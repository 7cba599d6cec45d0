"""A process of callers: `python -m tests.faults.linearizability.client THREADS TASKS`.

Each line that it reads is a round: where the sessions are, their names, how often each is to be called, a
seed, and the number of its first caller. All its callers then call these sessions at once, in several threads
with an event loop each, and it writes a line: what the callers of each session did and saw. It ends when
nothing more can come.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

from .history import Operation, to_wire
from .places import open_at
from .workload import work

Order: TypeAlias = dict[str, Any]


class Thread:
    """A thread with an event loop of its own, in which some callers share their sessions."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._runner = asyncio.Runner()

    def begin(self, order: Order, callers: Sequence[int]) -> "Future[list[list[Operation]]]":
        """Start a round; the future is what came of it, for each session."""
        return self._thread.submit(lambda: self._runner.run(_call(order, callers)))

    def close(self) -> None:
        """End the event loop and the thread."""
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


async def _call(order: Order, callers: Sequence[int]) -> list[list[Operation]]:
    return list(await asyncio.gather(*(_call_one(name, order, callers) for name in order["names"])))


async def _call_one(name: str, order: Order, callers: Sequence[int]) -> list[Operation]:
    session = open_at(order["place"], order["url"], name)
    try:
        seed = f"{order['seed']}/{order['round']}/{order['names'].index(name)}"
        working = (work(session, seed, caller, order["calls"]) for caller in callers)
        return [operation for each in await asyncio.gather(*working) for operation in each]
    finally:
        await session.aclose()


def main(threads: int, tasks: int) -> None:
    """Do what is asked for, line by line."""
    running = [Thread() for _ in range(threads)]
    try:
        for line in sys.stdin:
            order: Order = json.loads(line)
            starts = range(order["first"], order["first"] + threads * tasks, tasks)
            begun = [
                thread.begin(order, range(start, start + tasks))
                for start, thread in zip(starts, running, strict=True)
            ]
            told = [each.result() for each in begun]
            joined = [[each for part in parts for each in part] for parts in zip(*told, strict=True)]
            print(json.dumps([to_wire(history) for history in joined]), flush=True)
    finally:
        for thread in running:
            thread.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
