"""The contract of a session, as tests.

Inherit `SessionContract` in a test module, say how to open a session, and run pytest:

    class TestMySession(SessionContract):
        async def open_session(self, session_id):
            return MySession(session_id)
"""

import asyncio
import functools
import random
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from itertools import pairwise
from typing import Any, TypeVar, cast

import pytest

from ..errors import SessionClosedError
from ..items import Item
from ..sessions.protocol import (
    AppendsOnce,
    Described,
    Leasable,
    Positioned,
    Rewritable,
    Session,
    SessionMetadata,
)
from ..sessions.settings import SessionSettings

TestT = TypeVar("TestT", bound=Callable[..., Any])

HOSTILE_IDS = [
    "a",
    "a:b",
    "a%",
    "a_",
    "%",
    "'; DROP TABLE agent_sessions; --",
    '"quoted"',
    "back\\slash",
    "new\nline",
    "会话-😀",
    " ",
    "x" * 4096,
]

ODD_ITEMS: list[Item] = [
    {"role": "user", "content": "plain"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "你好 😀"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": "\\u00e9\\n"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "", "status": None},
    {"type": "of_the_future", "nested": {"list": [1, 2.5, -0.0, 1e-300, True, None, {}], "": ""}},
    {"role": "user", "content": "big", "n": 2**80, "m": -(2**63) - 1},
    {"role": "user", "content": "surrogate \ud83d alone"},
    {"role": "user", "content": "control \x00 \x1f \x7f   "},
    {},
]


def message(text: object) -> Item:
    """A user message."""
    return {"role": "user", "content": str(text)}


def texts(items: list[Any]) -> list[str]:
    """The contents of plain messages."""
    return [item["content"] for item in items]


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test on an event loop of its own, with whatever plugins pytest has or lacks."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def needs(ability: type) -> Callable[[TestT], TestT]:
    """Run a test only on sessions that have an ability; on others it has nothing to say."""

    def decorate(test: TestT) -> TestT:
        @functools.wraps(test)
        async def guarded(self: "SessionContract", *args: Any, **kwargs: Any) -> None:
            session = await self.open_session("ability")
            has = all(hasattr(session, name) for name in vars(ability) if not name.startswith("_"))
            await close(session)
            assert has or ability not in self.abilities, f"the session is not {ability.__name__}"
            if has:
                await test(self, *args, **kwargs)

        return cast(TestT, guarded)

    return decorate


async def close(session: Any) -> None:
    """Close a session, whichever way it is closed."""
    closing = getattr(session, "aclose", None) or getattr(session, "close", None)
    outcome = closing() if closing is not None else None
    if isinstance(outcome, Awaitable):
        await outcome


class SessionContract:
    """What must hold for every session. Override `open_session`, and the flags where they differ."""

    shared = True
    """Whether two sessions of the same id that are opened one after the other see the same items."""

    atomic = True
    """Whether a batch is stored whole or not at all."""

    abilities: tuple[type, ...] = ()
    """Protocols the session must have. Those it has beyond these are tested too."""

    async def open_session(self, session_id: str) -> Session:
        """A session of this id; for the length of a test always in the same store."""
        raise NotImplementedError

    # --- what it is ---

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
    async def test_two_poppers_never_get_the_same_item(self) -> None:
        session = await self.open_session("s")
        await session.add_items([message(n) for n in range(20)])
        popped = await asyncio.gather(*(session.pop_item() for _ in range(30)))
        found = [item["content"] for item in popped if item is not None]
        assert sorted(found, key=int) == [str(n) for n in range(20)]
        assert await session.get_items() == []
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

    # --- others ---

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

    # --- concurrency ---

    @in_event_loop
    async def test_concurrent_batches_stay_whole_and_in_order(self) -> None:
        session = await self.open_session("s")

        async def write(writer: int) -> None:
            for batch in range(5):
                await session.add_items([message(f"{writer}/{batch}/{n}") for n in range(4)])

        await asyncio.gather(*(write(writer) for writer in range(8)))
        assert_whole_and_ordered(texts(await session.get_items()), writers=8, batches=5, size=4)
        await close(session)

    @in_event_loop
    async def test_a_reader_never_sees_part_of_a_batch(self) -> None:
        if not self.atomic:
            return
        session = await self.open_session("s")
        writing = asyncio.create_task(self._write_batches(session, batches=20, size=5))
        seen: list[list[str]] = [[]]
        while not writing.done():
            seen.append(texts(await session.get_items()))
            await asyncio.sleep(0)
        await writing
        for earlier, later in pairwise(seen):
            assert len(later) % 5 == 0
            assert later[: len(earlier)] == earlier, "what was read once has not changed"
        await close(session)

    async def _write_batches(self, session: Session, batches: int, size: int) -> None:
        for batch in range(batches):
            await session.add_items([message(f"{batch}/{n}") for n in range(size)])

    def test_works_from_several_event_loops_one_after_another(self) -> None:
        async def use(session: Session | None, number: int) -> Session:
            session = session or await self.open_session("s")
            await session.add_items([message(number)])
            assert texts(await session.get_items()) == [str(n) for n in range(number + 1)]
            return session

        session = None
        for number in range(3):
            session = asyncio.run(use(session, number))
        asyncio.run(close(session))

    def test_works_from_several_threads_at_once(self) -> None:
        if not self.shared:
            return
        failures: list[BaseException] = []

        async def write(writer: int) -> None:
            session = await self.open_session("s")
            for batch in range(5):
                await session.add_items([message(f"{writer}/{batch}/{n}") for n in range(3)])
                await session.get_items(limit=2)
            await close(session)

        def run(writer: int) -> None:
            try:
                asyncio.run(write(writer))
            except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
                failures.append(error)

        threads = [threading.Thread(target=run, args=(writer,)) for writer in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []

        async def read() -> list[str]:
            session = await self.open_session("s")
            found = texts(await session.get_items())
            await close(session)
            return found

        assert_whole_and_ordered(asyncio.run(read()), writers=4, batches=5, size=3)

    @in_event_loop
    async def test_a_cancelled_call_has_happened_or_not(self) -> None:
        session = await self.open_session("s")
        chance = random.Random(7)
        acknowledged = set()
        for number in range(40):
            task = asyncio.create_task(session.add_items([message(f"{number}/{n}") for n in range(3)]))
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.choice([0, 0, 0.0002, 0.001]))
            task.cancel()
            try:
                await task
                acknowledged.add(number)
            except asyncio.CancelledError:
                pass
        after = texts(await session.get_items())
        stored = [int(text.split("/")[0]) for text in after[::3]]
        assert after == [f"{number}/{n}" for number in stored for n in range(3)], "batches are whole"
        assert stored == sorted(set(stored))
        assert acknowledged <= set(stored)
        await session.add_items([message("works")])
        assert texts(await session.get_items()) == [*after, "works"], "and nothing came late"
        await close(session)

    @in_event_loop
    async def test_a_cancellation_that_meets_the_answer_ends_the_call(self) -> None:
        """The outcome is there, and the event loop has had no chance to deliver it."""
        session = await self.open_session("s")
        await session.add_items([message("first")])
        for number in range(3):
            task = asyncio.create_task(session.add_items([message(number)]))
            await asyncio.sleep(0)
            time.sleep(0.05)  # noqa: ASYNC251 - the event loop must not run meanwhile
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=10)
            assert done, "the call has ended"
        assert texts(await session.get_items())[0] == "first"
        await close(session)

    # --- abilities ---

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

    @in_event_loop
    @needs(Positioned)
    async def test_reads_in_parts_by_position(self) -> None:
        session: Any = await self.open_session("s")
        other = await self.open_session("other")
        for n in range(10):
            await session.add_items([message(n)])
            await other.add_items([message("not mine")])
        everything = await session.read_after(0)
        assert texts([item for _, item in everything]) == [str(n) for n in range(10)]
        positions = [position for position, _ in everything]
        assert positions == sorted(set(positions))
        assert await session.read_after(positions[3], limit=2) == everything[4:6]
        assert await session.read_before(None, 3) == everything[7:]
        assert await session.read_before(positions[7], 3) == everything[4:7]
        assert await session.read_before(positions[0], 3) == []
        assert await session.read_after(positions[-1]) == []
        assert await session.read_before(None, 0) == []
        await close(session)
        await close(other)

    @in_event_loop
    @needs(AppendsOnce)
    async def test_a_batch_with_an_id_is_added_once(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.add_batch([message("a"), message("b")], "batch-1") is True
        assert await session.add_batch([message("a"), message("b")], "batch-1") is False
        assert await session.add_batch([message("a")], "batch-2") is True
        assert texts(await session.get_items()) == ["a", "b", "a"]
        await close(session)

    @in_event_loop
    @needs(Described)
    async def test_carries_metadata(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.get_metadata() == SessionMetadata()
        metadata = SessionMetadata("user", "agent", "a title 标题", {"n": 1, "list": [None]})
        await session.set_metadata(metadata)
        assert await session.get_metadata() == metadata
        await session.add_items([message("a")])
        assert await session.get_metadata() == metadata
        await session.set_metadata(SessionMetadata(title="another"))
        assert await session.get_metadata() == SessionMetadata(title="another")
        await session.clear_session()
        assert await session.get_metadata() == SessionMetadata()
        await close(session)

    @in_event_loop
    @needs(Leasable)
    async def test_one_owner_at_a_time_holds_the_lease(self) -> None:
        session: Any = await self.open_session("s")
        assert await session.take_lease("one", 30)
        assert await session.take_lease("one", 30), "its owner may extend it"
        assert not await session.take_lease("two", 30)
        await session.drop_lease("two")
        assert not await session.take_lease("two", 30), "another's lease cannot be dropped"
        await session.drop_lease("one")
        assert await session.take_lease("two", 0.05)
        await asyncio.sleep(0.1)
        assert await session.take_lease("one", 30), "it was not renewed in time"
        await close(session)


def assert_whole_and_ordered(found: list[str], writers: int, batches: int, size: int) -> None:
    """Every batch is there once, in one piece, and each writer's batches are in its order."""
    assert len(found) == writers * batches * size
    starts = [found[index].split("/") for index in range(0, len(found), size)]
    assert found == [f"{writer}/{batch}/{n}" for writer, batch, _ in starts for n in range(size)]
    for writer in range(writers):
        assert [int(batch) for each, batch, _ in starts if each == str(writer)] == list(range(batches))
