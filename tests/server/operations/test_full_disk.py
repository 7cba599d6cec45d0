"""A full disk is named as such, by requests and by `/readyz`, until there is space again."""

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.testing.contract import in_event_loop
from recollect.testing.servers.postgres import PostgresServer

from ...faults.disk import POSTGRES_THERE, fill, make_room, small_disk
from .kit import Served, serving

MEGABYTE = 1 << 20
# Letters that PostgreSQL cannot store in less space.
TEXT = "".join(map(chr, random.Random(0).choices(range(0x4E00, 0x9FA5), k=300_000)))
LARGE = {"agent_id": "assistant", "user_id": "ada", "messages": [{"role": "user", "content": TEXT}]}
FULL = {"state": "not_ready", "why": "disk full"}


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system that a test can fill."""
    try:
        mounted = small_disk(160 * MEGABYTE)
        with mounted as folder:
            yield folder
    except PermissionError:
        pytest.skip("mounting takes the rights of root")


async def _look(served: Served) -> tuple[int, dict[str, Any]]:
    answer = await served.client.get("/readyz")
    return answer.status_code, answer.json()["parts"]


async def _until(served: Served, status: int) -> dict[str, Any]:
    """The parts, as soon as `/readyz` answers with a status."""
    async with asyncio.timeout(60):
        while True:
            found, parts = await _look(served)
            if found == status:
                return parts
            await asyncio.sleep(0.1)


async def _write_until_full(served: Served) -> Any:
    async with asyncio.timeout(60):
        while (answer := await served.client.post("/v1/conversations", json=LARGE)).status_code == 201:
            pass
    return answer


async def _fail_and_recover(served: Served, disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    served.client.headers["Host"] = "localhost"  # as it must be without keys
    assert (await served.client.post("/v1/conversations", json=LARGE)).status_code == 201
    assert (await _look(served))[1]["disk"] == {"state": "ready"}
    fill(disk)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "recollect"):
        answer = await _write_until_full(served)
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
    assert "disk of the database is full" in answer.json()["detail"]
    assert answer.headers["Retry-After"]
    (record,) = [each for each in caplog.records if each.name.startswith("recollect")]
    assert record.__dict__["error"].startswith("DiskFullError")
    status, parts = await _look(served)
    assert (status, parts["disk"]) == (503, FULL)
    listed = await served.client.get("/v1/conversations", params={"agent_id": "assistant", "user_id": "ada"})
    assert listed.status_code == 200
    make_room(disk)
    assert (await _until(served, 200))["disk"] == {"state": "ready"}
    assert (await served.client.post("/v1/conversations", json=LARGE)).status_code == 201


@in_event_loop
async def test_a_file_on_a_full_disk(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(str(disk / "recollect.db")) as served:
        await _fail_and_recover(served, disk, caplog)


@in_event_loop
async def test_a_full_disk_is_seen_before_anybody_writes(disk: Path) -> None:
    async with serving(str(disk / "recollect.db")) as served:
        assert (await _look(served))[0] == 200
        fill(disk)
        assert (await _until(served, 503))["disk"] == FULL
        make_room(disk)
        fill(disk, leaving=24 * MEGABYTE)
        assert (await _until(served, 200))["disk"] == {"state": "degraded", "why": "disk nearly full"}


@in_event_loop
async def test_a_server_on_a_full_disk(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    with PostgresServer(inside=disk, settings=POSTGRES_THERE) as server:
        settings = {"database": {"url": server.url, "create_tables": True}}
        async with serving(server.url, settings) as served:
            await _fail_and_recover(served, disk, caplog)
