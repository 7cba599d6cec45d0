"""The database becomes unavailable during a run: the run finishes afterwards, once."""

import asyncio
from collections.abc import Iterator

import pytest

from recollect.errors import StorageError
from recollect.memory.pipeline.stages import STAGES, Stage
from recollect.memory.run import Coverage
from recollect.testing.contract import in_event_loop
from recollect.testing.servers.postgres import PostgresServer

from ...sessions.postgres.database import by, sql
from ..databases import Place
from .kit import LONGEST, SHORT_LEASE, known_texts, record, run_of, working

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def running_server() -> Iterator[PostgresServer]:
    """A server of our own: others would not like it to be restarted."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def server(running_server: PostgresServer) -> PostgresServer:
    sql(running_server.url, "DROP SCHEMA public CASCADE")
    sql(running_server.url, "CREATE SCHEMA public")
    return running_server


@pytest.mark.parametrize(("driver", "end"), [("asyncpg", "kill"), ("psycopg", "stop")])
@pytest.mark.parametrize("stage", STAGES)
@in_event_loop
async def test_a_database_that_is_restarted_while_a_model_thinks(
    server: PostgresServer, driver: str, end: str, stage: Stage
) -> None:
    place = Place(by(driver, server.url), create_tables=True)
    async with working(place, options=SHORT_LEASE) as (store, extractor):
        hold = extractor.hold(stage)
        conversation = await record(store, "I went to the zoo")
        await hold.wait()
        await asyncio.to_thread(getattr(server, end))
        hold.go.set()  # the answer comes while there is no database
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.start)
        assert await store.drain(LONGEST) == Coverage(remembered=1)
        assert [call.stage for call in extractor.calls] == list(STAGES), "no call was repeated"
        run = await run_of(store, conversation)
        assert (run.status, run.failures) == ("done", ())
        assert await known_texts(store) == ["I went to the zoo"]


@in_event_loop
async def test_a_database_that_is_restarted_under_load(server: PostgresServer) -> None:
    place = Place(server.url, create_tables=True)
    async with working(place, options=SHORT_LEASE, workers=3) as (store, extractor):
        recorded = []
        for number in range(24):
            if number == 12:
                restarting = asyncio.create_task(asyncio.to_thread(_restart, server))
            try:
                recorded.append(await record(store, f"I bought {number} apples", f"u{number % 3}"))
            except StorageError:  # whether it is stored is not known
                await asyncio.sleep(0.05)
        await restarting
        coverage = await store.drain(LONGEST)
        assert (coverage.pending, coverage.failed) == (0, 0)
        assert coverage.remembered >= len(recorded)
        for user in ("u0", "u1", "u2"):
            events = await known_texts(store, user)
            assert len(events) == len(set(events))
        assert {(await run_of(store, each)).status for each in recorded} == {"done"}
        assert len(extractor.calls) >= 3 * coverage.remembered


def _restart(server: PostgresServer) -> None:
    server.kill()
    server.start()
