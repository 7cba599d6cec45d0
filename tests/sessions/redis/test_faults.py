"""Servers that are down, killed, restarted, frozen or full: a clear error each, and no half batch."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest

from recollect import (
    AccessDeniedError,
    ConnectionLostError,
    DatabaseBusyError,
    DiskFullError,
    ReadOnlyError,
    RetryingSession,
    StorageError,
    TransientError,
    UnreachableError,
)
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import in_event_loop, message, texts
from recollect.testing.servers.redis import RedisCluster, RedisServer

from .clients import make_client

SIZE = 4


@pytest.fixture
def server() -> Iterator[RedisServer]:
    """A server of the test's own, to be killed."""
    with RedisServer() as server:
        yield server


def calls_of(session: RedisSession) -> list[Callable[[], Awaitable[Any]]]:
    return [
        session.get_items,
        session.pop_item,
        session.clear_session,
        session.get_metadata,
        lambda: session.get_items(limit=2),
        lambda: session.add_items([message("a")]),
        lambda: session.take_lease("owner", 1),
    ]


async def every_call_raises(session: RedisSession, error: type[Exception], match: str) -> None:
    for call in calls_of(session):
        with pytest.raises(error, match=match) as raised:
            await call()
        assert raised.value.__cause__ is not None
        assert "hunter2" not in f"{raised.value} {raised.value.__cause__}"
    assert await session.ping() is False


def batch(number: int) -> list[Any]:
    return [message(f"{number}/{n}") for n in range(SIZE)]


def batches_in(items: list[Any]) -> list[int]:
    """The numbers of the stored batches, after a check that each is whole."""
    found = texts(items)
    numbers = [int(text.split("/")[0]) for text in found[::SIZE]]
    assert found == [f"{number}/{n}" for number in numbers for n in range(SIZE)], "batches are whole"
    return numbers


# --- who does not answer ---


@in_event_loop
async def test_a_server_that_is_down(prefix: str) -> None:
    server = RedisServer()
    url = server.url.replace("redis://", "redis://ada:hunter2@")
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await every_call_raises(
            session, UnreachableError, f"Redis at 127.0.0.1:{server.port} cannot be reached"
        )
        server.start()
        server.command("ACL", "SETUSER", "ada", "on", ">hunter2", "~*", "+@all")
        await session.add_items([message("up again")])
        assert texts(await session.get_items()) == ["up again"]
        assert await session.ping()
    server.__exit__()


@in_event_loop
async def test_a_cluster_that_is_down(prefix: str) -> None:
    async with RedisSession.from_url(
        "s", url="redis+cluster://:hunter2@127.0.0.1:1", key_prefix=prefix
    ) as session:
        await every_call_raises(session, UnreachableError, "Redis Cluster at 127.0.0.1:1 cannot be reached")


@in_event_loop
async def test_a_host_without_a_name(prefix: str) -> None:
    url = "redis://:hunter2@no-such-host.invalid:6379"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        with pytest.raises(UnreachableError, match="no-such-host"):
            await session.get_items()


@in_event_loop
async def test_a_server_that_hangs_gives_an_error_in_time_and_recovers(
    server: RedisServer, prefix: str
) -> None:
    url = f"{server.url}?socket_timeout=2&socket_connect_timeout=2"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await session.add_items(batch(0))
        server.freeze()
        await every_call_raises(session, StorageError, r"did not answer in time|cannot be reached")
        server.thaw()
        await session.clear_session()
        await session.add_items(batch(1))
        assert batches_in(await session.get_items()) == [1]


@in_event_loop
async def test_a_server_that_pauses_its_clients(server: RedisServer, prefix: str) -> None:
    async with RedisSession.from_url("s", url=f"{server.url}?socket_timeout=2", key_prefix=prefix) as session:
        await session.add_items(batch(0))
        server.command("CLIENT", "PAUSE", 8_000)
        with pytest.raises(ConnectionLostError, match="did not answer in time"):
            await session.get_items()
        items = None
        while items is None:
            with suppress(StorageError):  # until the pause is over
                items = await session.get_items()
        assert batches_in(items) == [0]


@in_event_loop
async def test_a_cancelled_write_to_a_server_that_hangs_comes_back_soon(
    server: RedisServer, prefix: str
) -> None:
    async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
        await session.add_items(batch(0))
        server.freeze()
        started = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.add_items(batch(1)), 0.1)
        assert time.monotonic() - started < 10, "and not after the 30 seconds of the connection"
        server.thaw()
        assert batches_in(await session.get_items()) in ([0], [0, 1])
        await session.add_items(batch(2))


@in_event_loop
async def test_the_default_waits_no_longer_than_half_a_minute(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        wire: Any = session._handle.connections.wire()
        assert wire._pool.connection_kwargs["socket_timeout"] == 30
        assert wire._pool.connection_kwargs["socket_connect_timeout"] == 10


# --- who hangs up ---


@in_event_loop
async def test_a_connection_cut_while_a_call_waits_for_its_answer(server: RedisServer, prefix: str) -> None:
    async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
        await session.add_items(batch(0))
        server.freeze()
        adding = asyncio.create_task(session.add_items(batch(1)))
        await asyncio.sleep(0.05)
        server.kill()
        with pytest.raises(ConnectionLostError, match="broke: a write is stored whole, or not at all"):
            await adding
        server.start()
        await session.add_items(batch(2))
        assert batches_in(await session.get_items()) == [2], "this one keeps nothing on the disk"


@in_event_loop
async def test_an_idle_connection_that_was_cut_is_replaced(server: RedisServer, prefix: str) -> None:
    async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
        for number in range(5):
            await session.add_items(batch(number))
            server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await asyncio.sleep(0.01)
        assert batches_in(await session.get_items()) == list(range(5))


@in_event_loop
async def test_what_was_acknowledged_survives_kill_9(prefix: str) -> None:
    with RedisServer(durable=True) as server:
        async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
            acknowledged: list[int] = []
            for round_ in range(3):
                writers = [asyncio.create_task(write_until_it_fails(session, acknowledged)) for _ in range(8)]
                await asyncio.sleep(random.uniform(0.05, 0.2))
                server.kill()
                await asyncio.gather(*writers)
                server.start()
                stored = batches_in(await session.get_items())
                assert set(acknowledged) <= set(stored), "nothing acknowledged is lost"
                assert len(stored) == len(set(stored)) <= len(acknowledged) + 8 * (round_ + 1)
            assert acknowledged


_numbers = count()


async def write_until_it_fails(session: RedisSession, acknowledged: list[int]) -> None:
    try:
        while True:
            number = next(_numbers)
            await session.add_items(batch(number))
            acknowledged.append(number)
    except (ConnectionLostError, TransientError):
        return


@pytest.mark.parametrize("on_a_client", [False, True])
@in_event_loop
async def test_a_restart_in_the_middle_of_a_load(prefix: str, on_a_client: bool) -> None:
    """A client of the `redis` package repeats commands by itself: not here, where that would add twice."""
    with RedisServer(durable=True) as server:
        if on_a_client:
            client = await make_client(server.url)
            sessions = [RedisSession(f"s{n}", redis_client=client, key_prefix=prefix) for n in range(8)]
        else:
            sessions = [RedisSession.from_url(f"s{n}", url=server.url, key_prefix=prefix) for n in range(8)]
        ending = asyncio.Event()
        load = [asyncio.create_task(work_through_faults(session, ending)) for session in sessions]
        for end in (server.stop, server.kill):
            await asyncio.sleep(0.2)
            await asyncio.to_thread(end)
            await asyncio.sleep(0.05)
            await asyncio.to_thread(server.start)
        await asyncio.sleep(0.2)
        ending.set()
        for session, (added, unsure, faults) in zip(sessions, await asyncio.gather(*load), strict=True):
            stored = batches_in(await session.get_items())
            assert len(stored) == len(set(stored)), "nothing is stored twice"
            assert set(added) <= set(stored) <= {*added, *unsure}
            assert stored == sorted(stored)
            assert faults
            await session.close()


async def work_through_faults(
    session: RedisSession, ending: asyncio.Event
) -> tuple[list[int], list[int], int]:
    """Add batches and read; says which were added, which may have been, and how many calls failed."""
    added, unsure, faults = [], [], 0
    for number in count():
        if ending.is_set():
            return added, unsure, faults
        try:
            async with asyncio.timeout(20):
                await session.add_items(batch(number))
                added.append(number)
                batches_in(await session.get_items())
        except ConnectionLostError:
            unsure.append(number)
            faults += 1
        except TransientError:
            faults += 1
            await asyncio.sleep(0.005)
    raise AssertionError


@in_event_loop
async def test_a_retrying_session_comes_through_a_restart_and_adds_once(prefix: str) -> None:
    with RedisServer(durable=True) as server:
        session = RedisSession.from_url("s", url=server.url, key_prefix=prefix)
        patient = RetryingSession(session, tries=100, delay=0.01)
        writing = asyncio.create_task(add_batches(patient, 200))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await writing
        assert batches_in(await patient.get_items()) == list(range(200))
        await patient.aclose()


async def add_batches(session: RetryingSession, number: int) -> None:
    for n in range(number):
        await session.add_items(batch(n))


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    """A cluster of the module's own, to be disturbed."""
    with RedisCluster() as cluster:
        yield cluster


@in_event_loop
async def test_sessions_that_move_to_another_node_while_they_are_used(
    cluster: RedisCluster, prefix: str
) -> None:
    sessions = [RedisSession.from_url(f"s{n}", url=cluster.url, key_prefix=prefix) for n in range(6)]
    for session in sessions:
        await session.add_items(batch(0))
    ending = asyncio.Event()
    load = [asyncio.create_task(work_through_faults(session, ending)) for session in sessions]
    for session in sessions:
        await asyncio.to_thread(move_slot_of, cluster, f"{prefix}:{{{session.session_id}}}")
    await asyncio.sleep(0.1)
    ending.set()
    for session, (added, unsure, faults) in zip(sessions, await asyncio.gather(*load), strict=True):
        assert (unsure, faults) == ([], 0), "the client follows"
        assert batches_in(await session.get_items()) == [0, *added]
        await session.close()


def move_slot_of(cluster: RedisCluster, key: str) -> None:
    """Move the slot of a key from the node that has it to another, key by key, as `redis-cli` does."""
    slot = cluster.nodes[0].command("CLUSTER", "KEYSLOT", key)
    ids = [node.command("CLUSTER", "MYID") for node in cluster.nodes]
    owner = next(number for number, node in enumerate(cluster.nodes) if owns(node, ids[number], slot))
    target = (owner + 1) % len(cluster.nodes)
    source, destination = cluster.nodes[owner], cluster.nodes[target]
    destination.command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[owner])
    source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    while keys := source.command("CLUSTER", "GETKEYSINSLOT", slot, 1):
        source.command("MIGRATE", "127.0.0.1", destination.port, keys[0], 0, 5000)
        time.sleep(0.02)  # in between, the session is in two places
    for node in (destination, source):
        node.command("CLUSTER", "SETSLOT", slot, "NODE", ids[target])


def owns(node: RedisServer, node_id: str, slot: int) -> bool:
    ranges = node.command("CLUSTER", "SLOTS")
    return any(start <= slot <= end and master[2] == node_id for start, end, master, *_ in ranges)


@in_event_loop
async def test_a_node_of_a_cluster_that_is_gone_and_comes_back(cluster: RedisCluster, prefix: str) -> None:
    sessions = [RedisSession.from_url(f"s{n}", url=cluster.url, key_prefix=prefix) for n in range(12)]
    for session in sessions:
        await session.add_items(batch(0))
    cluster.nodes[2].kill()
    outcomes = await asyncio.gather(*(use(session) for session in sessions))
    assert set(outcomes) == {None, UnreachableError}, "nothing was under way, and the others are served"
    cluster.nodes[2].start()
    for session in sessions:
        await comes_back(session)
        await session.close()


async def use(session: RedisSession) -> type[Exception] | None:
    try:
        async with asyncio.timeout(20):
            await session.add_items(batch(1))
    except StorageError as error:
        return type(error)
    return None


async def comes_back(session: RedisSession) -> None:
    for _ in range(100):
        if await use(session) is None:
            break
        await asyncio.sleep(0.05)
    else:
        raise AssertionError("the session is not served again")
    batches_in(await session.get_items())


# --- who refuses ---


@pytest.fixture
def guarded() -> Iterator[RedisServer]:
    with RedisServer(settings={"requirepass": "open-sesame"}) as server:
        yield server


@pytest.mark.parametrize("user", ["", ":hunter2@", "nobody:hunter2@"])
@in_event_loop
async def test_a_wrong_password(guarded: RedisServer, prefix: str, user: str) -> None:
    url = f"redis://{user}127.0.0.1:{guarded.port}/0"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await every_call_raises(session, AccessDeniedError, "password")


@in_event_loop
async def test_a_wrong_password_for_a_cluster(cluster: RedisCluster, prefix: str) -> None:
    url = cluster.url.replace("://", "://nobody:hunter2@")
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await every_call_raises(session, AccessDeniedError, "password")


@in_event_loop
async def test_a_user_without_the_right(server: RedisServer, prefix: str) -> None:
    server.command("ACL", "SETUSER", "reader", "on", ">hunter2", "~other:*", "+@all")
    url = f"redis://reader:hunter2@127.0.0.1:{server.port}/0"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await every_call_raises(session, AccessDeniedError, "permission")


@in_event_loop
async def test_a_server_without_memory_left(server: RedisServer, prefix: str) -> None:
    async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
        await session.add_items(batch(0))
        server.command("CONFIG", "SET", "maxmemory", 1)
        with pytest.raises(DiskFullError, match="no memory left"):
            await session.add_items(batch(1))
        assert batches_in(await session.get_items()) == [0]
        server.command("CONFIG", "SET", "maxmemory", 0)
        await session.add_items(batch(2))
        assert batches_in(await session.get_items()) == [0, 2]


@in_event_loop
async def test_a_replica_can_be_read_and_a_write_is_a_clear_error(server: RedisServer, prefix: str) -> None:
    async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
        await session.add_items(batch(0))
        server.command("REPLICAOF", "127.0.0.1", 1)
        assert batches_in(await session.get_items()) == [0]
        with pytest.raises(ReadOnlyError, match="replica"):
            await session.add_items(batch(1))
        server.command("REPLICAOF", "NO", "ONE")
        assert batches_in(await session.get_items()) == [0]


@in_event_loop
async def test_a_server_that_takes_no_more_clients(server: RedisServer, prefix: str) -> None:
    holder = await make_client(server.url)
    await holder.config_set("maxclients", 1)
    async with RedisSession.from_url("s", url=server.url, key_prefix=prefix) as session:
        with pytest.raises(UnreachableError):
            await session.get_items()
        await holder.config_set("maxclients", 100)
        assert await session.get_items() == []


@in_event_loop
async def test_a_node_of_a_cluster_that_is_taken_for_a_server(cluster_url: str, prefix: str) -> None:
    url = cluster_url.replace("+cluster", "")
    sessions = [RedisSession.from_url(f"s{n}", url=url, key_prefix=prefix) for n in range(12)]
    errors = []
    for session in sessions:
        try:
            await session.get_items()
        except StorageError as error:
            errors.append(str(error))
        await session.close()
    assert errors
    assert all("redis+cluster://" in error for error in errors)


@in_event_loop
async def test_a_server_that_is_taken_for_a_cluster(redis_url: str, prefix: str) -> None:
    url = redis_url.replace("redis://", "redis+cluster://")
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        with pytest.raises(StorageError, match="is not a cluster"):
            await session.get_items()


# --- our own connections ---


@in_event_loop
async def test_all_connections_in_use(server: RedisServer, prefix: str) -> None:
    url = f"{server.url}?max_connections=2&timeout=3&socket_timeout=30"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        await asyncio.gather(*(session.add_items(batch(number)) for number in range(10)))
        server.freeze()
        waiting = [asyncio.create_task(session.get_items()) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(DatabaseBusyError, match="stayed in use; nothing was written"):
            await session.add_items(batch(99))
        server.thaw()
        await asyncio.gather(*waiting)
        assert sorted(batches_in(await session.get_items())) == list(range(10))


@in_event_loop
async def test_a_clients_small_pool_makes_calls_wait_and_not_fail(redis_url: str, prefix: str) -> None:
    client = await make_client(redis_url, max_connections=1)
    async with RedisSession("s", redis_client=client, key_prefix=prefix) as session:
        await asyncio.gather(*(session.add_items(batch(number)) for number in range(50)))
        assert sorted(batches_in(await session.get_items())) == list(range(50))


@in_event_loop
async def test_no_turn_is_lost_by_cancelled_calls(redis_url: str, prefix: str) -> None:
    chance = random.Random(3)
    url = f"{redis_url}?max_connections=2&timeout=5"
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        for _ in range(30):
            calls = [asyncio.create_task(call()) for call in calls_of(session) * 2]
            await asyncio.sleep(chance.choice([0, 0.0005, 0.002]))
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        await session.clear_session()
        await asyncio.gather(*(session.add_items(batch(number)) for number in range(10)))
        assert sorted(batches_in(await session.get_items())) == list(range(10))
