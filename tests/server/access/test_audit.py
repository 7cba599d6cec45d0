"""The audit log: who did what, in order, by tenant, and nothing that names a person."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect.errors import StorageError
from recollect.memory.store import MemoryStore
from recollect.server.access.audit import AuditLog, new_entry, recordable_target
from recollect.server.access.keys import KeyStore
from recollect.testing.contract import in_event_loop

from .places import Place

ID = "0d6f5e0a-6f6c-4f6e-9d0e-0f6a9a1b2c3d"


@in_event_loop
async def test_what_was_done_is_told_newest_first(place: Place) -> None:
    async with place.open(AuditLog) as log:
        first = await log.record("acme", "k" * 32, "conversations.create", ID, 201, "request-1")
        second = await log.record("acme", None, "conversations.delete", None, 404)
        assert await log.list("acme") == [second, first]
    assert (first.tenant, first.key_id, first.action, first.target) == (
        "acme", "k" * 32, "conversations.create", ID,
    )  # fmt: skip
    assert (first.status, first.request_id) == (201, "request-1")
    assert first.at.tzinfo is UTC
    assert (second.key_id, second.target, second.status, second.request_id) == (None, None, 404, None)


@in_event_loop
async def test_pages_follow_each_other_without_gaps(place: Place) -> None:
    async with place.open(AuditLog) as log:
        made = [await log.record("acme", None, "a", None, 200, str(number)) for number in range(7)]
        pages, before = [], None
        while page := await log.list("acme", before=before, limit=3):
            pages.append([entry.request_id for entry in page])
            before = page[-1].entry_id
    assert pages == [["6", "5", "4"], ["3", "2", "1"], ["0"]]
    assert sorted(entry.entry_id for entry in made) == [entry.entry_id for entry in made]


@in_event_loop
async def test_a_tenant_sees_its_own_alone(place: Place) -> None:
    async with place.open(AuditLog) as log:
        for tenant in ("a", "a:b", "b"):
            await log.record(tenant, None, "x", None, 200)
        assert [entry.tenant for entry in await log.list("a")] == ["a"]
        assert await log.list("c") == []


@in_event_loop
async def test_all_who_record_at_once_are_in_it(place: Place) -> None:
    async with place.open(AuditLog) as log:
        made = await asyncio.gather(
            *(log.record("acme", None, "x", None, 200, str(number)) for number in range(120))
        )
        found = await log.list("acme", limit=500)
    assert list(reversed(found)) == made


@in_event_loop
async def test_it_is_on_disk_when_it_was_recorded(shared_place: Place) -> None:
    async with shared_place.open(AuditLog) as log, shared_place.open(AuditLog) as other:
        entry = await log.record("acme", None, "x", None, 200)
        assert await other.list("acme") == [entry]


@in_event_loop
async def test_odd_texts_harm_nothing(place: Place) -> None:
    odd = "a\0\ud800'\"%\n\x01"
    async with place.open(AuditLog) as log:
        await log.record("acme", None, odd, odd, 422, odd)
        await log.record("acme", None, "x", None, 422, "r" * 10_000)
        long, told = await log.list("acme")
    assert (told.action, told.target, told.request_id) == (odd, "other", odd)
    assert long.request_id == "r" * 200


@pytest.mark.parametrize(
    "target",
    [None, ID, "f" * 32, f"user:{'a' * 64}", f"conversation:{ID}", f"{ID} {ID}", "conv_0123456789abcdefABCD"],
)
def test_ids_that_we_made_are_told(target: str | None) -> None:
    assert recordable_target(target) == target


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("alice", "other"),
        ("alice@example.org", "other"),
        ("", "other"),
        (f"{ID} alice", f"{ID} other"),
        ("Alice B. Smith lives here", "other other other other"),
        (f"{ID}\n", "other"),
        (f"alice:smith:{ID}", "other"),
        ("١" * 32, "other"),
    ],
)
def test_what_may_be_personal_is_not(target: str, told: str) -> None:
    assert recordable_target(target) == told


@in_event_loop
async def test_nobody_who_was_erased_can_be_read_from_it(tmp_path: Path) -> None:
    path, user = tmp_path / "service.db", "alice@example.org"
    async with MemoryStore(path, workers=0, embedder=None) as store, AuditLog(path) as log:
        await store.add_entry("agent", user, "profile", "Sails.")
        subject = await store.receipt_subject(user)
        receipt = await store.erase_user(user)
        await log.record("default", None, "users.erase", f"user:{subject}", 200)
        await log.record("default", None, "users.export", user, 404)
        await store.vacuum()
        found = await log.list("default")
    assert [entry.target for entry in found] == ["other", f"user:{receipt.subject}"]
    with closing(sqlite3.connect(path)) as connection:
        assert user not in "\n".join(connection.iterdump())


@in_event_loop
async def test_what_is_older_than_a_time_can_be_purged(place: Place) -> None:
    async with place.open(AuditLog) as log:
        await log.record("a", None, "old", None, 200)
        other = await log.record("b", None, "old", None, 200)
        new = await log.record("a", None, "new", None, 200)
        assert await log.purge("a", new.at) == 1
        assert await log.list("a") == [new]
        assert await log.list("b") == [other]
        assert await log.purge("a", datetime.now(UTC) - timedelta(days=1)) == 0


@in_event_loop
async def test_all_tenants_with_entries_are_found(place: Place) -> None:
    async with place.open(AuditLog) as log:
        names = {"tenants/A", "tenants/a", "tenants/é", "tenants/租户"}
        for name in [*sorted(names), "tenants/a"]:
            await log.record(name, None, "x", None, 200)
        found = await log.tenants()
    assert len(found) == len(set(found))
    assert {name for name in found if name.startswith("tenants/")} == names


@in_event_loop
async def test_a_time_before_all_entries_purges_nothing(place: Place) -> None:
    async with place.open(AuditLog) as log:
        await log.record("long ago", None, "x", None, 200)
        assert await log.purge("long ago", datetime.min.replace(tzinfo=UTC)) == 0


@in_event_loop
async def test_a_log_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    async with AuditLog(tmp_path / "service.db") as log:
        await log.record("acme", None, "x", None, 200)
    with pytest.raises(RuntimeError, match="closed"):
        await log.record("acme", None, "x", None, 200)


# --- entries that go with another write ---


@in_event_loop
async def test_an_entry_goes_with_the_next_write_on_the_same_file(place: Place) -> None:
    entry = new_entry("acme", None, "keys.create", None, 201)
    async with place.open(AuditLog) as log, place.open(KeyStore) as keys:
        async with log.record_with_next_write(entry) as joining:
            await keys.create("acme", "read")
            await keys.create("acme", "read")
        written = [each.entry_id for each in await log.list("acme")]
        assert written == ([entry.entry_id] if joining.is_written else [])
    is_file = place.url.endswith(".db") and "://" not in place.url
    assert joining.is_written == is_file, "others have an engine or a server of their own"


@in_event_loop
async def test_a_write_and_its_entry_are_both_there_or_neither(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    async with AuditLog(path) as log, KeyStore(path) as keys:
        await log.list("acme")  # the table is there
        await keys.any()
        with closing(sqlite3.connect(path)) as other:
            other.execute("DROP TABLE audit_log")
        with pytest.raises(StorageError):
            async with log.record_with_next_write(new_entry("acme", None, "x", None, 201)) as joining:
                await keys.create("acme", "read")
        assert not joining.is_written
        assert not await keys.any()
        await keys.create("acme", "read")  # outside of the block, nothing goes with it
        assert await keys.any()


@in_event_loop
async def test_entries_of_other_tasks_go_with_their_own_writes(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    async with AuditLog(path) as log, KeyStore(path) as keys:

        async def create(number: int) -> bool:
            entry = new_entry("acme", None, "x", None, 201, str(number))
            async with log.record_with_next_write(entry) as joining:
                await asyncio.sleep(0)
                if number % 2:
                    await keys.create("acme", "read")
            return joining.is_written

        assert await asyncio.gather(*map(create, range(20))) == [bool(number % 2) for number in range(20)]
        written = {entry.request_id for entry in await log.list("acme")}
    assert written == {str(number) for number in range(1, 20, 2)}
