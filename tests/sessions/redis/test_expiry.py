"""A time to live is that of the whole session, and begins anew with each write."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents.extensions.memory import RedisSession as SDKSession

from recollect import SessionMetadata
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import in_event_loop, message, texts

from .clients import make_client

WRITES: dict[str, Callable[[RedisSession], Awaitable[Any]]] = {
    "add": lambda session: session.add_items([message("b")]),
    "add once": lambda session: session.add_batch([message("b")], "batch"),
    "pop": lambda session: session.pop_item(),
    "replace": lambda session: session.replace_items([message("b")]),
    "revise": lambda session: session.revise_items(lambda items: [message("b"), *items[1:]]),
    "pop checked": lambda session: session.pop_checked(lambda _: True),
    "note": lambda session: session.set_note("key", {}, 0),
    "describe": lambda session: session.set_metadata(SessionMetadata("user")),
}


@pytest.mark.parametrize("write", list(WRITES))
@in_event_loop
async def test_every_write_refreshes_it(redis_url: str, prefix: str, write: str) -> None:
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix, ttl=1000)
    await session.add_items([message("a"), message("a")])
    for key in (f"{prefix}:s", f"{prefix}:s:messages"):
        await client.expire(key, 5)
    await WRITES[write](session)
    ends = {
        await client.execute_command("PTTL", key) // 10 for key in (f"{prefix}:s", f"{prefix}:s:messages")
    }
    assert all(99_000 < end <= 100_000 for end in ends)
    await session.close()


@in_event_loop
async def test_reads_do_not_refresh_it(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix, ttl=1000)
    await session.add_items([message("a")])
    await client.expire(f"{prefix}:s:messages", 5)
    await session.get_items()
    assert await client.ttl(f"{prefix}:s:messages") <= 5
    await session.close()


@in_event_loop
async def test_an_expired_session_is_gone_and_begins_anew(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix, ttl=1)
    await session.add_items([message("a")])
    (before,) = await session.read_after(0)
    await asyncio.sleep(1.1)
    assert await session.get_items() == []
    assert await client.keys(f"{prefix}:*") == []
    await session.add_items([message("b")])
    (after,) = await session.read_after(before.position)
    assert after.item == message("b"), "positions go on"
    await session.close()


@in_event_loop
async def test_without_one_nothing_expires(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix)
    await session.add_items([message("a")])
    await session.set_metadata(SessionMetadata("user"))
    assert [await client.ttl(key) for key in await client.keys(f"{prefix}:*")] == [-1, -1]
    await session.close()


@in_event_loop
async def test_the_sdk_and_we_refresh_each_others(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    ours = RedisSession("s", redis_client=client, key_prefix=prefix, ttl=500)
    theirs: Any = SDKSession("s", redis_client=client, key_prefix=prefix, ttl=100)
    await ours.add_items([message("a")])
    await theirs.add_items([message("b")])
    assert await client.ttl(f"{prefix}:s:messages") <= 100
    await ours.add_items([message("c")])
    assert await client.ttl(f"{prefix}:s:messages") > 400
    assert texts(await ours.get_items()) == ["a", "b", "c"]
    await ours.close()


@in_event_loop
async def test_batch_ids_and_leases_go_by_themselves(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix)
    await session.add_batch([message("a")], "batch")
    await session.take_lease("owner", 30)
    assert 86_000 < await client.ttl(f"{prefix}:s\0batches") <= 86_400
    assert 20 < await client.ttl(f"{prefix}:s\0lease") <= 30
    await session.close()


@pytest.mark.parametrize("ttl", [0, -1, 10**11])
def test_a_time_to_live_that_makes_no_sense_is_refused(redis_url: str, ttl: int) -> None:
    with pytest.raises(ValueError, match="ttl"):
        RedisSession.from_url("s", url=redis_url, ttl=ttl)


@pytest.mark.parametrize("ttl", ["60", 1.5, True])
def test_a_time_to_live_is_in_whole_seconds(redis_url: str, ttl: Any) -> None:
    with pytest.raises(TypeError, match="ttl"):
        RedisSession.from_url("s", url=redis_url, ttl=ttl)


@pytest.mark.parametrize("write", list(WRITES))
@in_event_loop
async def test_who_has_no_ttl_leaves_a_session_the_time_it_has(
    redis_url: str, prefix: str, write: str
) -> None:
    """Maintenance by another handle must not make items immortal while what they belong to expires."""
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix, ttl=1000)
    await session.add_items([message("a"), message("a")])
    await WRITES[write](RedisSession("s", redis_client=client, key_prefix=prefix))
    for key in (f"{prefix}:s", f"{prefix}:s:messages"):
        assert 990_000 < await client.execute_command("PTTL", key) <= 1_000_000
    await session.close()
