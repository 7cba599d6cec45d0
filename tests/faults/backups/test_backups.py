"""A backup that is made while others write holds whole conversations, of one moment."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.sql.sqlite.registry import close_all
from recollect.testing.servers.postgres import PostgresServer

from .backups import Backups, recording

pytestmark = pytest.mark.timeout(600)  # longer than anybody here waits for anything


@pytest.fixture(autouse=True)
def _files_are_closed() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server whose data folder can be copied."""
    with PostgresServer() as server:
        yield server


def test_a_copy_of_a_file_that_is_written_to(tmp_path: Path) -> None:
    backups = Backups(60, recording)
    backups.of_file(tmp_path)
    assert (backups.made, backups.findings) == (1, [])


def test_a_dump_and_a_base_backup_of_a_server_that_is_used(server: PostgresServer, tmp_path: Path) -> None:
    backups = Backups(30, recording)
    backups.by_dump(server.url, tmp_path)
    backups.by_base_backup(server)
    assert (backups.made, backups.findings) == (2, [])
