"""Erasing while others record, append, learn and embed: nobody waits for one who waits for them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from recollect import SessionMetadata, open_session
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by, sql, until_somebody_waits
from .kit import AGENT, Somewhere, Store, said
from .people import rows_of

DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
TIMES = 12


async def often(act: Callable[[int], Awaitable[object]]) -> None:
    for turn in range(TIMES):
        await act(turn)


def acts_of(store: Store) -> list[Callable[[int], Awaitable[object]]]:
    """What is done at once: much of it to the same two memories."""

    async def record(turn: int) -> None:
        await store.record_conversation(AGENT, "bob", said(f"home: lives in street {turn}"))

    async def append(turn: int) -> None:
        await store.append_messages("c1", said(f"pet: has tortoise {turn}", prefix=f"{turn} "))

    async def append_quietly(turn: int) -> None:
        await store.append_messages(
            "c1", said(f"pet: has cat {turn}", prefix=f"quiet {turn} "), learn_after=0
        )

    async def close(turn: int) -> None:
        await store.open_conversation(AGENT, "ann", conversation_id=f"quiet {turn}")
        await store.append_messages(f"quiet {turn}", said("home: has a boat"), learn_after=0)
        await store.close_conversation(f"quiet {turn}")

    async def erase_message(turn: int) -> None:
        await store.erase_message("c1", f"{max(0, turn - 2)} 0")

    async def erase_conversation(turn: int) -> None:
        await store.record_conversation(AGENT, "ann", said(f"job: mends {turn} clocks"), conversation_id="c2")
        await store.erase_conversation("c2")

    async def delete_memory(_: int) -> None:
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        await store.delete_memory(memory.memory_id)

    async def erase_user(_: int) -> None:
        await store.erase_user("bob")

    async def embed(_: int) -> None:
        await store.embed_pending()

    talking = [record, record, append, append_quietly, close]
    return [*talking, erase_message, erase_conversation, delete_memory, erase_user, embed]


@pytest.mark.proof
@in_event_loop
async def test_whoever_erases_never_waits_in_a_circle_with_others(cleared_postgres: str) -> None:
    before = sql(cleared_postgres, DEADLOCKS)
    somewhere = Somewhere(by("asyncpg", cleared_postgres), create_tables=True)
    async with somewhere.open(workers=3, embeds=True) as store:
        await store.record_conversation(AGENT, "ann", said("home: lives in Ghent"), conversation_id="c1")
        await asyncio.gather(*(often(act) for act in acts_of(store)))
        await store.drain(timeout=60)
        for user in ("ann", "bob"):
            await store.erase_user(user)
    sql(cleared_postgres, "SELECT pg_stat_force_next_flush()")
    assert sql(cleared_postgres, DEADLOCKS) == before
    left = {name for name, rows in rows_of(somewhere.url).items() if rows}
    assert left <= {"memory_keys", "memory_embedders"}


# --- one at a time, with somebody who has what the others have first, and then wants what they have later ---


@contextmanager
def somebody(url: str) -> Iterator[psycopg.Connection]:
    """A transaction that never waits for long: PostgreSQL looks for circles after a second."""
    with psycopg.connect(url) as connection:
        connection.execute("SET lock_timeout = '500ms'")
        yield connection


async def add_session(url: str) -> None:
    """A session of the user ann."""
    options: dict[str, Any] = {"create_tables": True, "metadata": SessionMetadata(user_id="ann")}
    session: Any = open_session(by("asyncpg", url), "s", **options)
    async with session:
        await session.add_items([{"role": "user", "content": "hello"}])


@in_event_loop
async def test_whoever_erases_sessions_has_them_before_their_items(cleared_postgres: str) -> None:
    """As who pops: the session, and then the item."""
    await add_session(cleared_postgres)
    async with Somewhere(by("asyncpg", cleared_postgres), create_tables=True).open() as store:
        with somebody(cleared_postgres) as popping:
            popping.execute("SELECT 1 FROM agent_sessions FOR UPDATE")
            erasing = asyncio.create_task(store.erase_user("ann"))
            await until_somebody_waits(cleared_postgres, erasing)
            popping.execute("DELETE FROM agent_messages")
        assert (await erasing).counts["sessions"] == 1


@in_event_loop
async def test_whoever_erases_a_user_has_the_turns_of_chats_before_sessions(cleared_postgres: str) -> None:
    """As who undoes a turn: the turn, and then the session."""
    await add_session(cleared_postgres)
    async with Somewhere(by("asyncpg", cleared_postgres), create_tables=True).open() as store:
        await store.record_conversation(AGENT, "ann", said("hello"), conversation_id="c")
        sql(cleared_postgres, "CREATE TABLE turns (id VARCHAR REFERENCES conversations ON DELETE CASCADE)")
        try:
            sql(cleared_postgres, "INSERT INTO turns VALUES ('c')")
            with somebody(cleared_postgres) as undoing:
                undoing.execute("SELECT 1 FROM turns FOR UPDATE")
                erasing = asyncio.create_task(store.erase_user("ann"))
                await until_somebody_waits(cleared_postgres, erasing)
                undoing.execute("SELECT 1 FROM agent_sessions FOR UPDATE")
            assert (await erasing).counts["turns"] == 1
        finally:
            sql(cleared_postgres, "DROP TABLE turns")


@in_event_loop
async def test_whoever_retries_a_run_has_the_memory_before_it(cleared_postgres: str) -> None:
    """As who deletes a memory: the memory, and then its runs."""
    async with Somewhere(by("asyncpg", cleared_postgres), create_tables=True).open() as store:
        await store.record_conversation(AGENT, "ann", said("hello"), conversation_id="c")
        sql(cleared_postgres, "UPDATE memory_runs SET status = 'failed', is_open = 0")
        sql(cleared_postgres, "DELETE FROM memory_queue")
        (run,) = await store.list_runs_of("c")
        with somebody(cleared_postgres) as deleting:
            deleting.execute("SELECT 1 FROM memories FOR UPDATE")
            retrying = asyncio.create_task(store.retry_run(run.run_id))
            await until_somebody_waits(cleared_postgres, retrying)
            deleting.execute("DELETE FROM memory_runs")
            deleting.rollback()
        await retrying
        assert [run.status for run in await store.list_runs_of("c")] == ["pending"]


@in_event_loop
async def test_what_is_erased_is_not_written_back_by_who_rewrites_the_session(cleared_postgres: str) -> None:
    async with Somewhere(by("asyncpg", cleared_postgres), create_tables=True).open() as store:
        await add_session(cleared_postgres)
        conversation = await store.record_conversation(AGENT, "ann", said("hello"), conversation_id="s")
        (message,) = conversation.messages
        with somebody(cleared_postgres) as rewriting:
            rewriting.execute("SELECT 1 FROM agent_sessions FOR UPDATE")
            (items,) = rewriting.execute("SELECT message_data FROM agent_messages").fetchall()
            erasing = asyncio.create_task(store.erase_message("s", message.message_id))
            await until_somebody_waits(cleared_postgres, erasing)
            rewriting.execute("DELETE FROM agent_messages")
            rewriting.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('s', %s)", items)
        await erasing
    ((left,),) = sql(cleared_postgres, "SELECT message_data FROM agent_messages")
    assert "hello" not in left


@in_event_loop
async def test_whoever_makes_missing_indexes_has_one_table_at_a_time(cleared_postgres: str) -> None:
    """As a worker: a stage of a run is written, and then the run."""
    somewhere = Somewhere(by("asyncpg", cleared_postgres), create_tables=True)
    async with somewhere.open() as store:
        await store.record_conversation(AGENT, "ann", said("hello"))
    for table in ("memory_runs", "memory_run_stages"):
        ours = f"SELECT indexname FROM pg_indexes WHERE tablename = '{table}' AND indexname LIKE 'recollect%'"
        sql(cleared_postgres, f'DROP INDEX "{sql(cleared_postgres, ours)[0][0]}"')
    async with somewhere.open() as store:
        with somebody(cleared_postgres) as working:
            working.execute("LOCK TABLE memory_run_stages IN ROW EXCLUSIVE MODE")
            making = asyncio.create_task(store.coverage())
            await until_somebody_waits(cleared_postgres, making)
            working.execute("UPDATE memory_runs SET attempts = attempts")
        await making
