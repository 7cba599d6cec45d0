"""Atomic changes of a history: replacing it, and revising items in place."""

import asyncio
from typing import Any

import pytest

from ...items import Item
from ...sessions.protocol import Positioned, Rewritable
from .base import ContractBase, needs
from .tools import close, in_event_loop, message, texts


class RewritingContract(ContractBase):
    """Sessions that are `Rewritable`."""

    @in_event_loop
    @needs(Rewritable)
    async def test_replaces_a_history_in_one_step(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message(n) for n in range(5)])
        await session.replace_items([message("new"), message("too")])
        assert texts(await session.get_items()) == ["new", "too"]
        with pytest.raises(TypeError):
            await session.replace_items([message("good"), object()])
        assert texts(await session.get_items()) == ["new", "too"]
        await session.replace_items([])
        assert await session.get_items() == []
        await session.add_items([message("goes on")])
        assert texts(await session.get_items()) == ["goes on"]
        await close(session)

    @in_event_loop
    @needs(Rewritable)
    async def test_transforms_a_history_in_one_step(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message(n) for n in range(6)])
        await session.transform_items(lambda items: items[:3] + items[5:])
        assert texts(await session.get_items()) == ["0", "1", "2", "5"]

        def change_in_place(items: list[Item]) -> list[Item]:
            items[0]["content"] = "changed"
            return items

        await session.transform_items(change_in_place)
        assert texts(await session.get_items()) == ["changed", "1", "2", "5"]

        def fail(_: list[Item]) -> list[Item]:
            raise LookupError("of the caller's own")

        with pytest.raises(LookupError):
            await session.transform_items(fail)
        assert texts(await session.get_items()) == ["changed", "1", "2", "5"]
        await close(session)

    @in_event_loop
    @needs(Rewritable)
    async def test_a_transformation_loses_nothing_that_is_added_meanwhile(self) -> None:
        session: Any = await self.open_session("s")
        adding = (session.add_items([message(n)]) for n in range(20))
        rewriting = (session.transform_items(lambda items: list(items)) for _ in range(20))
        await asyncio.gather(*(call for pair in zip(adding, rewriting, strict=True) for call in pair))
        assert sorted(texts(await session.get_items()), key=int) == [str(n) for n in range(20)]
        await close(session)

    # --- revising ---

    @in_event_loop
    @needs(Rewritable)
    async def test_revises_items_and_takes_some_out(self) -> None:
        session: Any = await self.open_session("s")
        other = await self.open_session("other")
        for each in (session, other):
            await each.add_items([message(n) for n in range(6)])
        await session.revise_items(lambda items: [None, message("new"), *items[2:4], None, items[5]])
        assert texts(await session.get_items()) == ["new", "2", "3", "5"]
        assert texts(await other.get_items()) == [str(n) for n in range(6)]
        await session.revise_items(lambda items: [None for _ in items])
        assert await session.get_items() == []
        await session.revise_items(lambda items: items)
        await session.add_items([message("goes on")])
        assert texts(await session.get_items()) == ["goes on"]
        await close(session)
        await close(other)

    @in_event_loop
    @needs(Rewritable)
    @needs(Positioned)
    async def test_a_revision_leaves_positions_as_they_are(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message(n) for n in range(6)])
        before = [position for position, _ in await session.read_after(0)]
        await session.revise_items(
            lambda items: [items[0], None, message("new"), None, items[4], None]  # the newest is removed too
        )
        kept = [before[0], before[2], before[4]]
        after = await session.read_after(0)
        assert after == [(kept[0], message(0)), (kept[1], message("new")), (kept[2], message(4))]
        assert await session.read_after(before[1]) == after[1:], "also after the position of one that went"
        assert await session.read_before(before[3], 5) == after[:2]
        await session.add_items([message("added")])
        ((position, item),) = await session.read_after(before[-1])
        assert item == message("added"), "what is added comes after all that ever was there"
        await session.revise_items(lambda items: [None, *items[1:]])
        assert await session.read_after(0) == [*after[1:], (position, item)]
        await close(session)

    @in_event_loop
    @needs(Rewritable)
    async def test_a_revision_may_change_items_in_place_and_by_their_types(self) -> None:
        session: Any = await self.open_session("s")
        first: Item = {"role": "user", "content": "a", "nested": {"n": 1}}
        second: Item = {"content": "b", "role": "user", "n": 1}
        await session.add_items([first, second, message("c")])

        def change(items: list[Item]) -> list[Item | None]:
            items[0]["nested"]["n"] = 2
            return [items[0], {**items[1], "n": True}, items[2]]

        await session.revise_items(change)
        expected = [{**first, "nested": {"n": 2}}, {**second, "n": True}, message("c")]
        assert repr(await session.get_items()) == repr(expected), "1 is not True"
        await close(session)

    @in_event_loop
    @needs(Rewritable)
    async def test_a_revision_that_fails_changes_nothing(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("a"), message("b")])

        def fail(items: list[Item]) -> list[Item | None]:
            items[0]["content"] = "changed"
            raise LookupError("of the caller's own")

        with pytest.raises(LookupError):
            await session.revise_items(fail)
        with pytest.raises(TypeError):
            await session.revise_items(lambda _: [message("changed"), {"content": object()}])
        with pytest.raises(ValueError):  # noqa: PT011 - the number of results must match
            await session.revise_items(lambda _: [message("changed")])
        assert texts(await session.get_items()) == ["a", "b"]
        await session.add_items([message("c")])
        assert texts(await session.get_items()) == ["a", "b", "c"]
        await close(session)

    @in_event_loop
    @needs(Rewritable)
    async def test_a_revision_loses_nothing_that_happens_meanwhile(self) -> None:
        session: Any = await self.open_session("s")

        def count(items: list[Item]) -> list[Item | None]:
            return [{**item, "times": item.get("times", 0) + 1} for item in items]

        await session.add_items([message("first")])
        adding = (session.add_items([message(n)]) for n in range(10))
        revising = (session.revise_items(count) for _ in range(10))
        await asyncio.gather(*(call for pair in zip(adding, revising, strict=True) for call in pair))
        first, *others = await session.get_items()
        assert first["times"] == 10, "none was made of what another had already changed"
        assert sorted(texts(others), key=int) == [str(n) for n in range(10)]
        await close(session)

    @in_event_loop
    @needs(Rewritable)
    async def test_a_revision_is_not_stopped_by_a_corrupt_entry(self) -> None:
        session: Any = await self.open_session("s")
        await session.add_items([message("a"), message("b")])
        if await self.store_corrupt(session):
            await session.add_items([message("c"), message("d")])
            await session.revise_items(lambda items: [message("new"), None, *items[2:]])
            assert texts(await session.get_items()) == ["new", "c", "d"]
            await session.revise_items(lambda items: [*items[:2], message("last")])
            assert texts(await session.get_items()) == ["new", "c", "last"]
        await close(session)
