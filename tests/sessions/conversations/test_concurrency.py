"""One session in several tasks, event loops and threads; several sessions on one conversation."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from recollect.sessions.conversations import CrossLoopLock, OpenAIConversationsSession
from recollect.testing.contract import assert_whole_and_ordered, in_event_loop, message
from recollect.testing.providers import Delay, ProviderServer

CREATE = "POST /v1/conversations"


def said(items: list[Any]) -> list[str]:
    return [item["content"][0]["text"] for item in items]


def in_threads(count: int, work: Callable[[int], Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run each function in its own thread and event loop, all at the same time."""
    start = threading.Barrier(count)

    def run(number: int) -> Any:
        start.wait()
        return asyncio.run(work(number))

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@in_event_loop
async def test_tasks_create_one_conversation(server: ProviderServer, client: openai.AsyncOpenAI) -> None:
    server.fail_next(CREATE, Delay(0.02))
    session = OpenAIConversationsSession(openai_client=client)
    await asyncio.gather(
        *(session.add_items([message(n)]) for n in range(10)), *(session.get_items() for _ in range(10))
    )
    assert server.conversations.ids() == [session.session_id]
    assert said(await session.get_items()) == [str(n) for n in range(10)]


def test_threads_create_one_conversation(server: ProviderServer, client: openai.AsyncOpenAI) -> None:
    server.fail_next(CREATE, Delay(0.05))
    session = OpenAIConversationsSession(openai_client=client)
    in_threads(4, lambda number: session.add_items([message(number)]))
    assert server.conversations.ids() == [session.session_id]
    assert sorted(said(asyncio.run(session.get_items()))) == ["0", "1", "2", "3"]


def test_threads_share_a_session(client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client)

    async def write(writer: int) -> None:
        for batch in range(3):
            await session.add_items([message(f"{writer}/{batch}/{n}") for n in range(25)])
            await session.get_items(limit=2)

    in_threads(4, write)
    found = said(asyncio.run(session.get_items()))
    assert_whole_and_ordered(found, writers=4, batches=3, size=25)


def test_threads_never_pop_the_same_item(client: openai.AsyncOpenAI) -> None:
    """With one session and with several sessions of one conversation."""
    session = OpenAIConversationsSession(openai_client=client)
    asyncio.run(session.add_items([message(n) for n in range(24)]))

    async def pop(number: int) -> list[Any]:
        own = OpenAIConversationsSession(conversation_id=session.session_id, openai_client=client)
        used = own if number % 2 else session
        return [await used.pop_item() for _ in range(8)]

    popped = [item for items in in_threads(4, pop) for item in items if item is not None]
    assert sorted(map(int, said(popped))) == list(range(24))
    assert asyncio.run(session.get_items()) == []


@in_event_loop
async def test_a_reader_beside_a_writer_sees_whole_batches(client: openai.AsyncOpenAI) -> None:
    """Within one session. The API itself makes a large batch visible in steps of 20."""
    session = OpenAIConversationsSession(openai_client=client)
    writing = asyncio.gather(*(session.add_items([message(n) for n in range(30)]) for _ in range(3)))
    while not writing.done():
        assert len(await session.get_items()) % 30 == 0
    await writing


@in_event_loop
async def test_clearing_beside_other_calls_fails_none_of_them(
    server: ProviderServer, client: openai.AsyncOpenAI
) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    calls: list[Any] = []
    for n in range(8):
        calls += [
            session.add_items([message(n)] * 25),
            session.get_items(),
            session.pop_item(),
            session.clear_session(),
        ]
    await asyncio.gather(*calls)
    await session.clear_session()
    assert server.conversations.ids() == [], "none was forgotten"


def test_many_event_loops_one_after_another(client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    for number in range(10):
        asyncio.run(session.add_items([message(number)]))
    assert said(asyncio.run(session.get_items(limit=4))) == ["6", "7", "8", "9"]


def test_event_loops_that_ended_are_forgotten(client: openai.AsyncOpenAI) -> None:
    session = OpenAIConversationsSession(openai_client=client)
    loops = []

    async def use() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await session.get_items()

    for _ in range(5):
        asyncio.run(use())
    gc.collect()
    assert sum(loop() is not None for loop in loops) <= 1


# --- the lock itself ---


@in_event_loop
async def test_the_lock_is_given_in_the_order_of_coming() -> None:
    lock, order = CrossLoopLock(), []

    async def work(number: int) -> None:
        turn = await lock.acquire()
        order.append(number)
        await asyncio.sleep(0)
        lock.release(turn)

    await asyncio.gather(*(work(number) for number in range(20)))
    assert order == list(range(20))


@pytest.mark.parametrize("handed_over", [False, True])
@in_event_loop
async def test_a_waiter_that_is_cancelled_does_not_keep_the_lock(handed_over: bool) -> None:
    lock = CrossLoopLock()
    turn = await lock.acquire()
    waiter = asyncio.create_task(lock.acquire())
    last = asyncio.create_task(lock.acquire())
    await asyncio.sleep(0)
    if handed_over:
        lock.release(turn)
        await asyncio.sleep(0)  # the waiter has the lock, and does not know yet
        waiter.cancel()
    else:
        waiter.cancel()
        await asyncio.sleep(0)
        lock.release(turn)
    await asyncio.gather(waiter, return_exceptions=True)
    if not waiter.cancelled():
        lock.release(waiter.result())
    lock.release(await last)
    lock.release(await asyncio.wait_for(lock.acquire(), 1))


def test_a_lock_whose_holders_event_loop_was_closed_is_free() -> None:
    lock = CrossLoopLock()
    loop = asyncio.new_event_loop()
    lost = loop.run_until_complete(lock.acquire())
    loop.close()

    async def use() -> None:
        turn = await lock.acquire()
        lock.release(lost)  # too late, and without effect
        waiting = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        assert not waiting.done()
        lock.release(turn)
        lock.release(await waiting)

    asyncio.run(use())


def test_a_waiter_whose_event_loop_was_closed_is_passed_over() -> None:
    lock = CrossLoopLock()
    gone = asyncio.new_event_loop()

    async def use() -> None:
        turn = await lock.acquire()
        await asyncio.to_thread(wait_and_leave)
        waiting = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        lock.release(turn)
        lock.release(await waiting)

    def wait_and_leave() -> None:
        waiting = lock.acquire()
        gone.call_soon(gone.stop)
        task = gone.create_task(waiting)
        gone.run_forever()
        gone.close()
        task._log_destroy_pending = False  # type: ignore[attr-defined]

    asyncio.run(use())
