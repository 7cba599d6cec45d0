"""A wrapper passes everything through, and closes once what it wraps."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from recollect import InMemorySession, Session, SessionClosedError, SessionSettings
from recollect.sessions.wrappers import SessionWrapper
from recollect.testing.contract import in_event_loop, message, texts


class Recorder:
    """A session that writes down what is asked of it."""

    session_id = "recorder"
    session_settings: Any = None

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        self.calls.append(("get", limit))
        return ["the items"]

    async def add_items(self, items: list[Any]) -> None:
        self.calls.append(("add", items))

    async def pop_item(self) -> Any:
        self.calls.append(("pop", None))
        return "the item"

    async def clear_session(self) -> None:
        self.calls.append(("clear", None))


class ClosedSync(Recorder):
    def close(self) -> None:
        self.calls.append(("close", None))


class ClosedAsync(Recorder):
    async def close(self) -> None:
        await asyncio.sleep(0)
        self.calls.append(("close", None))


class ClosedByAclose(Recorder):
    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.calls.append(("close", None))


class ClosedEitherWay(ClosedByAclose):
    def close(self) -> None:
        self.calls.append(("close", None))


CLOSABLE = [ClosedSync, ClosedAsync, ClosedByAclose, ClosedEitherWay]


@in_event_loop
async def test_every_call_is_passed_through() -> None:
    wrapped = Recorder()
    wrapper = SessionWrapper(wrapped)
    items = [message("a")]
    assert await wrapper.get_items() == ["the items"]
    assert await wrapper.get_items(3) == ["the items"]
    assert await wrapper.get_items(limit=0) == ["the items"]
    await wrapper.add_items(items)
    assert await wrapper.pop_item() == "the item"
    await wrapper.clear_session()
    expected = [("get", None), ("get", 3), ("get", 0), ("add", items), ("pop", None), ("clear", None)]
    assert wrapped.calls == expected
    assert wrapped.calls[3][1] is items


def test_it_is_a_session_of_the_same_id_and_settings() -> None:
    settings = SessionSettings(limit=3)
    wrapped = InMemorySession("the id", settings)
    wrapper = SessionWrapper(wrapped)
    assert isinstance(wrapper, Session)
    assert wrapper.session_id == "the id"
    assert wrapper.session_settings is settings
    assert wrapper.wrapped is wrapped


def test_a_session_without_settings_can_be_wrapped() -> None:
    class OfOldTimes:
        session_id = "old"

    assert SessionWrapper(OfOldTimes()).session_settings == SessionSettings()  # type: ignore[arg-type]


@in_event_loop
async def test_settings_of_the_wrapper_give_the_default_limit_and_an_explicit_one_wins() -> None:
    wrapped = Recorder()
    wrapper = SessionWrapper(wrapped)
    wrapper.session_settings = SessionSettings(limit=2)
    await wrapper.get_items()
    await wrapper.get_items(5)
    assert wrapped.calls == [("get", 2), ("get", 5)]


@in_event_loop
async def test_a_bad_limit_does_not_reach_the_wrapped_session() -> None:
    wrapped = Recorder()
    with pytest.raises(ValueError, match="negative"):
        await SessionWrapper(wrapped).get_items(-1)
    assert wrapped.calls == []


@in_event_loop
async def test_wrappers_can_be_wrapped() -> None:
    wrapped = InMemorySession("s")
    async with SessionWrapper(SessionWrapper(wrapped)) as outer:
        await outer.add_items([message("a"), message("b")])
        assert texts(await outer.get_items(1)) == ["b"]
    assert wrapped.closed


# --- closing ---


@pytest.mark.parametrize("kind", CLOSABLE)
@in_event_loop
async def test_it_closes_what_it_wraps_once(kind: type[Recorder]) -> None:
    wrapped = kind()
    wrapper = SessionWrapper(wrapped)
    assert not wrapper.closed
    await asyncio.gather(wrapper.aclose(), wrapper.aclose())
    await wrapper.aclose()
    assert wrapper.closed
    assert wrapped.calls == [("close", None)]


@pytest.mark.parametrize("kind", CLOSABLE)
@in_event_loop
async def test_leaving_its_block_closes_what_it_wraps(kind: type[Recorder]) -> None:
    wrapped = kind()
    with pytest.raises(LookupError):
        async with SessionWrapper(wrapped) as wrapper:
            await wrapper.pop_item()
            raise LookupError("of the block")
    assert wrapped.calls == [("pop", None), ("close", None)]


@in_event_loop
async def test_what_has_nothing_to_close_can_be_wrapped() -> None:
    wrapped = Recorder()
    async with SessionWrapper(wrapped):
        pass
    assert wrapped.calls == []


@pytest.mark.parametrize(
    "use",
    [
        lambda session: session.get_items(),
        lambda session: session.add_items([message("a")]),
        lambda session: session.add_items([]),
        lambda session: session.pop_item(),
        lambda session: session.clear_session(),
    ],
)
@in_event_loop
async def test_a_closed_wrapper_passes_nothing_through(use: Callable[[Any], Awaitable[Any]]) -> None:
    wrapped = Recorder()
    wrapper = SessionWrapper(wrapped)
    await wrapper.aclose()
    with pytest.raises(SessionClosedError, match="'recorder' is closed"):
        await use(wrapper)
    assert wrapped.calls == []
