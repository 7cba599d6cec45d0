"""A SQLite file of every released schema opens, migrates and reads whole, also after a kill."""

import random
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recollect.memory.store import MemoryStore
from recollect.migrations import known_revisions
from recollect.sql.sqlite.registry import close_all
from recollect.testing.contract import in_event_loop

from ..account import Account, Plan
from . import contents
from .backups import Backups, recording
from .campaign import run
from .checks import shape_of_new_file, wrong_with_file
from .kept import migrate_file, rows_in_file, unpack
from .killed import KilledFiles, note_kill
from .killer import Killer
from .killing import silent_ending
from .releases import FOLDER, ON_SERVERS, RELEASES, Release

pytestmark = pytest.mark.timeout(600)  # longer than anybody here waits for anything
SEED = 20261116
LEARNED_FROM = [release for release in RELEASES if "memory" in release.features]
MOST_BYTES = 60_000  # of a release, on average


@pytest.fixture(autouse=True)
def _files_are_closed() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture
def account() -> Account:
    return Account("upgrades", "test", seeds=[SEED])


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
@in_event_loop
async def test_a_file_of_a_release_becomes_as_a_new_one_and_reads_whole(
    release: Release, tmp_path: Path
) -> None:
    path = unpack(release, tmp_path)
    before = rows_in_file(path)
    await migrate_file(path)
    assert await wrong_with_file(release, path, before, await shape_of_new_file(tmp_path)) == []


@pytest.mark.parametrize("release", LEARNED_FROM, ids=lambda release: release.name)
@in_event_loop
async def test_what_waited_at_the_upgrade_is_learned_from_then(release: Release, tmp_path: Path) -> None:
    async with MemoryStore(unpack(release, tmp_path), workers=1, embedder=None) as store:
        store.start()
        await store.drain(60)
        memory = await store.get_memory(contents.AGENT, "later")
        assert memory is not None
        assert any("Oslo" in text for text in memory.profile_content)


@in_event_loop
async def test_a_batch_that_the_first_files_remember_is_not_added_again_and_grows_old(
    tmp_path: Path,
) -> None:
    path = unpack(RELEASES[0], tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        # A batch is remembered for a day, and the kept file is older than that.
        connection.execute("UPDATE recollect_agent_messages_batches SET created_at = CURRENT_TIMESTAMP")
    async with contents.open_session(path, "plain") as session:
        assert not await session.add_batch([{"role": "user", "content": "once"}], "batch-1")
    times = [row["created_at"] for row in rows_in_file(path)["recollect_agent_messages_batches"]]
    assert {type(time) for time in times} == {float}


def test_what_is_kept_is_small_and_all_of_it_is_used() -> None:
    named = {file for release in RELEASES for file in (release.file, release.manifest_file("sqlite"))}
    named |= {file for release in ON_SERVERS for file in (release.dump, release.manifest_file("postgres"))}
    assert set(FOLDER.iterdir()) == named
    assert sum(file.stat().st_size for file in named) < MOST_BYTES * len(RELEASES)


def test_what_is_kept_is_at_most_one_revision_behind() -> None:
    behind = known_revisions().index(RELEASES[-1].revision or "")
    assert behind <= 1, "a schema that is on main is not kept: see releases.py for how it is made"


def test_only_a_kill_is_taken_for_one() -> None:
    assert silent_ending(-signal.SIGKILL) == {"ended": "killed"}
    assert [silent_ending(code)["ended"] for code in (0, 1, -signal.SIGSEGV)] == ["died"] * 3


def test_a_migration_that_fails_after_a_kill_is_found(account: Account) -> None:
    for ended in ("killed", "finished", "failed", "died"):
        note_kill(account, RELEASES[0], {"ended": ended}, ["killed at 3", f"{ended} at 4"])
    assert account.faults.total() == 1
    assert [finding.partition(":")[0] for finding in account.findings] == [
        f"{RELEASES[0].name}, killed at 3, {ended} at 4" for ended in ("failed", "died")
    ]


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place elsewhere"):
        run(Plan(SEED, 1, 1, "elsewhere"))


def test_a_file_whose_migration_was_killed_is_whole_and_migrates(account: Account) -> None:
    choices = random.Random(SEED)
    with Killer() as killer, KilledFiles(killer, account) as killed:
        for release in RELEASES:
            killed.kill(release, choices)
        killed.migrate_together(RELEASES[0])
    assert account.findings == []
    assert account.faults.total() >= len(RELEASES)


def test_a_copy_of_a_file_that_is_written_to(tmp_path: Path, account: Account) -> None:
    Backups(account, 60, recording).of_file(tmp_path)
    assert account.findings == []
