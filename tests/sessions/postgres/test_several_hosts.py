"""URLs of several hosts: a primary and a standby, and what happens when the primary dies and comes back."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from recollect import SQLAlchemySession
from recollect.errors import StorageError, UnreachableError
from recollect.sql.sqlalchemy.registry import parse_url
from recollect.sql.urls import name_hosts
from recollect.testing.contract import in_event_loop
from recollect.testing.servers.postgres import PostgresServer

DRIVERS = ("asyncpg", "psycopg")
NOBODY = "127.0.0.1:1"  # where nothing listens


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


def url_of(driver: str, *hosts: str) -> str:
    return f"postgresql+{driver}://postgres@{','.join(hosts)}/postgres"


def host_of(server: PostgresServer) -> str:
    return f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("given", "rewritten"),
    [
        ("postgresql://a/name", "postgresql://a/name"),
        ("recollect,old.db", "recollect,old.db"),
        (
            "postgresql://me:p,w@a:1,b/name?x=1",
            "postgresql://me:p,w@/name?host=a:1&host=b&target_session_attrs=read-write&x=1",
        ),
        (
            "postgresql+asyncpg://a,b/name?target_session_attrs=any",
            "postgresql+asyncpg:///name?host=a&host=b&target_session_attrs=any",
        ),
    ],
)
def test_the_form_of_libpq_is_rewritten(given: str, rewritten: str) -> None:
    assert name_hosts(given) == rewritten


@pytest.mark.parametrize("driver", DRIVERS)
def test_both_drivers_get_all_hosts(driver: str) -> None:
    url = parse_url(url_of(driver, "a:1", "b:2"))
    assert url.query["host"] == ("a:1", "b:2")


@pytest.mark.parametrize("driver", DRIVERS)
@in_event_loop
async def test_a_dead_host_is_skipped(primary: PostgresServer, driver: str) -> None:
    url = url_of(driver, NOBODY, host_of(primary))
    async with SQLAlchemySession.from_url("skipped", url=url, create_tables=True) as session:
        await session.add_items([{"role": "user", "content": driver}])
        assert (await session.get_items())[-1]["content"] == driver


@pytest.mark.parametrize("driver", DRIVERS)
@in_event_loop
async def test_hosts_that_are_all_dead_are_named_unreachable(driver: str) -> None:
    async with SQLAlchemySession.from_url("s", url=url_of(driver, NOBODY, "127.0.0.1:2")) as session:
        with pytest.raises(UnreachableError, match="no connection can be made"):
            await session.get_items()


@pytest.mark.parametrize("driver", ["asyncpg", pytest.param("psycopg", marks=pytest.mark.proof)])
@in_event_loop
async def test_after_a_fail_over_the_new_primary_is_used_and_the_old_one_refused(driver: str) -> None:
    with ExitStack() as servers:
        first = servers.enter_context(PostgresServer())
        second = servers.enter_context(first.standby())
        url = url_of(driver, host_of(first), host_of(second))
        async with SQLAlchemySession.from_url("s", url=url, create_tables=True) as session:
            await session.add_items([{"role": "user", "content": "before"}])
            only_standby = SQLAlchemySession.from_url("s", url=url_of(driver, NOBODY, host_of(second)))
            with pytest.raises(UnreachableError, match="no host accepts writes"):
                await only_standby.get_items()
            await only_standby.aclose()
            first.kill()
            with pytest.raises(StorageError):
                await session.add_items([{"role": "user", "content": "lost"}])
            second.promote()
            await session.add_items([{"role": "user", "content": "after"}])
            # The old primary comes back first in the list, and would accept writes.
            second.stop()
            first.start()
            with pytest.raises(UnreachableError, match="old primary"):
                await session.add_items([{"role": "user", "content": "to the old one"}])
            second.start()
            said = [item["content"] for item in await session.get_items()]
        assert said == ["before", "after"]
        # A process that starts now asks all hosts, and takes the newer timeline.
        other_engine = {"pool_size": 2}
        async with SQLAlchemySession.from_url("s", url=url, engine_kwargs=other_engine) as session:
            assert [item["content"] for item in await session.get_items()] == ["before", "after"]
