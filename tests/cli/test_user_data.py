"""`recollect export`, `import` and `erase`."""

import asyncio
import json
import stat
from pathlib import Path

import pytest

from recollect import SessionMetadata, SQLiteSession, export_session

from .conftest import Run, learn


@pytest.fixture
def known(folder: Path) -> None:
    async def keep_session() -> None:
        async with SQLiteSession("s", folder / "recollect.db") as session:
            await session.add_items([{"role": "user", "content": "kept"}])
            await session.set_metadata(SessionMetadata(user_id="ada"))

    learn()
    asyncio.run(keep_session())


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "document"])
def test_an_export_comes_back_into_another_database(run: Run, folder: Path, options: list[str]) -> None:
    exported = run("export", "--user", "ada", "--output", "there/ada.out", *options)
    assert (exported.code, exported.out) == (0, "")
    assert "records to there/ada.out" in exported.told
    file = folder / "there" / "ada.out"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["ada.out"]
    imported = run("import", str(file), "--url", "new.db", "--json")
    added = imported.json if options else imported.json["added"]
    assert (added["conversations"], added["messages"]) == (1, 2)
    if options:
        assert "not imported (exported for reading only): 1 sessions" in imported.told
    shown = ("memory", "show", "--user", "ada", "--json")
    assert run(*shown).json == run(*shown, "--url", "new.db").json != []
    again = run("import", str(file), "--url", "new.db")
    assert again.code == (1 if options else 0)  # a document is imported as a whole, lines one by one
    assert run(*shown).json == run(*shown, "--url", "new.db").json


@pytest.mark.usefixtures("known")
def test_an_export_is_written_to_standard_output_as_lines(run: Run) -> None:
    exported = run("export", "--user", "ada")
    heading, *records = [json.loads(line) for line in exported.out.splitlines()]
    assert heading["user_id"] == "ada"
    kinds = {record["kind"] for record in records}
    assert kinds == {"memories", "entries", "conversations", "runs", "sessions"}


@pytest.mark.usefixtures("known")
def test_of_whom_nothing_is_stored_there_is_little_to_export_and_to_erase(run: Run) -> None:
    exported = run("export", "--user", "nobody", "--json")
    assert (exported.code, exported.json["memories"]) == (0, [])
    assert exported.told == "no data about this user\n"
    erased = run("erase", "--user", "nobody", "--yes")
    assert (erased.code, "no data about this user was stored" in erased.told) == (0, True)


@pytest.mark.usefixtures("known")
def test_erasing_needs_a_yes_and_gives_a_receipt(run: Run, folder: Path) -> None:
    refused = run("erase", "--user", "ada")
    assert (refused.code, "pass --yes" in refused.told) == (2, True)
    assert run("memory", "show", "--user", "ada", "--json").json
    receipt = run("erase", "--user", "ada", "--yes", "--vacuum", "--json").json
    assert list(receipt["remains"]) == ["backups"]
    assert (receipt["counts"]["conversations"], receipt["counts"]["sessions"]) == (1, 1)
    assert "ada" not in json.dumps(receipt)
    assert run("memory", "show", "--user", "ada", "--json").json == []
    assert b"pottery" not in (folder / "recollect.db").read_bytes()


@pytest.mark.usefixtures("known")
def test_erasing_says_where_the_data_remains(run: Run) -> None:
    erased = run("erase", "--user", "ada", "--yes")
    assert "Backups and copies of the database hold the data until they are deleted." in erased.told


def test_sessions_of_the_sdk_move_in_once(run: Run, folder: Path) -> None:
    from agents import SQLiteSession as TheirSession

    async def fill() -> None:
        for name in ("one", "two"):
            session = TheirSession(name, folder / "sdk.db")
            await session.add_items([{"role": "user", "content": name}])
            session.close()

    asyncio.run(fill())
    first = run("import", "sdk.db", "--json").json
    assert (first["sessions"], first["items"], first["sessions_left_alone"]) == (2, 2, 0)
    assert run("import", "sdk.db", "--json").json["sessions_left_alone"] == 2
    assert run("sessions", "show", "two", "--json").json["items"] == [{"role": "user", "content": "two"}]
    itself = run("import", "sdk.db", "--url", "sdk.db")
    assert (itself.code, "into itself" in itself.told) == (1, True)


def test_one_session_is_imported_unless_it_is_there(run: Run, folder: Path) -> None:
    async def export() -> None:
        async with SQLiteSession("talk", folder / "old.db") as session:
            await session.add_items([{"role": "user", "content": "hi"}])
            await export_session(session, folder / "talk.json")

    asyncio.run(export())
    assert run("import", "talk.json", "--json").json == {"sessions": 1, "items": 1}
    again = run("import", "talk.json")
    assert (again.code, "a session with this id already exists" in again.told) == (1, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not JSON, JSON Lines or a SQLite file"),
        (b"\xff\xfe\x00", "is not JSON, JSON Lines or a SQLite file"),
        (b"[1, 2]", "expected a JSON object"),
        (b'{"some": "thing"}', "neither a user export nor a session export"),
        (b'{"format": "recollect.user/9"}\n{"kind": "entries"}\n', "unknown format"),
        (b'{"format": "recollect.user/2", "memories": 5}', "memories must be a list"),
        (b'{"items": []}', "the file has no session_id"),
        (b"[" * 100_000, "is not JSON, JSON Lines or a SQLite file"),
        (b"SQLite format 3\0 and nothing more", "is not a file of the Agents SDK"),
    ],
)
def test_what_is_no_export_is_refused(run: Run, folder: Path, content: bytes, said: str) -> None:
    (folder / "wrong").write_bytes(content)
    ended = run("import", "wrong")
    assert (ended.code, ended.out) == (1, "")
    assert said in ended.told


def test_a_file_that_is_not_there_is_told(run: Run) -> None:
    ended = run("import", "missing.json")
    assert (ended.code, ended.told) == (1, "recollect: missing.json: No such file or directory\n")
