"""Many turns at once hold up nobody, and none of them is left out."""

import asyncio
import time

import pytest

from recollect.providers.turnstile import Turnstile, split_events
from recollect.testing.contract import in_event_loop

_WORK = 0.006  # seconds: longer than may be worked without a pause


@in_event_loop
async def test_others_have_their_turn_between_the_steps_of_many() -> None:
    turnstile, passed, rounds = Turnstile(), list[int](), 0

    async def step(number: int) -> None:
        await turnstile()
        passed.append(number)
        time.sleep(_WORK)  # noqa: ASYNC251 - as the SDK works, without a pause

    async def count() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    other = asyncio.create_task(count())
    await asyncio.gather(*(step(number) for number in range(30)))
    other.cancel()
    assert passed == list(range(30))
    assert rounds >= 30


@in_event_loop
async def test_as_many_pass_at_once_as_may() -> None:
    turnstile, passed = Turnstile(at_once=3), list[int]()

    async def step(number: int) -> None:
        await turnstile()
        passed.append(number)
        time.sleep(_WORK)  # noqa: ASYNC251

    tasks = [asyncio.create_task(step(number)) for number in range(7)]
    seen = set[int]()
    while not all(task.done() for task in tasks):
        await asyncio.sleep(0)
        seen.add(len(passed))
    assert passed == list(range(7))
    assert {3, 6, 7} <= seen


@in_event_loop
async def test_one_that_is_cancelled_while_it_waits_stops_nobody() -> None:
    turnstile, passed = Turnstile(), list[int]()

    async def step(number: int) -> None:
        await turnstile()
        passed.append(number)
        time.sleep(_WORK)  # noqa: ASYNC251

    tasks = [asyncio.create_task(step(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert passed == [0, 1, 3]


@pytest.mark.parametrize(
    ("chunk", "pieces"),
    [
        (b"", []),
        (b"data: 1\n\ndata: 2\n\n", [b"data: 1\n\n", b"data: 2\n\n"]),
        (b"ta: 1\n\ndata: 2", [b"ta: 1\n\n", b"data: 2"]),
        (b"\n\n\n", [b"\n\n", b"\n"]),
    ],
)
def test_what_has_arrived_is_cut_after_each_event_and_stays_the_same(
    chunk: bytes, pieces: list[bytes]
) -> None:
    assert list(split_events(chunk)) == pieces
    assert b"".join(pieces) == chunk
