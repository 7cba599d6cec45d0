"""A PostgreSQL server without pgvector, as Debian's package `postgresql` installs it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect import MemoryStore, MissingExtensionError, SessionManager, SQLAlchemySession
from recollect.cli.doctor.servers import check_server
from recollect.migrations import migrate
from recollect.testing.contract import in_event_loop, message, texts
from recollect.testing.servers.postgres import PostgresServer

from ..sessions.postgres.database import sql

pytestmark = pytest.mark.proof

NEEDS = r"needs the extension pgvector.*apt-get install postgresql-\d+-pgvector"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    assert found, "apt-get install postgresql"
    with PostgresServer(binaries=found[-1].parent) as server:
        yield server


def tables_of(url: str) -> list[str]:
    return [name for (name,) in sql(url, "SELECT relname FROM pg_class WHERE relname ~ '^(agent|mem|rec)'")]


@in_event_loop
async def test_migrating_says_what_to_install_and_creates_nothing(server: PostgresServer) -> None:
    with pytest.raises(MissingExtensionError, match=NEEDS):
        await migrate(server.url)
    assert tables_of(server.url) == []


def test_the_command_says_it_in_one_line(server: PostgresServer) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "recollect", "migrate"],
        env={**os.environ, "RECOLLECT_URL": server.url}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert "needs the extension pgvector" in ended.stderr


@in_event_loop
async def test_a_store_says_what_to_install_and_creates_nothing(server: PostgresServer) -> None:
    async with MemoryStore(server.url, create_tables=True, embedder=None) as store:
        with pytest.raises(MissingExtensionError, match=NEEDS):
            await store.record_conversation("assistant", "ada", [{"role": "user", "content": "hello"}])
    assert tables_of(server.url) == []


@in_event_loop
async def test_the_doctor_names_the_extension(server: PostgresServer) -> None:
    (found,) = await check_server(server.url)
    assert found.state == "wrong"
    assert "no extension pgvector" in found.found
    assert "install pgvector" in found.fix


@in_event_loop
async def test_sessions_do_not_need_it(server: PostgresServer) -> None:
    sql(server.url, "CREATE DATABASE sessions")
    url = f"{server.url.rpartition('/')[0]}/sessions"
    async with SQLAlchemySession.from_url("one", url=url, create_tables=True) as session:
        await session.add_items([message("hello")])
        assert texts(await session.get_items()) == ["hello"]
    manager = SessionManager(url)
    assert [info.session_id for info in (await manager.list_sessions()).sessions] == ["one"]
    manager.close()
