"""Popping: expired items go, and one that cannot be opened stays where it is."""

import asyncio
from pathlib import Path
from typing import Any

import agents
import pytest

from recollect import InMemorySession, SQLiteSession
from recollect.errors import WrongKeyError
from recollect.testing.contract import in_event_loop, message, texts

from .tools import all_stored, encrypted, envelope, truncated


def in_memory(_: Path) -> Any:
    return InMemorySession("s")


def in_a_file(folder: Path) -> Any:
    return SQLiteSession("s", folder / "sessions.db")


def of_the_sdk(folder: Path) -> Any:
    return agents.SQLiteSession("s", folder / "sdk.db")


STORES = pytest.mark.parametrize("make", [in_memory, in_a_file, of_the_sdk])


@STORES
@in_event_loop
async def test_expired_items_on_the_way_go(tmp_path: Path, make: Any) -> None:
    inner = make(tmp_path)
    await inner.add_items([envelope(message("a")), envelope(message("b"), 700), envelope(message("c"), 900)])
    session = encrypted(inner, ttl=600)
    assert await session.pop_item() == message("a")
    assert await inner.get_items() == []
    assert await session.pop_item() is None
    await inner.add_items([envelope(message("old"), 900)] * 3)
    assert await session.pop_item() is None
    assert await inner.get_items() == []
    inner.close()


@STORES
@pytest.mark.parametrize(
    ("newest", "told"),
    [
        (envelope(message("another's"), key="another"), "no key decrypts its newest item"),
        (truncated(envelope(message("b"))), "no key decrypts its newest item"),
        (message("plain"), "its newest item is not encrypted"),
    ],
    ids=["another key", "truncated", "plain"],
)
@in_event_loop
async def test_what_cannot_be_opened_stays(tmp_path: Path, make: Any, newest: Any, told: str) -> None:
    inner = make(tmp_path)
    await inner.add_items([envelope(message("a")), newest])
    session = encrypted(inner)
    before = await inner.get_items()
    for _ in range(2):
        with pytest.raises(WrongKeyError, match=f"{told}; nothing was changed"):
            await session.pop_item()
        assert await inner.get_items() == before
    assert texts(await session.get_items()) == ["a"]
    inner.close()


@pytest.mark.parametrize("make", [in_memory, in_a_file])
@in_event_loop
async def test_expired_items_stay_too_where_one_below_cannot_be_opened(tmp_path: Path, make: Any) -> None:
    """In one step: either all that is asked for happens, or nothing."""
    inner = make(tmp_path)
    await inner.add_items([truncated(envelope(message("a"))), envelope(message("b"), 900)])
    session = encrypted(inner, ttl=600)
    with pytest.raises(WrongKeyError):
        await session.pop_item()
    assert len(await all_stored(session)) == 2
    inner.close()


class Overtaken(InMemorySession):
    """A session that cannot look and remove in one step, and in which somebody always comes in between."""

    pop_checked: Any = None

    def __init__(self, comes: Any) -> None:
        super().__init__("s")
        self._comes = comes

    def __getattribute__(self, name: str) -> Any:
        if name == "pop_checked":
            raise AttributeError(name)
        return super().__getattribute__(name)

    async def pop_item(self) -> Any:
        if self._comes is not None:
            await self.add_items([self._comes])
            self._comes = None
        return await InMemorySession.pop_checked(self, lambda _: True)


@in_event_loop
async def test_another_item_that_comes_meanwhile_is_put_back_if_no_key_opens_it() -> None:
    inner = Overtaken(envelope(message("another's"), key="another"))
    await inner.add_items([envelope(message("a"))])
    session = encrypted(inner)
    with pytest.raises(WrongKeyError):
        await session.pop_item()
    mine, other = await inner.get_items()
    assert texts(await encrypted(inner, "another").get_items()) == ["another's"]
    assert mine != other
    assert len(await inner.get_items()) == 2, "nothing was lost"


@in_event_loop
async def test_another_item_that_comes_meanwhile_is_the_newest() -> None:
    inner = Overtaken(envelope(message("b")))
    await inner.add_items([envelope(message("a"))])
    session = encrypted(inner)
    assert await session.pop_item() == message("b")
    assert await session.pop_item() == message("a")


@STORES
@in_event_loop
async def test_two_poppers_never_get_the_same_item_where_some_have_expired(tmp_path: Path, make: Any) -> None:
    inner = make(tmp_path)
    await inner.add_items(
        [envelope(message(n), 900 * (n % 3 == 0)) for n in range(30)]  # every third has expired
    )
    session = encrypted(inner, ttl=600)
    popped = await asyncio.gather(*(session.pop_item() for _ in range(25)))
    found = texts([item for item in popped if item is not None])
    assert sorted(found, key=int) == [str(n) for n in range(30) if n % 3]
    assert await inner.get_items() == []
    inner.close()
