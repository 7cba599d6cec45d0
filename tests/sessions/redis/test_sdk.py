"""What the Agents SDK's RedisSession wrote is read and continued here, and the reverse."""

import asyncio
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.extensions.memory import EncryptedSession
from agents.extensions.memory import RedisSession as SDKSession
from agents.testing import ScriptedModel, assistant_message

from recollect import SchemaMismatchError, SessionMetadata
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import ODD_ITEMS, in_event_loop, message, texts

from .clients import make_client


class Pair:
    """One session id, as ours and as the SDK's."""

    def __init__(self, client: Any, prefix: str, **options: Any) -> None:
        self.client = client
        self.ours = RedisSession("s", redis_client=client, key_prefix=prefix, **options)
        self.theirs: Any = SDKSession("s", redis_client=client, key_prefix=prefix, **options)


@in_event_loop
async def test_the_sdks_history_is_read_and_continued(redis_url: str, prefix: str) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    await pair.theirs.add_items(ODD_ITEMS)
    assert await pair.ours.get_items() == ODD_ITEMS
    await pair.ours.add_items([message("ours")])
    await pair.theirs.add_items([message("theirs")])
    expected = [*ODD_ITEMS, message("ours"), message("theirs")]
    assert await pair.ours.get_items() == expected
    assert await pair.theirs.get_items() == expected


@in_event_loop
async def test_the_sdk_reads_and_continues_our_history(redis_url: str, prefix: str) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    await pair.ours.add_items(ODD_ITEMS)
    assert await pair.theirs.get_items() == ODD_ITEMS
    assert await pair.theirs.get_items(limit=2) == ODD_ITEMS[-2:]
    assert await pair.theirs.pop_item() == ODD_ITEMS[-1]
    assert await pair.ours.pop_item() == ODD_ITEMS[-2]
    await pair.theirs.add_items([message("theirs")])
    assert await pair.ours.get_items() == [*ODD_ITEMS[:-2], message("theirs")]


@in_event_loop
async def test_the_keys_and_fields_are_the_sdks(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url, decode_responses=True)
    pair = Pair(client, prefix)
    await pair.ours.add_items([message("ours")])
    ours = await client.hgetall(f"{prefix}:s")
    assert sorted(await client.keys(f"{prefix}:*")) == [f"{prefix}:s", f"{prefix}:s:messages"]
    await pair.ours.clear_session()
    await pair.theirs.add_items([message("theirs")])
    theirs = await client.hgetall(f"{prefix}:s")
    assert {name for name in ours if not name.startswith("recollect:")} == set(theirs)
    assert ours["session_id"] == theirs["session_id"] == "s"
    assert abs(int(ours["updated_at"]) - int(theirs["updated_at"])) < 60


@pytest.mark.parametrize("clearer", ["ours", "theirs"])
@in_event_loop
async def test_either_clears_the_others_session(redis_url: str, prefix: str, clearer: str) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    await pair.theirs.add_items([message("theirs")])
    await pair.ours.add_items([message("ours")])
    await getattr(pair, clearer).clear_session()
    assert await pair.ours.get_items() == await pair.theirs.get_items() == []
    assert await pair.client.keys(f"{prefix}:*") == []


@in_event_loop
async def test_abilities_work_on_the_sdks_history(redis_url: str, prefix: str) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    await pair.theirs.add_items([message(n) for n in range(4)])
    read = await pair.ours.read_after(0)
    assert [position for position, _ in read] == [1, 2, 3, 4]
    await pair.ours.transform_items(lambda items: items[:2])
    assert await pair.theirs.get_items() == [message(0), message(1)]
    await pair.theirs.add_items([message("new")])
    assert [position for position, _ in await pair.ours.read_after(2)] == [5], "no position is given twice"


@in_event_loop
async def test_a_rewriting_never_loses_what_the_sdk_adds_meanwhile(redis_url: str, prefix: str) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    adding = [asyncio.create_task(pair.theirs.add_items([message(n)])) for n in range(20)]
    rewriting = [asyncio.create_task(pair.ours.transform_items(rebuilt)) for _ in range(20)]
    await asyncio.gather(*adding, *rewriting)
    found = texts(await pair.ours.get_items())
    assert sorted((text.rstrip("'") for text in found), key=int) == [str(n) for n in range(20)]


def rebuilt(items: list[Any]) -> list[Any]:
    """The same history with every item changed."""
    return [message(f"{item['content']}'") for item in items]


@in_event_loop
async def test_a_session_of_the_sdk_that_lies_on_our_key_is_left_alone(redis_url: str, prefix: str) -> None:
    """The SDK takes any id: its session `s:messages` lies where our session `s` has its items."""
    client = await make_client(redis_url)
    theirs: Any = SDKSession("s:messages", redis_client=client, key_prefix=prefix)
    await theirs.add_items([message("theirs")])
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as ours:
        for use in (
            ours.get_items,
            ours.pop_item,
            ours.clear_session,
            lambda: ours.add_items([message("ours")]),
            lambda: ours.replace_items([message("ours")]),
        ):
            with pytest.raises(SchemaMismatchError, match="another type"):
                await use()
    assert await theirs.get_items() == [message("theirs")]
    assert await client.exists(f"{prefix}:s") == 0, "nothing was written before the error"


@in_event_loop
async def test_what_the_sdk_stored_and_we_would_refuse_survives_a_rewriting(
    redis_url: str, prefix: str
) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    await pair.theirs.add_items([message("a"), {"role": "user", "content": "b", "score": float("nan")}])
    await pair.ours.transform_items(lambda items: items[1:])
    (item,) = await pair.ours.get_items()
    assert item["content"] == "b"
    assert item["score"] != item["score"], "it is still not a number"
    with pytest.raises(TypeError, match="item 1"):
        await pair.ours.transform_items(lambda items: [*items, {"score": float("nan")}])


@in_event_loop
async def test_the_sdks_compaction_replaces_a_history_in_one_step(redis_url: str, prefix: str) -> None:
    pair = Pair(await make_client(redis_url), prefix)
    await pair.ours.add_items([message(n) for n in range(5)])
    await pair.ours.set_metadata(SessionMetadata("ada"))
    snapshot: Any = await pair.ours._get_compaction_snapshot(2)
    assert (texts(snapshot.items), snapshot.complete) == (["3", "4"], False)
    assert await snapshot.replace_suffix(1, [message("compacted")])
    assert texts(await pair.ours.get_items()) == ["0", "1", "2", "3", "compacted"]
    assert not await snapshot.replace_suffix(1, [message("too late")])
    assert await pair.ours.get_metadata() == SessionMetadata("ada")


# --- the SDK's Runner and wrappers ---


UNTRACED = RunConfig(tracing_disabled=True)


def run_in_every_way(session: Any) -> None:
    """Whole, streamed and synchronous runs, as an application without an event loop of its own makes them."""
    model = ScriptedModel([[assistant_message(f"answer {n}", item_id=f"msg_{n}")] for n in range(4)])
    agent = Agent(name="assistant", instructions="Answer.", model=model)

    async def run() -> None:
        await Runner.run(agent, "one", session=session, run_config=UNTRACED)
        streamed = Runner.run_streamed(agent, "two", session=session, run_config=UNTRACED)
        async for _ in streamed.stream_events():
            pass

    asyncio.run(run())
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    for text in ("three", "four"):
        Runner.run_sync(agent, text, session=session, run_config=UNTRACED)
    loop.run_until_complete(session.aclose())
    loop.close()
    asyncio.set_event_loop(None)
    model.assert_complete()


def test_the_runner_works_with_it(redis_url: str, prefix: str) -> None:
    session = RedisSession.from_url("s", url=redis_url, key_prefix=prefix)
    run_in_every_way(session)

    async def read() -> list[Any]:
        async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as again:
            return await again.get_items()

    stored = asyncio.run(read())
    assert [item["content"] for item in stored if item["role"] == "user"] == ["one", "two", "three", "four"]
    assert len(stored) == 8


@in_event_loop
async def test_it_works_inside_the_sdks_encryption(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as ours:
        encrypted: Any = EncryptedSession("s", ours, encryption_key="key", ttl=600)
        await encrypted.add_items([message("a"), message("b")])
        assert await encrypted.get_items() == [message("a"), message("b")]
        assert await encrypted.pop_item() == message("b")
        assert "content" not in (await ours.get_items())[0]
