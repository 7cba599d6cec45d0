"""Receipts: proof without anything personal. And the vacuum, which others need not notice."""

import asyncio
import hashlib
import hmac
import logging
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from recollect.memory.rights.receipt import subject_of
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, known, tell
from .people import bytes_of


@in_event_loop
async def test_who_has_the_key_can_tell_whose_receipt_it_is() -> None:
    async with Somewhere(":memory:").open() as store:
        await tell(store, "c1", "home: lives in Ghent", "pet: a tortoise")
        expected = hmac.new(b"secret", b"ann", hashlib.sha256).hexdigest()
        by_message = await store.erase_message("c1", "m0", key="secret")
        by_conversation = await store.erase_conversation("c1", key=b"secret")
        by_user = await store.erase_user("ann", key="secret")
        assert {each.subject for each in (by_message, by_conversation, by_user)} == {expected}
        told = by_user.to_dict()
        assert told["erased_at"].endswith("Z")
        assert told.keys() == {"erased_at", "counts", "subject", "remains"}


@in_event_loop
async def test_without_a_key_it_is_one_that_the_database_keeps() -> None:
    async with Somewhere(":memory:").open() as store, Somewhere(":memory:").open() as other:
        first, second = await store.erase_user("ann"), await store.erase_user("ann")
        assert first.subject == second.subject == await store.receipt_subject("ann")
        assert first.subject != await store.receipt_subject("bob")
        assert first.subject != await other.receipt_subject("ann")
        assert await store.receipt_subject("ann", key="k") == (await store.erase_user("ann", key="k")).subject


@pytest.mark.parametrize(("key", "error"), [("", ValueError), (b"", ValueError), (5, TypeError)])
@in_event_loop
async def test_a_bad_key_is_refused_before_anything_is_erased(key: object, error: type[Exception]) -> None:
    async with Somewhere(":memory:").open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        for erase in (
            store.erase_user("ann", key=key),  # type: ignore[arg-type]
            store.erase_conversation("c1", key=key),  # type: ignore[arg-type]
            store.erase_message("c1", "m0", key=key),  # type: ignore[arg-type]
            store.delete_memory(memory.memory_id, key=key),  # type: ignore[arg-type]
        ):
            with pytest.raises(error):
                await erase
        assert await known(store) == ["lives in Ghent"]


def test_the_subject_is_the_same_for_a_key_as_text_and_as_bytes() -> None:
    assert subject_of("ann", "k") == subject_of("ann", b"k") != subject_of("bob", b"k")


@in_event_loop
async def test_logs_tell_nothing_of_whom_and_what_is_erased(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with Somewhere(":memory:").open() as store:
            await tell(store, "c1", "home: lives in Ghent", user="Annabel")
            await store.erase_message("c1", "m0")
            await store.erase_user("Annabel")
    assert "Annabel" not in caplog.text
    assert "Ghent" not in caplog.text


def hits_in_files(path: Path, word: str) -> dict[str, int]:
    """How often a word is in the bytes of a database, its log and its index.

    Another process reads them: one that closes a file drops the locks that SQLite has on it.
    """
    files = [Path(f"{path}{end}") for end in ("", "-wal", "-shm") if Path(f"{path}{end}").exists()]
    contents = {file.name: subprocess.run(["cat", file], capture_output=True, check=True) for file in files}
    return {name: read.stdout.count(word.encode()) for name, read in contents.items()}


@in_event_loop
async def test_after_the_receipt_no_file_holds_erased_words(tmp_path: Path) -> None:
    """Rows are inserted in turns, so pages are split, and those of the erased user are between others."""
    path = tmp_path / "recollect.db"
    async with Somewhere(str(path)).open() as store:
        for number in range(12):
            for user, word in (("ann", "Xylophonist"), ("bob", "Beekeeper")):
                texts = [
                    f"job {number} {each}: works as {word} {number} " + "z" * 90 * each for each in range(4)
                ]
                await tell(store, f"{user}{number}", *texts, user=user)
        assert sum(hits_in_files(path, "Xylophonist").values()) > 40
        by_message = await store.erase_message("ann0", "m0")
        by_conversation = await store.erase_conversation("ann1")
        by_user = await store.erase_user("ann")
        assert sum(hits_in_files(path, "Xylophonist").values()) == 0
        assert sum(hits_in_files(path, "xylophonist").values()) == 0
        assert sum(hits_in_files(path, "Beekeeper").values()) > 40
        assert [[*each.remains] for each in (by_message, by_conversation, by_user)] == [["backups"]] * 3


@in_event_loop
async def test_receipt_says_that_the_log_could_not_be_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.sql.sqlite.engine._TRUNCATE_TIMEOUT", 0.01)
    path = tmp_path / "recollect.db"
    async with Somewhere(str(path)).open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM memories").fetchall()
            receipt = await store.erase_user("ann")
            assert receipt.remains.keys() == {"backups", "log"}
            reader.execute("COMMIT")
        await store.vacuum()
        assert sum(hits_in_files(path, "Ghent").values()) == 0


@in_event_loop
async def test_receipt_of_postgresql_says_that_deleted_rows_wait_for_a_vacuum(empty_postgres: str) -> None:
    url = empty_postgres.replace("postgresql:", "postgresql+asyncpg:")
    async with Somewhere(url, create_tables=True).open() as store:
        receipt = await store.erase_user("ann")
        assert receipt.remains.keys() == {"backups", "database", "server_log"}


@in_event_loop
async def test_a_vacuum_waits_for_those_who_read_and_holds_up_nobody_for_good(tmp_path: Path) -> None:
    somewhere = Somewhere(str(tmp_path / "busy.db"))
    async with somewhere.open() as store:
        await tell(store, "c1", "home: lives in Ghent")
        with closing(sqlite3.connect(somewhere.url, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM memories").fetchall()
            await store.erase_user("ann")
            vacuuming = asyncio.create_task(store.vacuum())
            writing = asyncio.create_task(tell(store, "c2", "home: lives in Oslo", user="bob"))
            reader.execute("COMMIT")
            await vacuuming
            await writing
        await store.vacuum()
        assert b"Ghent" not in bytes_of(somewhere.url)
        assert await known(store, "bob") == ["lives in Oslo"]
