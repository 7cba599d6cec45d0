"""Calls that finish although the caller is cancelled."""

import asyncio

import pytest

from recollect.cancellation import finish_despite_cancellation, wait_until_done
from recollect.testing.contract import in_event_loop


@in_event_loop
async def test_a_call_returns_its_result_or_raises_its_error() -> None:
    async def fail() -> None:
        raise ValueError("no")

    assert await finish_despite_cancellation(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="no"):
        await finish_despite_cancellation(fail())


@in_event_loop
async def test_a_cancelled_caller_waits_for_the_end_however_often_it_is_cancelled() -> None:
    go_on, ended = asyncio.Event(), []

    async def work() -> None:
        await go_on.wait()
        ended.append(True)

    caller = asyncio.create_task(finish_despite_cancellation(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == [True]


@in_event_loop
async def test_the_error_of_the_call_is_the_cause_of_the_cancellation() -> None:
    go_on = asyncio.Event()

    async def fail() -> None:
        await go_on.wait()
        raise ValueError("no")

    caller = asyncio.create_task(finish_despite_cancellation(fail()))
    await asyncio.sleep(0)
    caller.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await caller
    assert isinstance(cancelled.value.__cause__, ValueError)


@in_event_loop
async def test_a_call_that_outlasts_its_grace_is_cancelled() -> None:
    never = asyncio.Event()
    caller = asyncio.create_task(finish_despite_cancellation(never.wait(), grace=0.001))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


@in_event_loop
async def test_waiting_returns_the_cancellation() -> None:
    future = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(wait_until_done(future))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    future.set_result("done")
    assert isinstance(await waiting, asyncio.CancelledError)
    assert await wait_until_done(future) is None
