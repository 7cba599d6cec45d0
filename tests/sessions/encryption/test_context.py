"""The Runner's context reaches the session underneath with every call."""

from typing import Any

import pytest

from recollect import InMemorySession
from recollect.testing.contract import in_event_loop, message

from .tools import encrypted, envelope

CONTEXT: Any = object()


class Watching(InMemorySession):
    """Takes the Runner's context, and notes with which calls it came."""

    def __init__(self) -> None:
        super().__init__("s")
        self.calls: list[tuple[str, Any]] = []

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        self.calls.append(("get", wrapper))
        return await super().get_items(limit)

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        self.calls.append(("add", wrapper))
        await super().add_items(items)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        self.calls.append(("pop", wrapper))
        return await super().pop_item()

    async def clear_session(self, *, wrapper: Any = None) -> None:
        self.calls.append(("clear", wrapper))
        await super().clear_session()


@in_event_loop
async def test_every_call_passes_the_context_on() -> None:
    inner = Watching()
    session = encrypted(inner)
    await session.add_items([message("a"), message("b")], wrapper=CONTEXT)
    await session.get_items(wrapper=CONTEXT)
    assert await session.pop_item(wrapper=CONTEXT) == message("b")
    await session._read_compaction_items(None, wrapper=CONTEXT)
    await session._read_compaction_items(5, wrapper=CONTEXT)
    await session.clear_session(wrapper=CONTEXT)
    assert {name for name, _ in inner.calls} == {"get", "add", "pop", "clear"}
    assert all(context is CONTEXT for _, context in inner.calls)


@in_event_loop
async def test_the_look_for_a_key_that_fits_passes_it_on() -> None:
    inner = Watching()
    await InMemorySession.add_items(inner, [envelope(message("a")), envelope(message("b"), key="another")])
    session = encrypted(inner)
    assert await session.get_items(1, wrapper=CONTEXT) == [message("a")]
    assert all(context is CONTEXT for _, context in inner.calls)


class TakesItInPart(InMemorySession):
    """Takes the context in one method: the SDK passes it to all four or to none."""

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        assert wrapper is None
        await super().add_items(items)


@pytest.mark.parametrize("wrapper", [None, CONTEXT])
@in_event_loop
async def test_a_session_that_takes_it_in_part_gets_none(wrapper: Any) -> None:
    session = encrypted(TakesItInPart("s"))
    await session.add_items([message("a")], wrapper=wrapper)
    assert await session.get_items(wrapper=wrapper) == [message("a")]
    assert await session.pop_item(wrapper=wrapper) == message("a")
