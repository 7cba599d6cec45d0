"""Processes that the system cannot start for a while, as without memory: they are started later."""

import asyncio
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect.server import learner
from recollect.server.learner import LearningProcess
from recollect.server.processes import generation
from recollect.server.processes.child import ServerProcess
from recollect.server.processes.generation import Generation
from recollect.server.settings import Settings
from recollect.testing.contract import in_event_loop

FAILED = "process could not start, will retry"


async def _until(done: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - there is no event for this
            await asyncio.sleep(0.01)


@in_event_loop
async def test_a_learning_process_is_started_when_the_system_can_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "recollect.db"
    file.touch()  # as by the service, which opens it first
    place = {"url": str(file), "create_tables": True}
    learning = LearningProcess(Settings.model_validate({"database": place, "memory": {"embedder": "none"}}))
    monkeypatch.setattr(learner, "_FIRST_PAUSE", 0.01)
    with caplog.at_level(logging.ERROR), monkeypatch.context() as broken:
        broken.setattr(sys, "executable", str(tmp_path / "nothing"))
        learning.start()
        await _until(lambda: f"learning {FAILED}" in caplog.text)
        assert not learning.is_able
    await _until(lambda: learning.is_alive)
    await learning.stop()


@in_event_loop
async def test_a_server_process_is_started_again_when_the_system_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    idle = tmp_path / "idle"
    idle.write_text("#!/bin/sh\nexec sleep 600\n")
    idle.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(idle))
    monkeypatch.setattr(generation, "_FIRST_PAUSE", 0.01)
    started = Generation(lambda _: ServerProcess.launch({}, ()), 1)
    await started.start(is_quiet=True)
    (first,) = started.processes
    with caplog.at_level(logging.ERROR), monkeypatch.context() as broken:
        broken.setattr(sys, "executable", str(tmp_path / "nothing"))
        first.terminate()
        await _until(lambda: f"server {FAILED}" in caplog.text)
        assert not started.processes
    await _until(lambda: started.restarts == 1)
    (second,) = started.processes
    assert second.pid != first.pid
    await started.end(ServerProcess.terminate, 60)
