"""Taking the newest item off after a look at it."""

import asyncio
from typing import Any

import pytest

from ...items import Item
from ...sessions.protocol import PopsChecked
from .base import ContractBase, needs
from .tools import close, in_event_loop, message, texts


class PoppingContract(ContractBase):
    """Sessions that are `PopsChecked`."""

    @in_event_loop
    @needs(PopsChecked)
    async def test_takes_off_the_newest_that_is_accepted(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.pop_checked(lambda _: True) is None
        await session.add_items([message(n) for n in range(30)])
        seen: list[str] = []

        def is_even(item: Item) -> bool:
            seen.append(item["content"])
            return int(item["content"]) % 2 == 0

        assert await session.pop_checked(is_even) == message(28)
        assert seen[0] == "29"
        assert texts(await session.get_items()) == [str(n) for n in range(28)]
        assert await session.pop_checked(lambda item: int(item["content"]) < 3) == message(2), "far down"
        assert texts(await session.get_items()) == ["0", "1"]
        assert await session.pop_checked(lambda _: False) is None
        assert await session.get_items() == []
        await session.add_items([message("goes on")])
        assert await session.pop_checked(lambda _: True) == message("goes on")
        await close(session)

    @in_event_loop
    @needs(PopsChecked)
    async def test_nothing_is_taken_off_where_the_check_fails(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message(n) for n in range(20)])

        def fail_at_last(item: Item) -> bool:
            if item["content"] == "3":
                raise LookupError("of the caller's own")
            return False

        with pytest.raises(LookupError):
            await session.pop_checked(fail_at_last)
        assert texts(await session.get_items()) == [str(n) for n in range(20)]
        assert await session.pop_item() == message(19)
        await close(session)

    @in_event_loop
    @needs(PopsChecked)
    async def test_two_who_check_never_get_the_same_item(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message(n) for n in range(20)])
        checked = (session.pop_checked(lambda _: True) for _ in range(15))
        popped = (session.pop_item() for _ in range(15))
        taken = await asyncio.gather(*(call for pair in zip(checked, popped, strict=True) for call in pair))
        found = texts([item for item in taken if item is not None])
        assert sorted(found, key=int) == [str(n) for n in range(20)]
        assert await session.get_items() == []
        await close(session)

    @in_event_loop
    @needs(PopsChecked)
    async def test_who_checks_takes_off_nothing_that_is_added_meanwhile(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("old") for _ in range(10)])
        adding = (session.add_items([message("new")]) for _ in range(10))
        popping = (session.pop_checked(lambda item: item["content"] == "new") for _ in range(10))
        taken = await asyncio.gather(*(call for pair in zip(adding, popping, strict=True) for call in pair))
        found = [item for item in taken if item is not None]
        left = texts(await session.get_items())
        assert texts(found) == ["new"] * len(found)
        assert len(found) + left.count("new") == 10, "a new item was given out, or is still there"
        await close(session)

    @in_event_loop
    @needs(PopsChecked)
    async def test_corrupt_entries_are_taken_off_on_the_way(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("a"), message("b")])
        if await self.store_corrupt(session):
            await session.add_items([message("c")])
            assert await session.pop_checked(lambda item: item["content"] == "b") == message("b")
            assert texts(await session.get_items()) == ["a"]
            assert await self.store_corrupt(session)
            assert await session.pop_checked(lambda _: False) is None
            assert await self.store_corrupt(session)
            assert await session.pop_checked(lambda _: True) is None
            assert await session.get_items() == []
        await close(session)
