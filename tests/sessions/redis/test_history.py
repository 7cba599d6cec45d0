"""Positions, rewriting and many writers: what a list alone does not give."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect import InMemorySession, PositionedItem, SessionMetadata
from recollect.sessions.redis import RedisSession
from recollect.sessions.redis.windows import positions_of, positions_without
from recollect.testing.contract import assert_whole_and_ordered, in_event_loop, message, texts
from recollect.testing.servers.redis import RedisServer

from .clients import make_client

STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 4)),
    st.tuples(st.just("pop"), st.integers(1, 3)),
    st.tuples(st.just("keep"), st.integers(0, 6)),
    st.tuples(st.just("change"), st.integers(0, 6)),
    st.tuples(st.just("take out"), st.integers(1, 63)),
    st.tuples(st.just("pop checked"), st.integers(0, 4)),
    st.tuples(st.just("clear"), st.just(0)),
)


@given(steps=st.lists(STEPS, max_size=12))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_positions_rise_and_are_never_given_twice(redis_url: str, prefix: str, steps: list[Any]) -> None:
    """Whatever happens to a history, an item keeps its position, and no other item ever has it."""

    async def play() -> None:
        session = RedisSession.from_url("s", url=redis_url, key_prefix=prefix)
        model = InMemorySession("s")
        await session.clear_session()
        given_out: dict[int, Any] = {}
        for number, (name, argument) in enumerate(steps):
            for each in (session, model):
                await play_step(each, name, argument, number)
            assert await session.get_items() == await model.get_items()
            await check_positions(session, given_out)
        await session.close()

    asyncio.run(play())


async def play_step(session: Any, name: str, argument: int, number: int) -> None:
    match name:
        case "add":
            await session.add_items([message(f"{number}/{n}") for n in range(argument)])
        case "pop":
            for _ in range(argument):
                await session.pop_item()
        case "keep":
            await session.transform_items(lambda items: items[:argument])
        case "change":
            await session.transform_items(lambda items: [*items[:argument], message(f"{number}/changed")])
        case "take out":  # by the bits of the argument: whatever stands in those places
            await session.revise_items(
                lambda items: [None if argument >> (n % 6) & 1 else item for n, item in enumerate(items)]
            )
        case "pop checked":
            await session.pop_checked(lambda item: item["content"].endswith(f"/{argument}"))
        case "clear":
            await session.clear_session()


async def check_positions(session: RedisSession, given_out: dict[int, Any]) -> None:
    read = await session.read_after(0)
    positions = [position for position, _ in read]
    assert positions == sorted(set(positions))
    new = [position for position in positions if position not in given_out]
    assert all(position > max(given_out, default=0) for position in new), "what is new is after all before"
    for position, item in read:
        assert given_out.setdefault(position, item) == item, "one position, one item"
    for index, (position, _) in enumerate(read):
        assert await session.read_after(position) == read[index + 1 :]
        assert await session.read_before(position, 2) == read[max(0, index - 2) : index]
        assert await session.read_before(position + 1, 1) == [read[index]]


@pytest.mark.parametrize(
    ("indexes", "positions", "expected"),
    [
        ([0, 1, 2], b"", [1, 2, 3]),
        (range(3), b"0:100", [100, 101, 102]),
        ([0, 1, 2, 3, 4], b"0:100,2:105,4:110", [100, 101, 107, 108, 114]),
        ([3, 4], b"4:9", [4, 13]),
        ([], b"0:1", []),
    ],
)
def test_positions_are_indexes_with_offsets(indexes: Any, positions: bytes, expected: list[int]) -> None:
    assert positions_of(indexes, positions) == expected


@pytest.mark.parametrize(
    ("removed", "length", "positions", "expected"),
    [
        ([], 3, b"", "0:1"),
        ([0], 3, b"0:100", "0:101"),
        ([1], 3, b"0:100", "0:100,1:101"),
        ([2], 3, b"0:100", "0:100,2:101"),
        ([0, 1, 2], 3, b"0:100", "0:103"),
        ([1, 3], 6, b"0:100,2:105,4:110", "0:100,1:106,2:112"),
        ([], 3, b"0:100,3:105", "0:100,3:105"),
    ],
)
def test_positions_stay_where_entries_are_taken_out(
    removed: list[int], length: int, positions: bytes, expected: str
) -> None:
    assert positions_without(removed, length, positions) == expected
    left = [index for index in range(length + 1) if index not in removed]
    assert positions_of(range(len(left)), expected.encode()) == positions_of(left, positions)


@in_event_loop
async def test_a_reader_that_follows_a_history_misses_nothing(redis_url: str, prefix: str) -> None:
    """What was taken off and added again behind a reader's back is new to it."""
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message("a"), message("b")])
        seen = (await session.read_after(0))[-1].position
        await session.pop_item()
        await session.add_items([message("c")])
        assert texts([item for _, item in await session.read_after(seen)]) == ["c"]
        seen = (await session.read_after(0))[-1].position
        await session.clear_session()
        await session.add_items([message("d")])
        assert texts([item for _, item in await session.read_after(seen)]) == ["d"]


@in_event_loop
async def test_strange_positions_are_before_or_after_everything(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message("a"), message("b")])
        everything = await session.read_after(0)
        assert await session.read_after(-(2**80)) == everything
        assert await session.read_after(2**80) == []
        assert await session.read_before(2**80, 2**80) == everything
        assert await session.read_before(-5, 3) == []
        assert await session.read_after(0, 2**80) == everything
        assert await session.get_items(limit=2**80) == [item for _, item in everything]


@in_event_loop
async def test_a_rewriting_keeps_the_positions_of_what_it_keeps(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message(n) for n in range(6)])
        before = await session.read_after(0)
        await session.transform_items(lambda items: [*items[:3], message("new"), *items[4:]])
        after = await session.read_after(0)
        assert after[:3] == before[:3]
        assert all(position > before[-1].position for position, _ in after[3:])
        await session.transform_items(lambda items: items)
        assert await session.read_after(0) == after


@in_event_loop
async def test_a_long_history_is_rewritten_whole(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message(n) for n in range(12_000)])
        await session.transform_items(lambda items: items[::2])
        assert texts(await session.get_items()) == [str(n) for n in range(0, 12_000, 2)]


@in_event_loop
async def test_a_long_read_is_of_one_moment(redis_url: str, prefix: str) -> None:
    """A history longer than a page, rewritten and added to while it is read."""
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message(0) for _ in range(25_000)])
        reading = asyncio.create_task(read_some(session, 8))
        for number in range(1, 6):
            await session.replace_items([message(number) for _ in range(25_000)])
            await session.add_items([message(number)])
        for kinds in await reading:
            assert len(kinds) == 1, "never of two histories"
        await session.clear_session()


async def read_some(session: RedisSession, times: int) -> list[set[str]]:
    return [set(texts(await session.get_items())) for _ in range(times)]


@in_event_loop
async def test_a_long_read_is_of_one_moment_also_where_items_are_revised(redis_url: str, prefix: str) -> None:
    """A revision leaves lengths and positions as they are, and yet a reader must notice."""
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message(0) for _ in range(25_000)])
        before = await session.read_after(0)
        reading = asyncio.create_task(read_some(session, 8))
        for number in range(1, 6):
            await session.revise_items(lambda items, number=number: [message(number) for _ in items])
        for kinds in await reading:
            assert len(kinds) == 1, "never of two revisions"
        after = await session.read_after(0)
        assert [position for position, _ in after] == [position for position, _ in before]
        assert {item["content"] for _, item in after} == {"5"}
        await session.clear_session()


@in_event_loop
async def test_one_item_of_a_long_history_is_revised_alone(prefix: str) -> None:
    """On a server of its own, which counts what it is asked for."""
    with RedisServer() as server:
        async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
            await session.add_items([message(n) for n in range(12_000)])
            server.command("CONFIG", "RESETSTAT")
            await session.revise_items(
                lambda items: [*items[:5], None, *items[6:6_000], message("new"), *items[6_001:]]
            )
            stats = server.command("INFO", "commandstats")
            assert stats["cmdstat_lset"]["calls"] == 2
            assert "cmdstat_rpush" not in stats
            expected = [str(n) for n in range(12_000) if n != 5]
            expected[5_999] = "new"
            assert texts(await session.get_items()) == expected


@in_event_loop
async def test_a_mark_is_never_taken_for_an_entry(redis_url: str, prefix: str) -> None:
    """Entries that go are marked in the list first; what looks like an earlier mark stays."""
    client = await make_client(redis_url)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        await session.add_items([message(n) for n in range(3)])
        await session.revise_items(lambda items: [items[0], None, items[2]])
        mark = await client.hget(f"{prefix}:s", "recollect:revision")
        await client.rpush(f"{prefix}:s:messages", mark)
        await session.revise_items(lambda items: [None, items[1]])
        assert await client.lrange(f"{prefix}:s:messages", 0, -1) == [b'{"role":"user","content":"2"}', mark]


@in_event_loop
async def test_a_pop_goes_on_where_another_session_pops_what_was_looked_at(
    redis_url: str, prefix: str
) -> None:
    """Between the look and the taking off, the history becomes another one."""
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message(n) for n in range(4)])
        seen: list[str] = []

        def accept(item: Any) -> bool:
            seen.append(item["content"])
            if len(seen) == 1:
                in_another_thread(lambda: pop_once(redis_url, prefix))
            return True

        assert await session.pop_checked(accept) == message(2)
        assert seen == ["3", "2"]
        assert texts(await session.get_items()) == ["0", "1"]


@in_event_loop
async def test_a_revision_between_look_and_pop_is_noticed(redis_url: str, prefix: str) -> None:
    """The length, the newest item and all positions are the same after it."""
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        await session.add_items([message(n) for n in range(4)])
        seen: list[str] = []

        def accept(item: Any) -> bool:
            if item["content"] == "2":
                in_another_thread(lambda: revise_once(redis_url, prefix))
            seen.append(item["content"])
            return item["content"] in ("2", "new")

        assert await session.pop_checked(accept) == message("new")
        assert seen.count("2") == 1
        assert texts(await session.get_items()) == ["0", "1"]


async def pop_once(url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await session.pop_item()


async def revise_once(url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await session.revise_items(lambda items: [*items[:2], message("new"), *items[3:]])


def in_another_thread(make_call: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Bring a call to its end while this event loop stands still."""
    thread = threading.Thread(target=lambda: asyncio.run(make_call()))
    thread.start()
    thread.join()


@pytest.mark.parametrize("server", ["redis_url", "cluster_url"])
@in_event_loop
async def test_64_writers_on_one_session(request: pytest.FixtureRequest, prefix: str, server: str) -> None:
    url = request.getfixturevalue(server)
    sessions = [RedisSession.from_url("s", url=url, key_prefix=prefix) for _ in range(64)]

    async def write(writer: int) -> None:
        for number in range(5):
            await sessions[writer].add_items([message(f"{writer}/{number}/{n}") for n in range(5)])

    await asyncio.gather(*(write(writer) for writer in range(64)))
    found = texts(await sessions[0].get_items())
    assert_whole_and_ordered(found, writers=64, batches=5, size=5)
    for session in sessions:
        await session.close()


@in_event_loop
async def test_writers_poppers_and_rewriters_at_once(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        popped: list[Any] = []

        async def pop() -> None:
            popped.append(await session.pop_item())

        adding = [session.add_items([message(f"{n}/0"), message(f"{n}/1")]) for n in range(40)]
        popping = [pop() for _ in range(30)]
        rewriting = [session.transform_items(lambda items: list(items)) for _ in range(10)]
        await asyncio.gather(*adding, *popping, *rewriting)
        taken = texts([item for item in popped if item is not None])
        found = texts(await session.get_items())
        assert sorted(taken + found) == sorted(f"{n}/{k}" for n in range(40) for k in range(2))


@in_event_loop
async def test_metadata_given_with_a_session_is_stored_once(redis_url: str, prefix: str) -> None:
    options: dict[str, Any] = {"url": redis_url, "key_prefix": prefix}
    async with RedisSession.from_url("s", metadata=SessionMetadata("ada"), **options) as session:
        assert await session.get_metadata() == SessionMetadata()
        await session.add_items([message("a")])
        assert await session.get_metadata() == SessionMetadata("ada")
    async with RedisSession.from_url("s", metadata=SessionMetadata("bob"), **options) as session:
        await session.add_items([message("b")])
        assert await session.get_metadata() == SessionMetadata("ada")
        with pytest.raises(TypeError, match="user_id"):
            await session.set_metadata(SessionMetadata(user_id=7))  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            await session.set_metadata(SessionMetadata(data={"n": object()}))


@in_event_loop
async def test_a_batch_of_nothing_is_remembered_too(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        assert await session.add_batch([], "") is True
        assert await session.add_batch([message("a")], "") is False
        assert await session.get_items() == []
        await session.clear_session()
        assert await session.add_batch([message("a")], "") is True


def test_the_first_position_of_the_sdks_sessions_is_after_the_start() -> None:
    assert PositionedItem(positions_of([0], b"")[0], {}).position > 0


@in_event_loop
async def test_what_was_cleared_while_it_was_being_rewritten_does_not_come_back(
    redis_url: str, prefix: str
) -> None:
    """An empty session is filled, read by a rewriting and cleared, and is then empty as it was before."""
    session = RedisSession.from_url("s", url=redis_url, key_prefix=prefix)
    other = RedisSession.from_url("s", url=redis_url, key_prefix=prefix)
    handle, server = session._handle, redis.Redis.from_url(redis_url)

    async def fill_after_state() -> bytes:
        state = await type(handle).state(handle)
        await other.add_items([message("old"), message("new")])
        return state

    def clear_and_keep_the_newest(items: list[Any]) -> list[Any]:
        if items:
            server.delete(*handle.keys)
        return items[-1:]

    handle.state = fill_after_state  # type: ignore[method-assign]
    await session.transform_items(clear_and_keep_the_newest)
    assert texts(await other.get_items()) in ([], ["old", "new"])
    server.close()
    await session.close()
    await other.close()
