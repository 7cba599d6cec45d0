"""Bad input gets one clear error each, and loses nothing."""

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest
import redis

from recollect.sessions.protocol import Note
from recollect.sessions.redis import RedisCatalog, RedisSession
from recollect.testing.contract import in_event_loop, message, texts

from .clients import make_client

NOWHERE = "redis://127.0.0.1:1"


# --- names ---


@pytest.mark.parametrize("session_id", ["", None, 7, b"bytes", "nul\0", "surrogate \ud800"])
def test_a_session_id_must_be_text_that_can_be_stored(session_id: Any) -> None:
    with pytest.raises(ValueError, match="session_id"):
        RedisSession.from_url(session_id, url=NOWHERE)


@pytest.mark.parametrize("session_id", ["a:messages", "a:counter", ":messages", "a:messages:counter"])
@pytest.mark.parametrize("url", [NOWHERE, "redis+cluster://127.0.0.1:1"])
def test_an_id_that_would_be_part_of_another_session_is_refused(session_id: str, url: str) -> None:
    with pytest.raises(ValueError, match=r"must not end in ':messages' or ':counter'"):
        RedisSession.from_url(session_id, url=url)


HOSTILE_IDS = [
    "messages",
    "counter",
    "a:messages:b",
    "a\\0lease",
    "}",
    "}{",
    "{}",
    "{a}",
    "a",
    "{a",
    "a}",
    "a}:messages}",
    "{a}:messages}",
    "*",
    "?[a-z]",
    "\r\nFLUSHALL\r\n",
    "{}a",
    "}a",
    "\x01}a",
]


@pytest.mark.parametrize("key_prefix", ["p", "{tag}p", "p{", "p}", "*p?", "p:x"])
@pytest.mark.parametrize("server", ["redis_url", "cluster_url"])
@in_event_loop
async def test_hostile_ids_are_sessions_of_their_own(
    request: pytest.FixtureRequest, prefix: str, server: str, key_prefix: str
) -> None:
    url = request.getfixturevalue(server)
    options = {"url": url, "key_prefix": f"{key_prefix}:{prefix}"}
    sessions = [RedisSession.from_url(session_id, **options) for session_id in HOSTILE_IDS]
    for session in sessions:
        await session.add_batch([message(session.session_id)], "batch")
        assert await session.take_lease("owner", 5)
    for session in sessions:
        assert texts(await session.get_items()) == [session.session_id]
    page = await RedisCatalog.from_url(**options).list_sessions()
    assert sorted(info.session_id for info in page.sessions) == sorted(HOSTILE_IDS)
    for session in sessions:
        await session.clear_session()
        await session.close()
    assert (await RedisCatalog.from_url(**options).list_sessions()).sessions == []


@pytest.mark.parametrize("key_prefix", ["", None, 7, "a\0b", "\ud800"])
def test_a_prefix_must_be_text_that_can_be_stored(key_prefix: Any) -> None:
    with pytest.raises(ValueError, match="key_prefix"):
        RedisSession.from_url("s", url=NOWHERE, key_prefix=key_prefix)


def test_a_prefix_that_would_scatter_a_session_over_a_cluster_is_refused() -> None:
    with pytest.raises(ValueError, match="empty hash tag"):
        RedisSession.from_url("s", url="redis+cluster://127.0.0.1:1", key_prefix="a{}b")


@pytest.mark.parametrize("settings", [{"limit": -1}, {"limits": 3}])
def test_bad_settings_are_refused(settings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="limit"):
        RedisSession.from_url("s", url=NOWHERE, session_settings=settings)


# --- URLs and clients ---


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://ada:hunter2@localhost",
        "redis:/ada:hunter2@localhost",
        "redis://ada:hunter2@localhost:port",
        "redis://ada:hunter2@localhost:hunter2",
        "redis://ada:hunt@er2:hunter2@localhost:x",
        "redis://localhost?socket_timeout=hunter2",
        "postgresql://ada:hunter2@localhost/x",
        "redis://[hunter2",
    ],
)
def test_what_is_no_redis_url_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="not a Redis URL") as refused:
        RedisSession.from_url("s", url=url)
    assert "hunter2" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_a_url_must_be_text() -> None:
    with pytest.raises(TypeError, match="url"):
        RedisSession.from_url("s", url=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (f"{NOWHERE}?no_such_option=1", {}),
        (NOWHERE, {"no_such_option": "hunter2"}),
        ("redis+cluster://127.0.0.1:1", {"no_such_option": "hunter2"}),
        ("redis+cluster://127.0.0.1:1/3", {}),
    ],
)
def test_an_unknown_option_is_named(url: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no_such_option|db") as refused:
        RedisSession.from_url("s", url=url, redis_kwargs=options)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("client", [None, "redis://localhost", object(), redis.Redis()])
def test_what_is_no_asynchronous_client_is_refused(client: Any) -> None:
    with pytest.raises(TypeError, match=r"redis_client must be a redis\.asyncio\.Redis or RedisCluster"):
        RedisSession("s", redis_client=client)


@in_event_loop
async def test_a_password_stands_in_no_representation(prefix: str) -> None:
    url = "redis://ada:hunter2@127.0.0.1:1/0"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        for thing in (session, session._handle.connections, session._handle.connections.wire()):
            assert "hunter2" not in f"{thing!r} {thing}"


def test_a_missing_extra_is_named() -> None:
    """A process that cannot import the `redis` package asks for a session."""
    script = (
        "import sys; sys.modules['redis'] = None\n"  # what Python takes for: not to be had
        "from recollect.sessions.redis import RedisCatalog, RedisSession\n"
        "from recollect import MissingExtraError\n"
        "for make in (\n"
        "    lambda: RedisSession.from_url('s', url='redis://localhost'),\n"
        "    lambda: RedisSession('s', redis_client=object()),\n"
        "    lambda: RedisCatalog.from_url(url='redis://localhost'),\n"
        "):\n"
        "    try:\n"
        "        make()\n"
        "    except MissingExtraError as error:\n"
        "        print(error.extra, error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (
        ended.stdout.count(
            "redis RedisSession needs the extra 'redis': pip install 'recollect-memory[redis]'"
        )
        == 3
    )


def test_importing_the_module_does_not_import_redis() -> None:
    script = "import sys, recollect.sessions.redis; sys.exit('redis' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)


# --- values ---


@in_event_loop
async def test_a_batch_that_redis_cannot_take_at_once_is_refused(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        with pytest.raises(ValueError, match="at most 1,000,000"):
            await session.add_items([{}] * 1_000_001)
        assert await session.get_items() == []


@in_event_loop
async def test_a_large_batch_and_large_items_are_stored_whole(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        items = [message(n) for n in range(30_000)]
        await session.add_items([*items, message("x" * 2_000_000)])
        assert len((await session.pop_item())["content"]) == 2_000_000
        assert await session.get_items() == items, "read in several pages"
        assert await session.get_items(limit=25_000) == items[5_000:]
        await session.clear_session()


@pytest.mark.parametrize("limit", ["5", 2.0, True])
@in_event_loop
async def test_a_limit_must_be_a_whole_number(redis_url: str, prefix: str, limit: Any) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        with pytest.raises(TypeError, match="limit"):
            await session.get_items(limit=limit)


# --- corrupt entries ---

CORRUPT = [
    b"{",
    b"",
    b"null",
    b'"text"',
    b"[1]",
    b"\xff\xfe",
    b'{"a": "\xff"}',
    b"7",
    b'{"a": 1} {"b": 2}',
    b'{"a": 1},0,{"b": 2}',
    b'{"a": [1',
]


@pytest.mark.parametrize("decoding", [False, True])
@pytest.mark.parametrize("corrupt", CORRUPT, ids=repr)
@in_event_loop
async def test_a_corrupt_entry_never_hides_the_rest(
    redis_url: str, prefix: str, corrupt: bytes, decoding: bool, caplog: pytest.LogCaptureFixture
) -> None:
    client = await make_client(redis_url, decode_responses=decoding)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        await session.add_items([message("a"), message("b")])
        await client.rpush(f"{prefix}:s:messages", corrupt)
        await session.add_items([message("c")])
        with caplog.at_level(logging.WARNING):
            assert texts(await session.get_items()) == ["a", "b", "c"]
        assert "corrupt entry 2 omitted" in caplog.text
        assert texts(await session.get_items(limit=2)) == ["b", "c"], "a limit counts valid items"
        before = await session.read_before(None, 3)
        assert texts([item for _, item in before]) == ["a", "b", "c"]
        assert await session.read_after(0, 3) == before
        assert await session.pop_item() == message("c")
        assert await session.pop_item() == message("b"), "the corrupt entry was removed on the way"
        assert await session.pop_item() == message("a")
        assert await session.pop_item() is None


@in_event_loop
async def test_entries_that_only_together_are_json_are_corrupt(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        await session.add_items([message("a")])
        await client.rpush(f"{prefix}:s:messages", b'{"x": [1', b'2]}, 0, {"y": 3}')
        await session.add_items([message("b")])
        assert texts(await session.get_items()) == ["a", "b"]


@in_event_loop
async def test_a_limit_counts_valid_items_across_a_wide_gap(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        await session.add_items([message(n) for n in range(3)])
        await client.rpush(f"{prefix}:s:messages", *["bad"] * 1500)
        await session.add_items([message(3)])
        assert texts(await session.get_items(limit=3)) == ["1", "2", "3"]
        first = (await session.read_after(0))[0].position
        assert texts([item for _, item in await session.read_after(first, 3)]) == ["1", "2", "3"]
        await session.transform_items(lambda items: items[:2])
        assert texts(await session.get_items()) == ["0", "1"]


@in_event_loop
async def test_strange_fields_are_taken_as_none(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        await session.add_items([message("a")])
        fields = ("metadata", "positions", "revision", "note:key")
        for name in (*(f"recollect:{field}" for field in fields), "created_at", "updated_at"):
            await client.hset(f"{prefix}:s", name, b"\xff strange")
        assert await session.get_note("key") is None
        assert await session.set_note("key", {"n": 1}, 0)
        assert await session.get_note("key") == Note(1, {"n": 1})
        assert (await session.get_metadata()).user_id is None
        assert texts([item for _, item in await session.read_after(0)]) == ["a"]
        catalog = RedisCatalog(redis_client=client, key_prefix=prefix)
        assert [info.created_at for info in (await catalog.list_sessions()).sessions] == [None]
        assert await catalog.delete_idle_sessions(0) == 0
        assert await session.pop_item() == message("a")
        catalog.close()


@in_event_loop
async def test_contents_never_reach_the_log(
    redis_url: str, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = await make_client(redis_url)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        with caplog.at_level(logging.DEBUG):
            await session.add_items([message("my-secret-word")])
            await client.rpush(f"{prefix}:s:messages", "my-secret-word")
            await session.get_items()
            await session.pop_item()
            with pytest.raises(TypeError) as refused:
                await session.add_items([{"content": ("my-secret-word",)}])
        assert "my-secret-word" not in caplog.text
        assert "my-secret-word" not in str(refused.value)


@in_event_loop
async def test_keys_of_another_kind_are_named_and_stay_as_they_are(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url, decode_responses=True)
    await client.set(f"{prefix}:s", "text")
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        calls = [session.get_items, session.pop_item, session.clear_session, session.get_metadata]
        for call in (*calls, lambda: session.add_items([message("a")])):
            with pytest.raises(Exception, match="another type"):
                await call()
    assert await client.keys(f"{prefix}:*") == [f"{prefix}:s"]
    assert await client.get(f"{prefix}:s") == "text"
    await asyncio.sleep(0)
