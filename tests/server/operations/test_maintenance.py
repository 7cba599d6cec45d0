"""What a service does by itself."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from recollect.ids import time_ordered_id
from recollect.server.maintenance import Maintenance, PeriodicTask, _for_each, _run_once, cutoff
from recollect.sql.columns import time_to_column
from recollect.strategies.summaries import ConversationSummaryStore
from recollect.testing.contract import in_event_loop

from .kit import TALK, Served, execute, serving

PLANTED = "planted-contents"


async def _record(served: Served, tenant: str, days_ago: float) -> str:
    store = served.service.memory.for_tenant(tenant)
    conversation = await store.record_conversation("agent", "user", TALK)
    then = time_to_column(datetime.now(UTC) - timedelta(days=days_ago))
    change = "UPDATE conversations SET updated_at = ?1 WHERE conversation_id = ?2"
    await execute(served.service, change, then, conversation.conversation_id)
    return conversation.conversation_id


async def _is_there(served: Served, tenant: str, conversation_id: str) -> bool:
    store = served.service.memory.for_tenant(tenant)
    return await store.get_conversation(conversation_id) is not None


@in_event_loop
async def test_each_tenant_keeps_conversations_for_as_long_as_it_wants(url: str) -> None:
    tenants = {"short": {"retention_days": 30}, "ever": {"retention_days": "none"}}
    async with serving(url, {"limits": {"retention_days": 90}, "tenants": tenants}) as served:
        kept = {
            ("short", await _record(served, "short", 29)): True,
            ("short", await _record(served, "short", 31)): False,
            ("ever", await _record(served, "ever", 4000)): True,
            ("any", await _record(served, "any", 89)): True,
            ("any", await _record(served, "any", 91)): False,
        }
        maintenance = Maintenance(served.service)
        assert await maintenance.erase_old_conversations() == 2
        assert {place: await _is_there(served, *place) for place in kept} == kept
        assert await maintenance.erase_old_conversations() == 0, "doing it twice is harmless"
        await maintenance.stop()


async def _note(served: Served, tenant: str, days_ago: float) -> str:
    """An entry of the audit log of some time ago, whose tenant need not have anything else."""
    entry = await served.service.audit.record(tenant, None, "x", None, 200)
    at = datetime.now(UTC) - timedelta(days=days_ago)
    made = time_ordered_id(int(at.timestamp() * 1_000_000))
    change = "UPDATE audit_log SET entry_id = ?1 WHERE tenant = ?2 AND entry_id = ?3"
    await execute(served.service, change, made, tenant, entry.entry_id)
    return made


async def _noted(served: Served, tenant: str) -> list[str]:
    return [entry.entry_id for entry in await served.service.audit.list(tenant)]


@in_event_loop
async def test_each_tenant_keeps_its_audit_log_for_as_long_as_it_wants(url: str) -> None:
    tenants = {"short": {"audit_days": 30}, "ever": {"audit_days": "none"}, "long": {"audit_days": 10**9}}
    async with serving(url, {"limits": {"audit_days": 90}, "tenants": tenants}) as served:
        kept = {
            "short": [await _note(served, "short", 29)],
            "ever": [await _note(served, "ever", 4000)],
            "long": [await _note(served, "long", 4000)],
            "any": [await _note(served, "any", 89)],
        }
        await _note(served, "short", 31)
        await _note(served, "any", 91)
        maintenance = Maintenance(served.service)
        assert await maintenance.delete_old_audit_entries() == 2
        assert {tenant: await _noted(served, tenant) for tenant in kept} == kept
        assert await maintenance.delete_old_audit_entries() == 0, "doing it twice is harmless"
        await maintenance.stop()


@in_event_loop
async def test_what_fails_for_one_tenant_is_done_for_those_after_it() -> None:
    done = []

    async def do(tenant: str) -> int:
        if tenant == "b":
            raise RuntimeError(tenant)
        done.append(tenant)
        return 1

    with pytest.raises(RuntimeError, match="b"):
        await _for_each(["a", "b", "c"], do)
    assert done == ["a", "c"]
    assert await _for_each(["a", "c"], do) == 2


@in_event_loop
async def test_two_instances_at_it_at_once_erase_each_conversation_once(url: str) -> None:
    async with serving(url, {"limits": {"retention_days": 1}}) as served:
        for _ in range(6):
            await _record(served, "acme", 2)
        one, other = Maintenance(served.service), Maintenance(served.service)
        counts = await asyncio.gather(one.erase_old_conversations(), other.erase_old_conversations())
        assert sum(counts) == 6
        await one.stop()
        await other.stop()


@in_event_loop
async def test_without_limits_nothing_is_erased(url: str) -> None:
    async with serving(url) as served:
        conversation_id = await _record(served, "acme", 4000)
        maintenance = Maintenance(served.service)
        assert await maintenance.erase_old_conversations() == 0
        assert await _is_there(served, "acme", conversation_id)
        await maintenance.stop()


@in_event_loop
async def test_all_tenants_with_conversations_are_found(url: str) -> None:
    async with serving(url) as served:
        maintenance = Maintenance(served.service)
        assert await served.service.memory.monitor.tenants() == []
        names = ["A", "a", "a b", "é", "ü:b", "zz", "租户"]
        for name in [*names, "a", "zz"]:
            await _record(served, name, 0)
        assert sorted(await served.service.memory.monitor.tenants()) == sorted(names)
        await maintenance.stop()


@in_event_loop
async def test_what_has_expired_is_purged(url: str) -> None:
    async with serving(url) as served, ConversationSummaryStore(url) as summaries:
        await served.service.idempotency.once("acme", "POST /x", "key", b"", _nothing)
        await execute(served.service, "UPDATE idempotency_keys SET expires_at = 0")
        for text, ttl in (("old", 1e-6), ("new", 3600.0)):
            await summaries.add("c-1", text, ttl=ttl)
        maintenance = Maintenance(served.service)
        removed = {task.name: await task.run() for task in maintenance.tasks}
        assert removed == {
            "retention": 0,
            "expired entries": 0,
            "audit log": 0,
            "idempotency keys": 1,
            "summaries": 1,
        }
        await maintenance.stop()


async def _nothing(_: object) -> dict[str, str]:
    return {}


@in_event_loop
async def test_a_fault_is_logged_without_its_words_and_the_duty_comes_again_sooner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> int:
        raise RuntimeError(PLANTED)

    async def remove() -> int:
        return 3

    assert await _run_once(PeriodicTask("things", fail, interval=3600)) == 60
    [record] = caplog.records
    assert record.getMessage() == "maintenance task failed, will retry"
    assert vars(record)["task"] == "things"
    assert "RuntimeError at" in vars(record)["error"]
    assert PLANTED not in str(vars(record))
    with caplog.at_level(logging.INFO, "recollect.maintenance"):
        assert await _run_once(PeriodicTask("things", remove, interval=3600)) == 3600
    last = caplog.records[-1]
    assert last.getMessage() == "maintenance task removed rows"
    assert (vars(last)["task"], vars(last)["count"]) == ("things", 3)


@in_event_loop
async def test_it_starts_and_stops_twice_without_harm(url: str) -> None:
    async with serving(url) as served:
        maintenance = Maintenance(served.service)
        maintenance.start()
        maintenance.start()
        await asyncio.sleep(0)
        await maintenance.stop()
        await maintenance.stop()


def test_a_time_before_all_times_is_the_first_one() -> None:
    now = datetime(2026, 11, 16, tzinfo=UTC)
    assert cutoff(now, 30) == datetime(2026, 10, 17, tzinfo=UTC)
    assert cutoff(now, 10**9).year == 1


@in_event_loop
async def test_each_tenant_keeps_expired_entries_for_as_long_as_it_wants(url: str) -> None:
    tenants = {"short": {"purge_expired_after_days": 30}, "ever": {"purge_expired_after_days": "none"}}
    async with serving(url, {"limits": {"purge_expired_after_days": 90}, "tenants": tenants}) as served:
        left = {}
        for tenant, days, is_kept in (
            ("short", 29, True),
            ("short", 31, False),
            ("ever", 4000, True),
            ("any", 89, True),
            ("any", 91, False),
        ):
            store = served.service.memory.for_tenant(tenant)
            expired = datetime.now(UTC) - timedelta(days=days)
            entry = await store.add_entry("agent", "user", "profile", f"{days} days", expires_at=expired)
            left[tenant, entry.content_id] = is_kept
        maintenance = Maintenance(served.service)
        assert await maintenance.purge_expired_entries() == 2
        for (tenant, content_id), is_kept in left.items():
            found = await served.service.memory.for_tenant(tenant).get_entry(content_id)
            assert (found is not None) == is_kept
        assert await maintenance.purge_expired_entries() == 0
        await maintenance.stop()
