"""A session is in the order in which its batches became visible, whatever the clock says."""

import asyncio
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing.contract import assert_whole_and_ordered, in_event_loop, message, texts

from .database import by, sql

WORKER = Path(__file__).with_name("postgres_worker.py")
SIZE = 4


def start_worker(url: str, session_id: str, batches: int, tables: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, WORKER, url, session_id, str(batches), str(SIZE), *tables.values()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended_well(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, "")


@in_event_loop
async def test_an_append_waits_for_the_one_before_it(postgres_url: str, tables: dict[str, str]) -> None:
    """A batch that was given its ids and is not committed yet keeps later ones from overtaking it."""
    async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
        await session.add_items([message("first")])
        statement = session._queries.append("s", ['{"content": "slow"}'], None)[0]
        with psycopg.connect(postgres_url) as slow:
            slow.execute(
                statement.sql.replace("?1", "%(id)s").replace("?2", "%(items)s").encode(),
                {"id": "s", "items": statement.parameters[1]},
            )
            quick = asyncio.create_task(session.add_items([message("quick")]))
            await asyncio.sleep(0.1)
            assert not quick.done()
            assert texts(await session.get_items()) == ["first"], "readers do not wait"
            other = SQLAlchemySession.from_url("other", url=postgres_url, **tables)
            await asyncio.wait_for(other.add_items([message("at once")]), 60)
            await other.aclose()
            slow.commit()
            await quick
        assert texts(await session.get_items()) == ["first", "slow", "quick"]


@in_event_loop
async def test_who_pops_before_a_session_is_made_takes_nothing_of_it(
    postgres_url: str, tables: dict[str, str]
) -> None:
    """There is no row to lock yet: two poppers might go for the same item, and one of them find it gone."""
    sessions, messages = f'"{tables["sessions_table"]}"', f'"{tables["messages_table"]}"'
    async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
        await session.get_items()
        with psycopg.connect(postgres_url) as maker:
            maker.execute(f"LOCK TABLE {messages} IN ACCESS EXCLUSIVE MODE".encode())
            popping = [asyncio.create_task(session.pop_item()) for _ in range(2)]
            await asyncio.sleep(0.2)  # they have looked for the session, and may wait for its items
            maker.execute(f"INSERT INTO {sessions} (session_id) VALUES ('s')".encode())
            for text in ("old", "new"):
                data = f"INSERT INTO {messages} (session_id, message_data) VALUES ('s', %s)"
                maker.execute(data.encode(), [json.dumps(message(text))])
            maker.commit()
        popped = await asyncio.gather(*popping)
        left = texts(await session.get_items())
        assert None not in popped or left == ["old", "new"], "nobody found nothing where there was something"


@in_event_loop
async def test_the_clock_has_no_say(postgres_url: str, tables: dict[str, str]) -> None:
    async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
        for n in range(5):
            await session.add_items([message(n)])
        table = tables["messages_table"]
        sql(postgres_url, f"UPDATE {table} SET created_at = created_at - id * INTERVAL '1 hour'")
        await session.add_items([message(5)])
        assert texts(await session.get_items()) == ["0", "1", "2", "3", "4", "5"]
        assert texts(await session.get_items(2)) == ["4", "5"]
        assert await session.pop_item() == message(5)


@pytest.mark.proof
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_what_was_read_once_never_changes_while_processes_write(
    postgres_url: str, tables: dict[str, str], driver: str
) -> None:
    url = by(driver, postgres_url)
    workers = [start_worker(url, "s", 25, tables) for _ in range(3)]

    async def read_until_they_end() -> list[list[str]]:
        reads: list[list[str]] = [[]]
        async with SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) as session:
            while any(worker.poll() is None for worker in workers):
                reads.append(texts(await session.get_items()))
            return [*reads, texts(await session.get_items())]

    reads = asyncio.run(read_until_they_end())
    ended_well(workers)
    assert len(reads[-1]) == 3 * 25 * SIZE
    assert len({len(read) for read in reads}) > 5, "it was read in the middle"
    for earlier, later in pairwise(reads):
        assert len(later) % SIZE == 0
        assert later[: len(earlier)] == earlier


@in_event_loop
async def test_session_objects_on_one_session_keep_batches_whole(
    postgres_url: str, tables: dict[str, str]
) -> None:
    """They are also the first, all at once, to make the tables and the session."""

    async def write(writer: int) -> None:
        async with SQLAlchemySession.from_url("s", url=postgres_url, create_tables=True, **tables) as session:
            for batch in range(3):
                await session.add_items([message(f"{writer}/{batch}/{n}") for n in range(SIZE)])

    await asyncio.gather(*(write(writer) for writer in range(20)))
    async with SQLAlchemySession.from_url("s", url=postgres_url, **tables) as session:
        found = texts(await session.get_items())
    assert_whole_and_ordered(found, writers=20, batches=3, size=SIZE)


@pytest.mark.proof
def test_processes_that_come_first_at_once_do_not_race(postgres_url: str, tables: dict[str, str]) -> None:
    ended_well([start_worker(postgres_url, "s", 1, tables) for _ in range(4)])
    assert sql(postgres_url, f"SELECT count(*) FROM {tables['messages_table']}") == [(4 * SIZE,)]


@in_event_loop
async def test_two_poppers_in_two_pools_never_get_the_same_item(
    postgres_url: str, tables: dict[str, str]
) -> None:
    urls = [by(driver, postgres_url) for driver in ("asyncpg", "psycopg")]
    sessions = [SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables) for url in urls]
    await sessions[0].add_items([message(n) for n in range(20)])
    popped = await asyncio.gather(*(session.pop_item() for session in sessions for _ in range(12)))
    found = [item["content"] for item in popped if item is not None]
    assert sorted(found, key=int) == [str(n) for n in range(20)]
    for session in sessions:
        await session.aclose()
