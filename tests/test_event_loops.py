"""One resource for each event loop, closed with the loop or before."""

import asyncio
import gc
import os
import threading

import pytest

from recollect.event_loops import PerLoop
from recollect.testing.contract import in_event_loop


class Resource:
    """Notes in which thread and how often it was closed."""

    def __init__(self) -> None:
        self.closed_by: list[int] = []
        self.is_closed = threading.Event()

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed_by.append(threading.get_ident())
        self.is_closed.set()


def resources() -> "tuple[PerLoop[Resource], list[Resource]]":
    made: list[Resource] = []

    def make() -> Resource:
        made.append(Resource())
        return made[-1]

    return PerLoop(make, Resource.aclose), made


async def get(per_loop: "PerLoop[Resource]") -> Resource:
    first = per_loop.get()
    assert per_loop.get() is first
    return first


def test_each_loop_has_its_own_and_closes_it() -> None:
    per_loop, made = resources()
    assert asyncio.run(get(per_loop)) is not asyncio.run(get(per_loop))
    assert [len(each.closed_by) for each in made] == [1, 1]
    assert per_loop.loops == []


@in_event_loop
async def test_it_is_closed_once_and_opened_again() -> None:
    per_loop, made = resources()
    per_loop.get()
    await asyncio.gather(per_loop.aclose(), per_loop.aclose())
    await per_loop.aclose()
    assert per_loop.get() is made[1]
    await per_loop.aclose()
    assert [len(each.closed_by) for each in made] == [1, 1]


@in_event_loop
async def test_two_that_close_at_once_wait_for_the_same_end() -> None:
    per_loop, made = resources()
    per_loop.get()
    lifetime = per_loop.forget(asyncio.get_running_loop())
    assert lifetime is not None
    await asyncio.gather(lifetime.aclose(), asyncio.get_running_loop().shutdown_asyncgens())
    assert len(made[0].closed_by) == 1


@pytest.mark.filterwarnings("error")
def test_a_loop_that_ended_its_generators_and_runs_on_gets_a_new_one() -> None:
    per_loop, made = resources()
    loop = asyncio.new_event_loop()
    for _ in range(3):
        loop.run_until_complete(get(per_loop))
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    assert [len(each.closed_by) for each in made] == [1, 1, 1]


def test_another_loop_closes_its_own_when_all_are_forgotten() -> None:
    per_loop, made = resources()
    opened, stop, threads = threading.Event(), threading.Event(), []

    async def use() -> None:
        per_loop.get()
        opened.set()
        await asyncio.to_thread(stop.wait)

    def run() -> None:
        threads.append(threading.get_ident())
        asyncio.run(use())

    thread = threading.Thread(target=run)
    thread.start()
    opened.wait()
    asyncio.run(per_loop.aclose())
    assert made[0].is_closed.wait(60)
    stop.set()
    thread.join()
    assert made[0].closed_by == threads


def test_a_loop_that_was_only_closed_leaves_a_resource_to_abandon() -> None:
    abandoned: list[object] = []
    per_loop = PerLoop(Resource, Resource.aclose, abandoned.append)
    loop = asyncio.new_event_loop()
    first = loop.run_until_complete(get(per_loop))
    loop.close()
    asyncio.run(get(per_loop))
    assert abandoned == [first]


def test_a_forked_process_neither_uses_nor_closes_what_its_parent_opened() -> None:
    per_loop, made = resources()

    async def fork() -> int:
        first = per_loop.get()
        child = os.fork()
        if not child:
            is_left = per_loop.loops == [] and not first.closed_by
            os._exit(0 if is_left else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])  # noqa: ASYNC222

    assert asyncio.run(fork()) == 0
    assert len(made[0].closed_by) == 1


@in_event_loop
async def test_a_lock_needs_no_closing() -> None:
    locks = PerLoop(asyncio.Lock)
    async with locks.get():
        assert locks.get().locked()
    assert locks.forget_all() is None


def test_a_loop_that_ends_closes_a_resource_whose_owner_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    per_loop, made = resources()
    with asyncio.Runner() as runner:
        runner.run(get(per_loop))
        del per_loop
    gc.collect()
    assert len(made[0].closed_by) == 1
    assert caplog.records == []
