"""Processes on PostgreSQL announce work to each other. Without announcements, workers poll."""

import asyncio
from collections.abc import Callable

import pytest

from recollect.memory.pipeline import announcements, workers
from recollect.memory.pipeline.workers import Workers
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql
from ..databases import Place
from .kit import LONGEST, record, when, working


@pytest.fixture(params=["asyncpg", "psycopg"])
def server(request: pytest.FixtureRequest, empty_postgres: str) -> Place:
    from ...sessions.postgres.database import by

    return Place(by(request.param, empty_postgres))


def workers_of(store: MemoryStore) -> Workers:
    found = store._shared._workers
    assert found is not None
    return found


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONGEST):
        while not is_so():  # noqa: ASYNC110 - it happens in another thread
            await asyncio.sleep(0.01)


@in_event_loop
async def test_workers_hear_of_work_without_polling(server: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_LONGEST_WAIT_IF_TOLD", 3600.0)
    async with working(server) as (learner, _), server.open() as recorder:
        learner.start()
        await until(lambda: workers_of(learner)._hearing.is_reliable)
        for number in range(3):
            conversation = await record(recorder, "I went to the zoo", f"user {number}")
            await when(recorder, conversation, status="done")
        waiting = await recorder.open_conversation("agent", "quiet")
        await recorder.append_messages(
            waiting.conversation_id, [{"role": "user", "content": "I went home"}], learn_after=0.2
        )
        await until_learned(recorder, waiting.conversation_id)


async def until_learned(store: MemoryStore, conversation_id: str) -> None:
    async with asyncio.timeout(LONGEST):
        while [run.status for run in await store.list_runs_of(conversation_id)] != ["done"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@in_event_loop
async def test_what_a_process_adds_before_it_ends_is_announced(
    server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_LONGEST_WAIT_IF_TOLD", 3600.0)
    async with working(server) as (learner, _):
        learner.start()
        await until(lambda: workers_of(learner)._hearing.is_reliable)
        async with server.open() as recorder:
            for number in range(5):  # faster than announcements may follow each other
                conversation = await record(recorder, "I went to the zoo", f"user {number}")
        await when(learner, conversation, status="done")


@in_event_loop
async def test_a_lost_connection_is_opened_again(server: Place, empty_postgres: str) -> None:
    async with working(server) as (learner, _), server.open() as recorder:
        learner.start()
        await until(lambda: workers_of(learner)._hearing.is_reliable)
        sql(
            empty_postgres,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'",
        )
        await until(lambda: not workers_of(learner)._hearing.is_reliable)
        await until(lambda: workers_of(learner)._hearing.is_reliable)
        await when(recorder, await record(recorder, "I went to the zoo"), status="done")


@in_event_loop
async def test_behind_a_pool_that_passes_no_announcements_workers_poll(
    server: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "_ANNOUNCE", "SELECT 1")
    monkeypatch.setattr(announcements, "_HEARING_SECONDS", 0.1)
    async with working(server) as (learner, _), server.open() as recorder:
        learner.start()
        await asyncio.sleep(0.5)
        assert not workers_of(learner)._hearing.is_reliable
        await when(recorder, await record(recorder, "I went to the zoo"), status="done")


@in_event_loop
async def test_a_file_needs_no_announcements(file_place: Place) -> None:
    async with working(file_place) as (learner, _), file_place.open() as recorder:
        learner.start()
        await when(recorder, await record(recorder, "I went to the zoo"), status="done")
        assert not workers_of(learner)._hearing.is_reliable
