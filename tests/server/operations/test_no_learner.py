"""`/readyz` says at once when work waits and no process learns: before its first report and after its end."""

import asyncio
from pathlib import Path
from typing import Any

from recollect.testing.contract import in_event_loop

from .kit import TALK, Served, execute, serving

LEARNS = {"memory": {"workers": 1, "embedder": "none", "own_process": True}}
NO_LEARNER = {"state": "degraded", "why": "no learner"}


async def _look(served: Served) -> tuple[str, Any]:
    told = (await served.client.get("/readyz")).json()
    return told["status"], told["parts"]["workers"]


async def _until_ready(served: Served) -> list[Any]:
    """All that `/readyz` said of the workers until it was ready."""
    said = []
    async with asyncio.timeout(120):
        while (found := await _look(served))[0] != "ready":
            said.append(found[1])
            await asyncio.sleep(0.05)
    return said


@in_event_loop
async def test_a_service_is_degraded_while_nothing_learns(tmp_path: Path) -> None:
    url = str(tmp_path / "recollect.db")
    async with serving(url, {**LEARNS, "database": {"url": url}}) as served:
        learning = served.service.learning
        assert learning is not None
        # Without work no process is started, and none is missing.
        assert await _look(served) == ("ready", {"state": "ready"})
        assert learning._process is None
        record = {"agent_id": "assistant", "user_id": "ada", "messages": TALK}
        host = {"Host": "127.0.0.1"}
        assert (await served.client.post("/v1/conversations", json=record, headers=host)).is_success
        async with asyncio.timeout(60):
            while learning._process is None:  # noqa: ASYNC110 - until the work has been seen
                await asyncio.sleep(0.01)
        before = await _until_ready(served)
        assert before
        assert all(part == NO_LEARNER for part in before)
        process = learning._process
        assert process is not None
        process.kill()
        async with asyncio.timeout(60):
            while learning.is_alive:  # noqa: ASYNC110 - until the end of the process has been heard
                await asyncio.sleep(0.01)
        assert await _look(served) == ("degraded", NO_LEARNER)
        await _until_ready(served)


@in_event_loop
async def test_workers_of_this_process_learn_from_the_start(tmp_path: Path) -> None:
    url = str(tmp_path / "recollect.db")
    memory = {"workers": 1, "embedder": "none", "own_process": False}
    async with serving(url, {"memory": memory, "database": {"url": url}}) as served:
        assert await _look(served) == ("ready", {"state": "ready"})


@in_event_loop
async def test_a_service_that_leaves_learning_to_others_is_ready(tmp_path: Path) -> None:
    async with serving(str(tmp_path / "recollect.db")) as served:
        assert await _look(served) == ("ready", {"state": "ready"})


@in_event_loop
async def test_the_delay_of_learning_is_shown_while_nothing_learns(tmp_path: Path) -> None:
    """In the metrics, in the coverage that the dashboard shows, and in `/readyz`."""
    async with serving(str(tmp_path / "recollect.db")) as served:
        record = {"agent_id": "assistant", "user_id": "ada", "messages": TALK}
        host = {"Host": "127.0.0.1"}
        assert (await served.client.post("/v1/conversations", json=record, headers=host)).is_success
        await execute(served.service, "UPDATE memory_queue SET available_at = available_at - 90")
        coverage = (await served.client.get("/v1/coverage", headers=host)).json()
        assert 90 <= coverage["behind_seconds"] < 600
        told = (await served.client.get("/metrics", headers=host)).text
        (line,) = [line for line in told.splitlines() if line.startswith("recollect_queue_behind_seconds ")]
        assert 90 <= float(line.split()[1]) < 600
        assert await _look(served) == ("degraded", {"state": "degraded", "why": "behind"})
