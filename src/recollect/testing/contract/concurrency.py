"""Concurrency: tasks, event loops, threads, and cancelled calls."""

import asyncio
import random
import threading
import time
from itertools import pairwise

from ...sessions.protocol import Session
from .base import ContractBase
from .tools import assert_whole_and_ordered, close, in_event_loop, message, texts


class ConcurrencyContract(ContractBase):
    """The rules for concurrent calls."""

    @in_event_loop
    async def test_concurrent_batches_stay_whole_and_in_order(self) -> None:
        session = await self.open_session("s")

        async def write(writer: int) -> None:
            for batch in range(5):
                await session.add_items([message(f"{writer}/{batch}/{n}") for n in range(4)])

        await asyncio.gather(*(write(writer) for writer in range(8)))
        assert_whole_and_ordered(texts(await session.get_items()), writers=8, batches=5, size=4)
        await close(session)

    @in_event_loop
    async def test_a_reader_never_sees_part_of_a_batch(self) -> None:
        if not self.atomic:
            return
        session = await self.open_session("s")
        writing = asyncio.create_task(self._write_batches(session, batches=20, size=5))
        seen: list[list[str]] = [[]]
        while not writing.done():
            seen.append(texts(await session.get_items()))
            await asyncio.sleep(0)
        await writing
        for earlier, later in pairwise(seen):
            assert len(later) % 5 == 0
            assert later[: len(earlier)] == earlier, "what was read once has not changed"
        await close(session)

    async def _write_batches(self, session: Session, batches: int, size: int) -> None:
        for batch in range(batches):
            await session.add_items([message(f"{batch}/{n}") for n in range(size)])

    @in_event_loop
    async def test_two_poppers_never_get_the_same_item(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message(n) for n in range(20)])
        popped = await asyncio.gather(*(session.pop_item() for _ in range(30)))
        found = [item["content"] for item in popped if item is not None]
        assert sorted(found, key=int) == [str(n) for n in range(20)]
        assert await session.get_items() == []
        await close(session)

    def test_works_from_several_event_loops_one_after_another(self) -> None:
        async def use(session: Session | None, number: int) -> Session:
            session = session or await self.open_session("s")
            await session.add_items([message(number)])
            assert texts(await session.get_items()) == [str(n) for n in range(number + 1)]
            return session

        session = None
        for number in range(3):
            session = asyncio.run(use(session, number))
        asyncio.run(close(session))

    def test_works_from_several_threads_at_once(self) -> None:
        if not self.shared:
            return
        failures: list[BaseException] = []

        async def write(writer: int) -> None:
            session = await self.open_session("s")
            for batch in range(5):
                await session.add_items([message(f"{writer}/{batch}/{n}") for n in range(3)])
                await session.get_items(limit=2)
            await close(session)

        def run(writer: int) -> None:
            try:
                asyncio.run(write(writer))
            except BaseException as error:  # noqa: BLE001 - a failure of the thread fails the test
                failures.append(error)

        threads = [threading.Thread(target=run, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []

        async def read() -> list[str]:
            session = await self.open_session("s")
            found = texts(await session.get_items())
            await close(session)
            return found

        assert_whole_and_ordered(asyncio.run(read()), writers=4, batches=5, size=3)

    @in_event_loop
    async def test_a_cancelled_call_has_happened_or_not(self) -> None:
        session = await self.open_session("s")
        chance = random.Random(7)
        acknowledged = set()
        for number in range(40):
            task = asyncio.create_task(session.add_items([message(f"{number}/{n}") for n in range(3)]))
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.choice([0, 0, 0.0002, 0.001]))
            task.cancel()
            try:
                await task
                acknowledged.add(number)
            except asyncio.CancelledError:
                pass
        after = texts(await session.get_items())
        stored = [int(text.split("/")[0]) for text in after[::3]]
        assert after == [f"{number}/{n}" for number in stored for n in range(3)], "batches are whole"
        assert stored == sorted(set(stored))
        assert acknowledged <= set(stored)
        await session.add_items([message("works")])
        assert texts(await session.get_items()) == [*after, "works"], "and nothing came late"
        await close(session)

    @in_event_loop
    async def test_a_cancellation_that_meets_the_answer_ends_the_call(self) -> None:
        """The result exists, but the event loop has not delivered it yet."""
        session = await self.open_session("s")
        await session.add_items([message("first")])
        for number in range(3):
            task = asyncio.create_task(session.add_items([message(number)]))
            await asyncio.sleep(0)
            time.sleep(0.05)  # noqa: ASYNC251 - the event loop must not run meanwhile
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=10)
            assert done, "the call has ended"
        assert texts(await session.get_items())[0] == "first"
        await close(session)
