"""Receipts: proof without anything personal. And the vacuum, which others need not notice."""

import asyncio
import hashlib
import hmac
import logging
import sqlite3
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
        assert told.keys() == {"erased_at", "counts", "subject"}


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
