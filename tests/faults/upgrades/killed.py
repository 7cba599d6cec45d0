"""Migrations that are killed and run again, on databases of every release."""

import asyncio
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from recollect.testing.servers.postgres import PostgresServer

from ...sessions.postgres.database import sql
from ..account import Account
from .checks import shape_of_new_database, shape_of_new_file, wrong_with_database, wrong_with_file
from .kept import restored, rows_in_database, rows_in_file, unpack
from .killer import Killer
from .releases import Release

_AT_ONCE = 4
_TOLD_OF = {
    "UnreachableError",
    "StorageError",
    "ConnectionLostError",
}  # a server that went away is told as such


class KilledFiles:
    """Kills migrations of SQLite files."""

    def __init__(self, killer: Killer, account: Account) -> None:
        self._killer = killer
        self._account = account
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-upgrades-"))
        self._shape: dict[str, Any] = asyncio.run(shape_of_new_file(self._folder))
        self._calls: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        shutil.rmtree(self._folder)

    def kill(self, release: Release, choices: random.Random) -> None:
        """Kill a migration once or more at calls of SQLite, then let one end, and look."""
        with self._file_of(release) as path:
            before = rows_in_file(path)
            told: list[str] = []
            for _ in range(choices.choice((1, 1, 2))):
                at = choices.randint(1, self._calls_for(release))
                ended = self._killer.migrate(path, at=at)
                told.append(f"{ended['ended']} at {at}")
                note_kill(self._account, release, ended, told)
            self._finish(release, path, before, told)

    def kill_at_some_time(self, release: Release, choices: random.Random) -> None:
        """Kill a migration wherever it is after a while, also within a call of SQLite."""
        with self._file_of(release) as path:
            before, after = rows_in_file(path), choices.uniform(0, 0.1)
            ended = self._killer.migrate(path, after=after)
            told = [f"{ended['ended']} after {after:.4f} s"]
            note_kill(self._account, release, ended, told)
            self._finish(release, path, before, told)

    def migrate_together(self, release: Release) -> None:
        """Let several processes open the same file at once."""
        with self._file_of(release) as path:
            before = rows_in_file(path)
            ended = self._killer.migrate_together(path, _AT_ONCE)
            self._look(release, path, before, ended, "together")

    def _finish(self, release: Release, path: str, before: Any, told: Sequence[str]) -> None:
        self._look(release, path, before, [self._killer.migrate(path)], ", ".join(told))

    def _look(self, release: Release, path: str, before: Any, ended: Sequence[Any], told: str) -> None:
        wrong = _not_finished(ended)
        wrong += asyncio.run(wrong_with_file(release, path, before, self._shape))
        _note(self._account, release, len(ended), told, wrong)

    def _calls_for(self, release: Release) -> int:
        if release.name not in self._calls:
            with self._file_of(release) as path:
                self._calls[release.name] = self._killer.migrate(path)["statements"]
        return self._calls[release.name]

    @contextmanager
    def _file_of(self, release: Release) -> Iterator[str]:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        yield unpack(release, folder)
        shutil.rmtree(folder)


class KilledServers:
    """Kills migrations of a PostgreSQL, on the side of the client and on that of the server."""

    def __init__(self, killer: Killer, account: Account, server: PostgresServer) -> None:
        self._killer = killer
        self._account = account
        self._url = url = server.url
        self._server = server
        self._statements: dict[str, int] = {}
        self._shape = asyncio.run(shape_of_new_database(url))

    def kill_client(self, release: Release, choices: random.Random) -> None:
        """Kill the process that migrates before one of its statements, then let one end, and look."""
        at = choices.randint(1, self._statements_for(release))
        with restored(release, self._url) as url:
            before = rows_in_database(url)
            ended = self._killer.migrate(url, at=at)
            told = f"{ended['ended']} at {at}"
            note_kill(self._account, release, ended, [told])
            self._finish(release, url, before, told)

    def kill_server(self, release: Release, choices: random.Random) -> None:
        """Kill the server before a statement of a migration; who migrates is told, and can do it again."""
        at = choices.randint(1, self._statements_for(release))
        with restored(release, self._url) as url:
            before = rows_in_database(url)
            ended = self._killer.migrate_with_pause(url, at, self._restart)
            self._account.faults["kill -9 of PostgreSQL in a migration"] += 1
            if ended["ended"] != "failed" or ended["error"] not in _TOLD_OF:
                _note(self._account, release, 0, f"server killed at {at}", [f"it ended as {ended}"])
            self._finish(release, url, before, f"server killed at {at}")

    def migrate_together(self, release: Release) -> None:
        """Let several processes migrate the same database at once."""
        with restored(release, self._url) as url:
            before = rows_in_database(url)
            ended = self._killer.migrate_together(url, _AT_ONCE)
            self._look(release, url, before, ended, "together")

    def _restart(self) -> None:
        self._server.kill()
        self._server.start()

    def _finish(self, release: Release, url: str, before: Any, told: str) -> None:
        self._look(release, url, before, [self._killer.migrate(url)], told)

    def _look(self, release: Release, url: str, before: Any, ended: Sequence[Any], told: str) -> None:
        wrong = _not_finished(ended)
        wrong += asyncio.run(wrong_with_database(release, url, before, self._shape))
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
        wrong += [] if sql(url, held) == [(0,)] else ["a lock is still held"]
        _note(self._account, release, len(ended), told, wrong)

    def _statements_for(self, release: Release) -> int:
        if release.name not in self._statements:
            with restored(release, self._url) as url:
                self._statements[release.name] = self._killer.migrate(url)["statements"]
        return self._statements[release.name]


def _not_finished(ended: Sequence[Any]) -> list[str]:
    return [f"it ended as {each}" for each in ended if each["ended"] != "finished"]


def note_kill(account: Account, release: Release, ended: dict[str, Any], told: Sequence[str]) -> None:
    """Enter a kill. It may come too late; but whatever was killed before, a migration does not fail."""
    if ended["ended"] == "killed":
        account.faults["kill -9 of a migration"] += 1
    elif ended["ended"] != "finished":
        _note(account, release, 0, ", ".join(told), [f"it ended as {ended}"])


def _note(account: Account, release: Release, migrations: int, told: str, wrong: Sequence[str]) -> None:
    account.operations["migrations"] += migrations
    account.findings += [f"{release.name}, {told}: {each}" for each in wrong]
