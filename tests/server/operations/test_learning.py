"""What is learned in a process of its own, which its parent keeps running and takes with it."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from .kit import TALK
from .test_serving import LONGEST, Process, started

pytestmark = pytest.mark.proof

RECORD = {"agent_id": "assistant", "user_id": "ada", "messages": TALK}


def until(done: Callable[[], Any]) -> Any:
    """Wait until something is so, and return it."""
    ends = time.monotonic() + LONGEST
    while not (found := done()):
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.05)
    return found


def learner_of(served: Process) -> psutil.Process | None:
    """The learning process of a service, if it runs."""
    return next(iter(psutil.Process(served.process.pid).children()), None)


def remembered(served: Process) -> int:
    told: dict[str, int] = httpx2.get(f"{served.url}/v1/coverage").json()
    return told["remembered"]


def test_a_service_learns_in_a_process_of_its_own_that_outlives_nothing(tmp_path: Path) -> None:
    with started(tmp_path, environment={}) as served:
        assert learner_of(served) is None  # there is nothing to learn yet
        httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
        until(lambda: remembered(served) == 1)
        learner = until(lambda: learner_of(served))
        learner.send_signal(signal.SIGINT)  # as a terminal sends it to all: it is for the parent
        learner.kill()
        another = until(lambda: (found := learner_of(served)) and found.pid != learner.pid and found)
        httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
        until(lambda: remembered(served) == 2)
        served.process.kill()
        served.process.wait()
        until(lambda: not another.is_running())


def test_at_the_end_of_a_service_its_learning_process_ends_too(tmp_path: Path) -> None:
    with started(tmp_path, environment={}) as served:
        httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
        learner = until(lambda: learner_of(served))
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(LONGEST) == 0
        assert not learner.is_running()


def test_a_service_whose_file_is_deleted_creates_no_empty_one(tmp_path: Path) -> None:
    with started(tmp_path, environment={"RECOLLECT_MEMORY__IDLE_SECONDS": "1"}) as served:
        httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
        learner = until(lambda: learner_of(served))
        for file in tmp_path.glob("recollect.db*"):
            file.unlink()
        learner.kill()
        until(lambda: "recollect.db was deleted while it was in use" in (tmp_path / "log").read_text())
        assert not (tmp_path / "recollect.db").exists()


def test_a_service_without_workers_has_no_learning_process(tmp_path: Path) -> None:
    with started(tmp_path, environment={"RECOLLECT_MEMORY__WORKERS": "0"}) as served:
        assert learner_of(served) is None


def test_the_limits_of_many_tenants_reach_it(tmp_path: Path) -> None:
    tenants = (f"[tenants.tenant{number}]\nrequests_per_minute = 60\n" for number in range(2000))
    (tmp_path / "many.toml").write_text("".join(tenants))
    with started(tmp_path, "--config", str(tmp_path / "many.toml"), environment={}) as served:
        httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
        until(lambda: remembered(served) == 1)


def test_an_idle_learning_process_ends_and_is_started_again(tmp_path: Path) -> None:
    with started(tmp_path, environment={"RECOLLECT_MEMORY__IDLE_SECONDS": "1"}) as served:
        for count in (1, 2):
            httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
            until(lambda count=count: remembered(served) == count)
            until(lambda: learner_of(served) is None)
            ready = httpx2.get(f"{served.url}/readyz").json()
            assert ready["parts"]["workers"] == {"state": "ready"}
    assert "ended unexpectedly" not in (tmp_path / "log").read_text()
