"""Sessions share connections, whoever opened them closes them, and event loops come and go."""

import asyncio
import gc
import os
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

from recollect import SessionClosedError
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import in_event_loop, message, texts
from recollect.testing.servers.redis import RedisServer, wait_until

from .clients import make_client


class Watch:
    """The connections that carry a name, as the server sees them."""

    def __init__(self, url: str) -> None:
        self.name = uuid.uuid4().hex
        self.options = {"client_name": self.name}
        self._client = redis.Redis.from_url(url)

    def count(self) -> int:
        return sum(client["name"] == self.name for client in self._client.client_list())

    def wait_for(self, number: int) -> None:
        wait_until(lambda: self.count() == number, f"there are still {self.count()} connections", 30)

    def close(self) -> None:
        self._client.close()


@pytest.fixture
def watch(redis_url: str) -> Any:
    watch = Watch(redis_url)
    yield watch
    watch.close()


@in_event_loop
async def test_a_thousand_sessions_of_a_url_share_a_few_connections(
    redis_url: str, prefix: str, watch: Watch
) -> None:
    sessions = [
        RedisSession.from_url(f"s{n}", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix)
        for n in range(1000)
    ]
    await asyncio.gather(*(session.add_items([message(session.session_id)]) for session in sessions))
    assert 1 <= watch.count() <= 32
    read = await asyncio.gather(*(session.get_items() for session in sessions))
    assert [texts(items) for items in read] == [[session.session_id] for session in sessions]
    assert 1 <= watch.count() <= 32
    await asyncio.gather(*(session.clear_session() for session in sessions))
    await asyncio.gather(*(session.close() for session in sessions))


@in_event_loop
async def test_one_after_another_they_need_one_connection(redis_url: str, prefix: str, watch: Watch) -> None:
    for n in range(20):
        async with RedisSession.from_url(
            f"s{n}", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix
        ) as session:
            await session.add_items([message(n)])
        assert watch.count() == 1


@in_event_loop
async def test_after_the_last_session_the_connections_are_closed(
    redis_url: str, prefix: str, watch: Watch
) -> None:
    options: dict[str, Any] = {"url": redis_url, "redis_kwargs": watch.options, "key_prefix": prefix}
    one, two = RedisSession.from_url("s", **options), RedisSession.from_url("t", **options)
    await asyncio.gather(one.get_items(), two.get_items())
    await one.close()
    await asyncio.sleep(0.7)
    assert watch.count() >= 1, "another session has them"
    await two.close()
    await asyncio.sleep(0.7)
    watch.wait_for(0)
    again = RedisSession.from_url("s", **options)
    assert await again.get_items() == []
    del again  # not closed, but dropped
    gc.collect()
    await asyncio.sleep(0.7)
    watch.wait_for(0)


def test_an_event_loop_takes_its_connections_with_it(redis_url: str, prefix: str, watch: Watch) -> None:
    session = RedisSession.from_url("s", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix)
    for number in range(3):
        asyncio.run(session.add_items([message(number)]))
        watch.wait_for(0)
    assert texts(asyncio.run(session.get_items())) == ["0", "1", "2"]
    asyncio.run(session.close())


def test_an_event_loop_that_is_ended_and_goes_on(redis_url: str, prefix: str, watch: Watch) -> None:
    """As the SDK's `run_sync` does after each run: it ends all generators, and uses the loop again."""
    session = RedisSession.from_url("s", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix)
    loop = asyncio.new_event_loop()
    for number in range(3):
        loop.run_until_complete(session.add_items([message(number)]))
        loop.run_until_complete(loop.shutdown_asyncgens())
        watch.wait_for(0)
    assert texts(loop.run_until_complete(session.get_items())) == ["0", "1", "2"]
    loop.run_until_complete(session.close())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def test_an_event_loop_may_end_just_when_its_connections_do(
    redis_url: str,
    prefix: str,
    watch: Watch,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("recollect.sessions.redis.connections._LINGER", 0.01)

    async def use() -> None:
        options: dict[str, Any] = {"url": redis_url, "redis_kwargs": watch.options, "key_prefix": prefix}
        async with RedisSession.from_url("s", **options) as session:
            await session.add_items([message("here")])

    with asyncio.Runner() as runner:
        runner.run(use())
        time.sleep(0.02)  # the connections are due to be closed as soon as the loop runs, which is to end
    gc.collect()
    assert caplog.records == [], "no task was lost, and none failed"
    watch.wait_for(0)


def test_a_client_serves_a_loop_that_comes_after_the_sessions_of_another_are_gone(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody closed the client: it still has a connection of the first loop, which no other can use."""
    monkeypatch.setattr("recollect.sessions.redis.connections._LINGER", 0.0)
    client = redis.asyncio.from_url(redis_url)

    async def use(number: int) -> list[str]:
        async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
            await session.add_items([message(number)])
            return texts(await session.get_items())

    with asyncio.Runner() as first:
        assert first.run(use(0)) == ["0"]
        first.run(asyncio.sleep(0.05))  # now nothing refers to the client but the test
        gc.collect()
        assert asyncio.run(use(1)) == ["0", "1"]
        first.run(client.aclose())


def test_connections_that_are_closed_late_do_not_take_new_ones_with_them(
    redis_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.sessions.redis.connections._LINGER", 0.0)

    async def use(name: str) -> RedisSession:
        session = RedisSession.from_url(name, url=redis_url, key_prefix=prefix)
        for number in range(20):
            await session.add_items([message(number)])
            await session.get_items()
        return session

    async def use_and_close() -> None:
        for session in await asyncio.gather(use("s"), use("t")):
            await session.close()

    with asyncio.Runner() as one, asyncio.Runner() as other:
        last = other.run(use("last"))
        one.run(use_and_close())
        other.run(
            last.close()
        )  # now nobody uses any: one hears of it when it runs again, and has new sessions
        one.run(use_and_close())


def test_event_loops_in_threads_have_connections_of_their_own(
    redis_url: str, prefix: str, watch: Watch
) -> None:
    session = RedisSession.from_url("s", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix)
    together = threading.Barrier(4)

    async def add(number: int) -> None:
        for _ in range(5):
            await session.add_items([message(number)])
        await asyncio.to_thread(together.wait, 10)
        assert watch.count() == 4
        await asyncio.to_thread(together.wait, 10)

    threads = [threading.Thread(target=asyncio.run, args=(add(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    watch.wait_for(0)
    assert len(asyncio.run(session.get_items())) == 20
    asyncio.run(session.close())


@in_event_loop
async def test_a_session_dropped_in_another_thread_lets_go_too(
    redis_url: str, prefix: str, watch: Watch
) -> None:
    session = RedisSession.from_url("s", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix)
    await session.get_items()
    dropping = threading.Thread(target=asyncio.run, args=(session.close(),))
    dropping.start()
    dropping.join()
    await asyncio.sleep(0.7)
    watch.wait_for(0)


@in_event_loop
async def test_a_client_that_was_passed_in_is_never_closed(redis_url: str, prefix: str, watch: Watch) -> None:
    client = await make_client(redis_url, **watch.options)
    connection = await client.client_id()
    for n in range(3):
        async with RedisSession(f"s{n}", redis_client=client, key_prefix=prefix) as session:
            await session.add_items([message(n)])
    await asyncio.sleep(0.7)
    assert await client.client_id() == connection, "the connection is still the same"
    assert watch.count() == 1


@pytest.mark.parametrize(
    "options", [{}, {"protocol": 2}, {"protocol": 3}, {"decode_responses": True}], ids=str
)
@in_event_loop
async def test_a_client_in_a_second_event_loop_is_copied_and_the_copy_closed(
    redis_url: str, prefix: str, watch: Watch, options: dict[str, Any]
) -> None:
    client = await make_client(redis_url, **options, **watch.options)
    session = RedisSession("s", redis_client=client, key_prefix=prefix)
    await session.add_items([message("here")])
    await asyncio.to_thread(lambda: asyncio.run(session.add_items([message("there")])))
    watch.wait_for(1)
    assert texts(await session.get_items()) == ["here", "there"]
    await session.close()


@in_event_loop
async def test_a_client_that_was_closed_is_opened_again_or_gives_a_clear_error(
    redis_url: str, prefix: str
) -> None:
    client = await make_client(redis_url)
    session = RedisSession("s", redis_client=client, key_prefix=prefix)
    await session.add_items([message("a")])
    await client.aclose()
    assert texts(await session.get_items()) == ["a"]
    await session.close()
    with pytest.raises(SessionClosedError):
        await session.ping()


@pytest.mark.parametrize("options", [{"protocol": 2}, {"protocol": 3}, {"encoding": "latin-1"}], ids=str)
@in_event_loop
async def test_options_of_a_client_do_not_change_what_is_stored(
    redis_url: str, prefix: str, options: dict[str, Any]
) -> None:
    client = await make_client(redis_url, **options)
    async with RedisSession("会话", redis_client=client, key_prefix=prefix) as session:
        await session.add_batch([message("你好 😀")], "第一")
        await session.take_lease("主", 1)
    async with RedisSession.from_url("会话", url=redis_url, key_prefix=prefix) as session:
        assert texts(await session.get_items()) == ["你好 😀"]
        assert await session.add_batch([message("x")], "第一") is False
        assert not await session.take_lease("other", 1)


def test_a_forked_child_opens_connections_of_its_own(redis_url: str, prefix: str) -> None:
    session = RedisSession.from_url("s", url=redis_url, key_prefix=prefix)

    async def use() -> None:
        await session.add_items([message("parent before")])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run_in_child(session)
                code = 0
            finally:
                os._exit(code)
        while os.waitpid(child, os.WNOHANG) == (0, 0):  # noqa: ASYNC222 - it does not wait
            await session.get_items()
        await session.add_items([message("parent after")])
        assert texts(await session.get_items()) == ["parent before", "child", "parent after"]
        await session.close()

    asyncio.run(use())


def run_in_child(session: RedisSession) -> None:
    """Use a session in a new thread: this one is within the parent's event loop."""
    failures: list[BaseException] = []

    async def add() -> None:
        try:
            await session.add_items([message("child")])
            assert texts(await session.get_items()) == ["parent before", "child"]
        except BaseException as error:  # noqa: BLE001 - the child reports by its exit code
            failures.append(error)

    thread = threading.Thread(target=asyncio.run, args=(add(),))
    thread.start()
    thread.join(10)
    assert not failures


@in_event_loop
async def test_making_a_session_costs_no_connection(redis_url: str, prefix: str, watch: Watch) -> None:
    sessions = [
        RedisSession.from_url("s", url=redis_url, redis_kwargs=watch.options, key_prefix=prefix)
        for _ in range(100)
    ]
    assert watch.count() == 0
    for session in sessions:
        await session.close()


@in_event_loop
async def test_a_socket_of_the_file_system(prefix: str, tmp_path: Path) -> None:
    with RedisServer(settings={"unixsocket": tmp_path / "redis.sock"}):
        url = f"unix://{tmp_path}/redis.sock?db=3"
        async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
            await session.add_items([message("a")])
            assert texts(await session.get_items()) == ["a"]
