"""`recollect restore`, and `recollect backup` to a path where another file has left its log."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ..sessions.sqlite.test_processes import open_files, wait_until
from .conftest import Ended, learn, run_process

_WRITER = """
import asyncio, sys
from recollect.memory.store import MemoryStore

async def main():
    async with MemoryStore(sys.argv[1], workers=0, embedder=None) as store:
        for number in range(30):
            await store.record_conversation("assistant", "ada", [{"role": "user", "content": f"{number}"}])
        print("ready", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


@contextmanager
def writing(path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that has written to a database and still has it open."""
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()


def crash_on(path: Path) -> None:
    """Leave a database and its log as `kill -9` does."""
    with writing(path):
        pass
    assert Path(f"{path}-wal").stat().st_size > 0


@pytest.fixture
def backup(folder: Path) -> Path:
    """A backup with one memory, of the database `source.db`."""
    learn("source.db")
    assert wait_until(lambda: not open_files(folder / "source.db"))
    assert run_process("backup", "backup.db", "--url", "source.db").code == 0
    return folder / "backup.db"


def conversations(path: Path) -> list[str]:
    """The ids of the conversations that a process finds in a file, which a command can open."""
    assert run_process("memory", "list", "--url", str(path)).code == 0
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT conversation_id FROM conversations ORDER BY 1")]


def is_whole(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def restore(*arguments: str | Path) -> Ended:
    return run_process("restore", *map(str, arguments))


def test_restore_after_a_crash_gives_the_backup_and_keeps_the_old_file_with_its_log(
    folder: Path, backup: Path
) -> None:
    crash_on(folder / "recollect.db")
    ended = restore(backup, "--json")
    assert (ended.code, ended.told) == (0, "")
    assert ended.json["file"] == "recollect.db"
    assert ended.json["bytes"] == (folder / "recollect.db").stat().st_size
    assert stat.S_IMODE((folder / "recollect.db").stat().st_mode) == 0o600
    assert not Path(f"{folder / 'recollect.db'}-wal").exists()
    assert not Path(f"{folder / 'recollect.db'}-shm").exists()
    assert conversations(folder / "recollect.db") == conversations(folder / "source.db") != []
    assert is_whole(folder / "recollect.db")
    kept = Path(ended.json["kept"])
    assert kept.name.startswith("recollect.db.before-restore-")
    assert len(conversations(kept)) == 30, "also what was in its log"
    assert backup.exists()


def test_restore_where_there_is_no_database(folder: Path, backup: Path) -> None:
    ended = restore(backup, "--url", "new/other.db", "--json")
    assert (ended.code, ended.json["kept"]) == (0, None)
    assert conversations(folder / "new/other.db") == conversations(folder / "source.db")


def test_restore_keeps_a_log_whose_file_is_gone(folder: Path, backup: Path) -> None:
    crash_on(folder / "recollect.db")
    (folder / "recollect.db").unlink()
    ended = restore(backup, "--json")
    assert Path(f"{ended.json['kept']}-wal").stat().st_size > 0
    assert conversations(folder / "recollect.db") == conversations(folder / "source.db")


def test_restore_refuses_while_a_process_uses_the_file(folder: Path, backup: Path) -> None:
    database = folder / "recollect.db"
    with writing(database):
        before = database.stat()
        refused = restore(backup)
        assert refused.code == 1
        assert "recollect.db is in use: stop the service" in refused.told
        assert database.stat().st_ino == before.st_ino
        assert sorted(os.listdir(folder)) == [
            "backup.db",
            "recollect.db",
            "recollect.db-shm",
            "recollect.db-wal",
            "source.db",
        ]
        assert len(conversations(database)) == 30


@pytest.mark.parametrize("kind", ["text", "foreign", "newer", "damaged", "missing", "itself"])
def test_restore_refuses_what_is_no_good_backup_and_changes_nothing(
    folder: Path, backup: Path, kind: str
) -> None:
    database = folder / "recollect.db"
    learn(database)
    assert wait_until(lambda: not open_files(database))
    content = database.read_bytes()
    given, reason = make_bad(kind, backup, database)
    names = sorted(os.listdir(folder))
    refused = restore(given)
    assert refused.code != 0
    assert reason in refused.told
    assert database.read_bytes() == content
    assert sorted(os.listdir(folder)) == names


def make_bad(kind: str, backup: Path, database: Path) -> tuple[Path, str]:
    bad = backup.with_name("bad.db")
    if kind == "itself":
        return database, "is the database itself"
    if kind == "missing":
        return bad, "bad.db"
    if kind == "text":
        bad.write_text("This is no database. " * 500)
        return bad, "cannot be copied: file is not a database"
    if kind == "foreign":
        with closing(sqlite3.connect(bad)) as connection:
            connection.execute("CREATE TABLE t (a)")
        return bad, "is not a database of Recollect"
    bad.write_bytes(backup.read_bytes())
    with closing(sqlite3.connect(bad, isolation_level=None)) as connection:
        if kind == "newer":
            connection.execute("INSERT INTO recollect_migrations (scope, step) VALUES ('memory', '9999')")
            return bad, "was written by a newer version of Recollect (9999)"
        ((page,),) = connection.execute("SELECT max(rootpage) FROM sqlite_master WHERE type = 'index'")
    damaged = bytearray(bad.read_bytes())
    damaged[(page - 1) * 4096 : page * 4096] = bytes(4096)
    bad.write_bytes(damaged)
    return bad, "malformed"


def test_restore_over_what_an_interrupted_restore_has_left(folder: Path, backup: Path) -> None:
    """The new file is in place, and the log of the old one still beside it."""
    database = folder / "recollect.db"
    crash_on(database)
    database.write_bytes(backup.read_bytes())
    refused = run_process("memory", "show", "--user", "ada")
    assert refused.code == 1
    assert "recollect restore BACKUP" in refused.told
    assert restore(backup).code == 0
    assert conversations(database) == conversations(folder / "source.db")


def test_restore_of_a_server_names_the_tool(backup: Path) -> None:
    refused = restore(backup, "--url", "postgresql://ada@db/memory")
    assert (refused.code, "pg_restore" in refused.told) == (1, True)


def test_backup_over_a_file_with_a_stale_log_holds_what_the_database_holds(
    folder: Path, backup: Path
) -> None:
    crash_on(folder / "old.db")
    assert run_process("backup", "old.db", "--force", "--url", "source.db").code == 0
    assert not (folder / "old.db-wal").exists()
    assert conversations(folder / "old.db") == conversations(backup)
    assert is_whole(folder / "old.db")


def test_backup_refuses_to_overwrite_a_database_in_use(folder: Path, backup: Path) -> None:
    with writing(folder / "used.db"):
        refused = run_process("backup", "used.db", "--force", "--url", str(backup))
        assert (refused.code, "used.db is in use" in refused.told) == (1, True)
    itself = run_process("backup", "source.db", "--force", "--url", "source.db")
    assert (itself.code, "is the database itself" in itself.told) == (1, True)
