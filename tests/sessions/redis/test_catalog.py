"""Listing the sessions under a prefix, and deleting those that nobody used for long."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from agents.extensions.memory import RedisSession as SDKSession

from recollect import SessionManager, SessionMetadata
from recollect.sessions.manager import open_session
from recollect.sessions.redis import RedisCatalog, RedisSession
from recollect.testing.contract import close, in_event_loop, message

from .clients import make_client


@pytest.fixture(params=["redis_url", "cluster_url"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


async def fill(url: str, prefix: str, number: int) -> None:
    for n in range(number):
        metadata = SessionMetadata(f"user{n % 3}", f"agent{n % 2}", f"title {n}")
        async with RedisSession.from_url(f"s{n}", url=url, key_prefix=prefix, metadata=metadata) as session:
            await session.add_items([message("x")] * (n + 1))


async def all_pages(catalog: RedisCatalog, limit: int, **filters: Any) -> list[Any]:
    pages = [await catalog.list_sessions(limit=limit, **filters)]
    while pages[-1].next_cursor is not None:
        assert len(pages[-1].sessions) == limit, "pages before the last are full"
        pages.append(await catalog.list_sessions(limit=limit, cursor=pages[-1].next_cursor, **filters))
    return [info for page in pages for info in page.sessions]


@pytest.mark.parametrize("limit", [1, 7, 100])
@in_event_loop
async def test_lists_every_session_once_page_by_page(url: str, prefix: str, limit: int) -> None:
    await fill(url, prefix, 25)
    await fill(url, f"{prefix}:other", 3)
    catalog = RedisCatalog.from_url(url=url, key_prefix=prefix)
    infos = await all_pages(catalog, limit)
    assert sorted(info.session_id for info in infos) == sorted(f"s{n}" for n in range(25))
    for info in infos:
        number = int(info.session_id[1:])
        assert info.item_count == number + 1
        assert info.metadata == SessionMetadata(f"user{number % 3}", f"agent{number % 2}", f"title {number}")
        assert timedelta() <= datetime.now(UTC) - info.created_at < timedelta(minutes=1)
        assert info.updated_at >= info.created_at
    of_user = await all_pages(catalog, limit, user_id="user1", agent_id="agent0")
    assert sorted(info.session_id for info in of_user) == ["s10", "s16", "s22", "s4"]
    assert await all_pages(catalog, limit, user_id="nobody") == []
    catalog.close()
    catalog.close()


@in_event_loop
async def test_a_listing_goes_on_while_its_sessions_are_deleted(url: str, prefix: str) -> None:
    await fill(url, prefix, 20)
    catalog = RedisCatalog.from_url(url=url, key_prefix=prefix)
    listed = []
    cursor = None
    while True:
        page = await catalog.list_sessions(limit=3, cursor=cursor)
        for info in page.sessions:
            listed.append(info.session_id)
            async with RedisSession.from_url(info.session_id, url=url, key_prefix=prefix) as session:
                await session.clear_session()
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(listed) == sorted(f"s{n}" for n in range(20))
    assert (await catalog.list_sessions()).sessions == []
    catalog.close()


@in_event_loop
async def test_deletes_what_was_not_used_for_long(url: str, prefix: str) -> None:
    await fill(url, prefix, 10)
    client = await make_client(url)
    layout = "{}:{{s{}}}" if "+cluster" in url else "{}:s{}"
    for n in range(4):
        await client.hset(layout.format(prefix, n), "updated_at", 1_000_000_000)
    catalog = RedisCatalog.from_url(url=url, key_prefix=prefix)
    assert await catalog.delete_idle_sessions(86_400) == 4
    left = await all_pages(catalog, 100)
    assert sorted(info.session_id for info in left) == [f"s{n}" for n in range(4, 10)]
    assert await catalog.delete_idle_sessions(86_400) == 0
    async with RedisSession.from_url("s0", url=url, key_prefix=prefix) as session:
        assert await session.get_items() == []
    catalog.close()


@in_event_loop
async def test_sessions_of_the_sdk_are_listed_too_and_other_hashes_left_alone(
    redis_url: str, prefix: str
) -> None:
    client = await make_client(redis_url)
    theirs: Any = SDKSession("theirs", redis_client=client, key_prefix=prefix)
    await theirs.add_items([message("a"), message("b")])
    unsuitable: Any = SDKSession("s:messages", redis_client=client, key_prefix=prefix)
    await unsuitable.add_items([message("a")])
    old = {"updated_at": 1, "session_id": "somebody else's"}
    await client.hset(f"{prefix}:profile", mapping=old)
    await client.hset(f"{prefix}:bytes", mapping={**old, "session_id": b"\xff"})
    catalog = RedisCatalog(redis_client=client, key_prefix=prefix)
    (info,) = (await catalog.list_sessions()).sessions
    assert (info.session_id, info.item_count, info.metadata) == ("theirs", 2, SessionMetadata())
    assert await catalog.delete_idle_sessions(10) == 0
    assert await client.exists(f"{prefix}:profile", f"{prefix}:bytes") == 2
    catalog.close()


@pytest.mark.parametrize("cursor", ["", "x", "bm90IGpzb24=", "WzEsIDJd", "W251bGwsIFs3XV0="])
@in_event_loop
async def test_a_strange_cursor_is_refused(redis_url: str, prefix: str, cursor: str) -> None:
    catalog = RedisCatalog.from_url(url=redis_url, key_prefix=prefix)
    with pytest.raises(ValueError, match="not a cursor"):
        await catalog.list_sessions(cursor=cursor)
    catalog.close()


@in_event_loop
async def test_bad_arguments_are_refused(redis_url: str, prefix: str) -> None:
    catalog = RedisCatalog.from_url(url=redis_url, key_prefix=prefix)
    with pytest.raises(ValueError, match="limit"):
        await catalog.list_sessions(limit=0)
    for seconds in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="seconds"):
            await catalog.delete_idle_sessions(seconds)
    catalog.close()


@in_event_loop
async def test_the_manager_and_the_function_for_all_backends_serve_redis(url: str, prefix: str) -> None:
    manager = SessionManager(url, key_prefix=prefix)
    for user in ("ada", "bob"):
        await manager.get_session(user).add_items([message(user)])
    page = await manager.list_sessions(user_id="ada")
    assert [info.session_id for info in page.sessions] == ["ada_default"]
    session = open_session(url, "ada_default", key_prefix=prefix)
    assert await session.get_items() == [message("ada")]
    assert await manager.cleanup_old_sessions(days=30) == 0
    manager.close()
    await close(session)
