"""A PostgreSQL of every released schema migrates and reads whole, also after a kill; its backups too."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.migrations import migrate, newest_revision
from recollect.testing.contract import in_event_loop
from recollect.testing.servers.postgres import PostgresServer

from ..account import Account
from .backups import Backups, recording
from .checks import shape_of_new_database, wrong_with_database
from .kept import restored, rows_in_database
from .killed import KilledServers
from .killer import Killer
from .releases import ON_SERVERS

pytestmark = pytest.mark.timeout(600)  # longer than anybody here waits for anything
SEED = 20261116


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """One of our own, which is killed."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def account() -> Account:
    return Account("upgrades", "test", seeds=[SEED])


@in_event_loop
async def test_a_server_of_a_release_becomes_as_a_new_one_and_reads_whole(server: PostgresServer) -> None:
    shape = await shape_of_new_database(server.url)
    for release in ON_SERVERS:
        with restored(release, server.url) as url:
            before = rows_in_database(url)
            assert await migrate(url) == (release.revision, newest_revision())
            assert await wrong_with_database(release, url, before, shape) == [], release.name


def test_a_database_whose_migration_lost_its_process_or_its_server_is_whole_and_migrates(
    server: PostgresServer, account: Account
) -> None:
    choices = random.Random(SEED)
    with Killer() as killer:
        killed = KilledServers(killer, account, server)
        killed.kill_client(ON_SERVERS[1], choices)
        killed.kill_server(ON_SERVERS[1], choices)
    assert account.findings == []
    assert account.faults.total() == 2


def test_a_dump_and_a_base_backup_of_a_server_that_is_used(
    server: PostgresServer, tmp_path: Path, account: Account
) -> None:
    backups = Backups(account, 30, recording)
    backups.by_dump(server.url, tmp_path)
    backups.by_base_backup(server)
    assert account.findings == []
    assert account.operations["backups"] == 2
