"""The basic contract: reading, writing, popping, closing, and the order of items."""

from typing import Any

import pytest

from ...errors import SessionClosedError
from ...items import Item
from ...sessions.protocol import Session
from ...sessions.settings import SessionSettings
from .base import ContractBase
from .tools import HOSTILE_IDS, ODD_ITEMS, close, in_event_loop, message, texts


class BasicContract(ContractBase):
    """The four methods, called one after another."""

    # --- type ---

    @in_event_loop
    async def test_is_a_session(self) -> None:
        session = await self.open_session("s")
        assert isinstance(session, Session)
        assert session.session_id == "s"
        await close(session)

    @in_event_loop
    async def test_is_a_session_of_the_agents_sdk(self) -> None:
        agents_memory = pytest.importorskip("agents.memory")
        session = await self.open_session("s")
        assert isinstance(session, agents_memory.Session)
        await close(session)

    # --- order and reading ---

    @in_event_loop
    async def test_keeps_insertion_order(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message(n) for n in range(5)])
        for n in range(5, 30):
            await session.add_items([message(n)])
        assert texts(await session.get_items()) == [str(n) for n in range(30)]
        await close(session)

    @in_event_loop
    async def test_gives_the_newest_within_a_limit_oldest_first(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message(n) for n in range(10)])
        assert texts(await session.get_items(limit=3)) == ["7", "8", "9"]
        assert texts(await session.get_items(1)) == ["9"]
        assert len(await session.get_items(limit=10)) == 10
        assert len(await session.get_items(limit=11)) == 10
        assert len(await session.get_items(limit=1000)) == 10
        await close(session)

    @in_event_loop
    async def test_a_limit_of_zero_gives_nothing(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message("a")])
        assert await session.get_items(limit=0) == []
        await close(session)

    @in_event_loop
    async def test_a_negative_limit_is_an_error(self) -> None:
        session = await self.open_session("s")
        with pytest.raises(ValueError, match="negative"):
            await session.get_items(limit=-1)
        await close(session)

    @in_event_loop
    async def test_settings_give_a_default_limit_and_an_explicit_one_wins(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message(n) for n in range(5)])
        session.session_settings = SessionSettings(limit=2)
        assert texts(await session.get_items()) == ["3", "4"]
        assert len(await session.get_items(limit=4)) == 4
        assert await session.get_items(limit=0) == []
        await close(session)

    @in_event_loop
    async def test_an_unknown_session_is_empty(self) -> None:
        session = await self.open_session("never used")
        assert await session.get_items() == []
        assert await session.get_items(limit=5) == []
        await close(session)

    @in_event_loop
    async def test_reads_long_histories_whole(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message(n) for n in range(3000)])
        expected = [str(n) for n in range(3000)]
        assert texts(await session.get_items()) == expected
        assert texts(await session.get_items(limit=2500)) == expected[500:]
        await close(session)

    # --- writing ---

    @in_event_loop
    async def test_items_come_back_exactly(self) -> None:
        session = await self.open_session("s")
        await session.add_items(ODD_ITEMS)
        stored = await session.get_items()
        assert stored == ODD_ITEMS
        assert [list(item) for item in stored] == [list(item) for item in ODD_ITEMS], "the order of keys"
        assert repr(stored) == repr(ODD_ITEMS), "the types of values"
        await close(session)

    @in_event_loop
    async def test_nobody_shares_an_item_with_the_store(self) -> None:
        session = await self.open_session("s")
        mine: Item = {"role": "user", "content": [{"type": "input_text", "text": "as said"}]}
        await session.add_items([mine])
        mine["content"][0]["text"] = "changed by the writer"
        (read,) = await session.get_items()
        assert read["content"][0]["text"] == "as said"
        read["content"][0]["text"] = "changed by a reader"
        assert (await session.get_items())[0]["content"][0]["text"] == "as said"
        await close(session)

    @in_event_loop
    async def test_an_empty_batch_does_nothing(self) -> None:
        session = await self.open_session("s")
        await session.add_items([])
        assert await session.get_items() == []
        await close(session)

    @pytest.mark.parametrize(
        "bad",
        [
            "text",
            7,
            None,
            ["list"],
            {1: "integer key"},
            {"content": float("nan")},
            {"content": float("inf")},
            {"content": {1, 2}},
            {"content": (1, 2)},
            {"content": b"bytes"},
            {"content": object()},
        ],
        ids="text number none list integer-key nan infinity set tuple bytes object".split(),  # noqa: SIM905
    )
    @in_event_loop
    async def test_what_is_not_json_is_refused_and_nothing_is_written(self, bad: Any) -> None:
        session = await self.open_session("s")
        await session.add_items([message("before")])
        with pytest.raises(TypeError, match="item 1"):
            await session.add_items([message("good"), bad, message("good too")])
        assert texts(await session.get_items()) == ["before"]
        await session.add_items([message("after")])
        assert texts(await session.get_items()) == ["before", "after"]
        await close(session)

    @pytest.mark.parametrize("bad", ["text", {"role": "user"}, 5], ids=repr)
    @in_event_loop
    async def test_what_is_not_a_list_is_refused(self, bad: Any) -> None:
        session = await self.open_session("s")
        with pytest.raises(TypeError):
            await session.add_items(bad)
        assert await session.get_items() == []
        await close(session)

    # --- pop and clear ---

    @in_event_loop
    async def test_pop_removes_the_newest(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message("a"), message("b")])
        assert await session.pop_item() == message("b")
        assert texts(await session.get_items()) == ["a"]
        assert await session.pop_item() == message("a")
        assert await session.pop_item() is None
        assert await session.get_items() == []
        await close(session)

    @in_event_loop
    async def test_adding_goes_on_after_pop(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message("a"), message("b")])
        await session.pop_item()
        await session.add_items([message("c")])
        assert texts(await session.get_items()) == ["a", "c"]
        await close(session)

    @in_event_loop
    async def test_clear_removes_everything_and_the_session_goes_on(self) -> None:
        session = await self.open_session("s")
        await session.clear_session()
        await session.add_items([message("a")])
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.clear_session()
        await session.add_items([message("b")])
        assert texts(await session.get_items()) == ["b"]
        await close(session)

    # --- other sessions ---

    @in_event_loop
    async def test_other_sessions_are_never_touched(self) -> None:
        sessions = [await self.open_session(session_id) for session_id in HOSTILE_IDS]
        for number, session in enumerate(sessions):
            await session.add_items([message(f"{number}-{n}") for n in range(3)])
        for number, session in enumerate(sessions):
            assert texts(await session.get_items()) == [f"{number}-{n}" for n in range(3)]
        await sessions[0].clear_session()
        await sessions[1].pop_item()
        assert [len(await session.get_items()) for session in sessions] == [0, 2] + [3] * (len(sessions) - 2)
        for session in sessions:
            await close(session)

    @in_event_loop
    async def test_is_there_when_opened_again(self) -> None:
        if not self.shared:
            return
        session = await self.open_session("s")
        await session.add_items([message("a"), message("b")])
        await close(session)
        again = await self.open_session("s")
        assert texts(await again.get_items()) == ["a", "b"]
        await close(again)

    # --- closing ---

    @in_event_loop
    async def test_closing_twice_is_harmless_and_use_after_it_an_error(self) -> None:
        session = await self.open_session("s")
        if not hasattr(session, "aclose"):
            return
        await session.add_items([message("a")])
        await session.aclose()
        await session.aclose()
        for use in (
            session.get_items,
            session.pop_item,
            session.clear_session,
            lambda: session.add_items([message("b")]),
            lambda: session.add_items([]),
        ):
            with pytest.raises(SessionClosedError, match="closed"):
                await use()

    @in_event_loop
    async def test_is_an_async_context_manager(self) -> None:
        session: Any = await self.open_session("s")
        if not hasattr(session, "__aenter__"):
            return
        async with session as entered:
            assert entered is session
            await session.add_items([message("a")])
        with pytest.raises(SessionClosedError):
            await session.get_items()
