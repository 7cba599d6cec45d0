"""The events of a turn reach their reader: each once, in order, and together if they came together."""

import asyncio

from recollect.providers.turn_events import TurnEvents
from recollect.providers.values import ChatEvent, ChatEventKind
from recollect.testing.contract import in_event_loop


def event(kind: ChatEventKind, number: int = 0) -> ChatEvent:
    return ChatEvent(kind, {"number": number})


@in_event_loop
async def test_a_read_has_all_that_came_since_the_last_one() -> None:
    events = TurnEvents()
    first = [event("turn.started"), event("text.delta", 1)]
    rest = [event("text.delta", 2), event("turn.completed")]
    for each in first:
        events.add(each)
    assert await events.read() == first
    for each in rest:
        events.add(each)
    assert await events.read() == rest
    assert await events.read() == []


@in_event_loop
async def test_a_read_waits_and_takes_nothing_if_it_is_cancelled() -> None:
    events = TurnEvents()
    reading = asyncio.create_task(events.read())
    await asyncio.sleep(0)
    events.add(event("turn.failed"))
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert [each.kind async for each in events] == ["turn.failed"]
