"""Whether a service lives, whether it is ready, and what it measures, over HTTP."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from recollect.sql.sqlalchemy.revisions import VERSION_TABLE
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

from ...sessions.postgres.database import sql
from .kit import TALK, Served, execute, serving

_PARTS = ("server", "database", "disk", "schema", "workers", "embedder", "provider")


async def _look(served: Served) -> tuple[int, str, dict[str, Any]]:
    answer = await served.client.get("/readyz")
    return answer.status_code, answer.json()["status"], answer.json()["parts"]


async def _values(served: Served) -> dict[str, float]:
    answer = await served.client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@in_event_loop
async def test_a_service_in_order_is_ready_in_all_its_parts(url: str) -> None:
    async with serving(url) as served:
        assert await _look(served) == (200, "ready", {name: {"state": "ready"} for name in _PARTS})


@pytest.mark.parametrize(
    ("revision", "status", "told"),
    [
        (None, 503, {"state": "not_ready", "why": "behind"}),
        # So it is while the instances of an upgrade are replaced one by one.
        ("9999", 200, {"state": "degraded", "why": "ahead"}),
    ],
)
@in_event_loop
async def test_a_database_at_another_revision_is_told(
    migrated_url: str, revision: str | None, status: int, told: dict[str, str]
) -> None:
    async with serving(migrated_url) as served:
        await served.service.memory.for_tenant("acme").record_conversation("agent", "user", TALK)
        sql(migrated_url, f"DELETE FROM {VERSION_TABLE}")
        if revision:
            sql(migrated_url, f"INSERT INTO {VERSION_TABLE} VALUES ('{revision}')")
        found, _, parts = await _look(served)
        assert (found, parts["schema"], parts["database"]) == (status, told, {"state": "ready"})


@in_event_loop
async def test_a_database_without_tables_is_not_ready(migrated_url: str) -> None:
    sql(migrated_url, "DROP SCHEMA public CASCADE")
    sql(migrated_url, "CREATE SCHEMA public")
    async with serving(migrated_url) as served:
        status, state, parts = await _look(served)
        assert (status, state) == (503, "not_ready")
        assert parts["schema"] == {"state": "not_ready", "why": "not migrated"}


@in_event_loop
async def test_a_database_that_is_gone_is_told_while_the_process_lives(
    postgres_url: str, migrated_url: str
) -> None:
    async with serving(migrated_url) as served:
        sql(postgres_url, f"DROP DATABASE {migrated_url.rpartition('/')[2]} WITH (FORCE)")
        status, _, parts = await _look(served)
        assert (status, parts["database"]) == (503, {"state": "not_ready", "why": "unreachable"})
        assert parts["schema"] == {"state": "not_ready", "why": "database"}
        assert (await served.client.get("/healthz")).json() == {"status": "alive"}
        assert (await _values(served))["recollect_gathering_failed"] == 1


@pytest.mark.parametrize("happened", ["deleted", "replaced"])
@in_event_loop
async def test_service_whose_file_is_gone_is_not_ready_and_creates_no_empty_one(
    tmp_path: Path, happened: str
) -> None:
    file = tmp_path / "recollect.db"
    async with serving(str(file)) as served:
        assert (await _look(served))[0] == 200
        for each in tmp_path.glob("recollect.db*"):
            each.unlink()
        if happened == "replaced":
            file.touch()
        await asyncio.sleep(1.1)  # the last result is cached for a second
        status, state, parts = await _look(served)
        assert (status, state) == (503, "not_ready")
        assert parts["database"] == {"state": "not_ready", "why": "file replaced or deleted"}
        answer = await served.client.get("/v1/conversations", params={"user_id": "ada"})
        assert answer.status_code == 503
        assert "was replaced or deleted while the service was running" in answer.json()["detail"]
        left = [(each.name, each.stat().st_size) for each in tmp_path.glob("recollect.db*")]
        assert left == ([] if happened == "deleted" else [("recollect.db", 0)])


@in_event_loop
async def test_a_service_that_stops_is_not_ready(url: str) -> None:
    async with serving(url) as served:
        assert (await _look(served))[0] == 200
        served.service.begin_to_stop()
        status, state, parts = await _look(served)
        assert (status, state, parts["server"]) == (
            503,
            "not_ready",
            {"state": "not_ready", "why": "stopping"},
        )
        assert (await served.client.get("/healthz")).status_code == 200


@in_event_loop
async def test_work_that_nobody_does_is_told_and_requests_go_on(url: str) -> None:
    async with serving(url) as served:
        await served.service.memory.for_tenant("acme").record_conversation("agent", "user", TALK)
        await execute(served.service, "UPDATE memory_queue SET available_at = available_at - 100")
        status, state, parts = await _look(served)
        assert (status, state, parts["workers"]) == (200, "degraded", {"state": "degraded", "why": "behind"})


@in_event_loop
async def test_an_embedder_that_fails_is_told_and_requests_go_on(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, server: ProviderServer
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    memory = {"workers": 0, "embedder": "openai:text-embedding-3-small"}
    async with serving(str(tmp_path / "recollect.db"), {"memory": memory}) as served:
        await served.service.memory.for_tenant("acme").record_conversation("agent", "user", TALK)
        await served.service.memory.embed_pending()
        status, _, parts = await _look(served)
        assert (status, parts["embedder"]) == (200, {"state": "degraded", "why": "failing"})
        assert (await _values(served))["recollect_embedder_failures"] >= 1


@in_event_loop
async def test_the_runs_of_all_tenants_are_measured_and_no_tenant_is_named(url: str) -> None:
    async with serving(url) as served:
        for tenant in ("planted-a", "planted-b"):
            await served.service.memory.for_tenant(tenant).record_conversation("agent", "planted-u", TALK)
        found = await _values(served)
        assert found['recollect_runs{status="pending"}'] == 2
        assert found['recollect_conversations{state="pending"}'] == 2
        assert found["recollect_queue_depth"] == 2
        assert found["recollect_gathering_failed"] == 0
        assert found["process_resident_memory_bytes"] > 0
        assert "planted" not in (await served.client.get("/metrics")).text
        assert "planted" not in (await served.client.get("/readyz")).text


@in_event_loop
async def test_the_connections_of_the_pool_are_measured(migrated_url: str) -> None:
    async with serving(migrated_url, {"database": {"url": migrated_url, "pool_size": 3}}) as served:
        found = await _values(served)
        assert found['recollect_database_connections{state="most"}'] == 3
        assert found['recollect_database_connections{state="used"}'] == 0


@in_event_loop
async def test_metrics_can_be_turned_off(tmp_path: Any) -> None:
    async with serving(str(tmp_path / "recollect.db"), {"telemetry": {"metrics": False}}) as served:
        answer = await served.client.get("/metrics")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@in_event_loop
async def test_nobody_needs_a_key_for_these(tmp_path: Any) -> None:
    async with serving(str(tmp_path / "recollect.db")) as served:
        await served.service.keys.create("acme", "admin")
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await served.client.get(path)).status_code == 200
        assert (await served.client.get("/v1/runs")).status_code == 401


@in_event_loop
async def test_a_file_that_was_replaced_is_not_ready_and_answers_nobody(tmp_path: Path) -> None:
    path = tmp_path / "recollect.db"
    async with serving(str(path)) as served:
        _, text = await served.service.keys.create("default", "admin")
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        file.unlink(missing_ok=True)
    async with serving(str(path)) as served:  # a service that starts again
        status, state, parts = await _look(served)
        assert (status, state) == (503, "not_ready")
        assert parts["database"] == {"state": "not_ready", "why": "replaced"}
        own = {"Host": "localhost"}
        assert (await served.client.get("/v1/whoami", headers=own)).status_code == 401
        keyed = await served.client.get("/v1/whoami", headers={**own, "Authorization": f"Bearer {text}"})
        assert (keyed.status_code, keyed.json()["code"]) == (503, "not_ready")
        assert "lost" not in keyed.json()["detail"]
