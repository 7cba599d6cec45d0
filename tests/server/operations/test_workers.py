"""`recollect serve --workers`: several processes on one socket, restarted without a refused request."""

import asyncio
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from recollect.server.access.keys import KeyStore

from .kit import TALK
from .test_serving import Process, started

LONGEST = 240  # seconds: many processes start here, on a machine that may be busy
pytestmark = [pytest.mark.proof, pytest.mark.timeout(3 * LONGEST)]

RECORD = {"agent_id": "assistant", "user_id": "ada", "messages": TALK}

SETTINGS = """
[server]
grace_seconds = 5
[tenants.limited]
requests_per_minute = 20
"""


def until(done: Callable[[], Any]) -> None:
    """Wait until something is so."""
    ends = time.monotonic() + LONGEST
    while not done():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.1)


def servers_of(served: Process) -> set[int]:
    return {
        child.pid for child in psutil.Process(served.process.pid).children() if _is(child, "server_process")
    }


def learners_of(served: Process) -> set[int]:
    return {child.pid for child in psutil.Process(served.process.pid).children() if _is(child, "learner")}


def _is(process: psutil.Process, module: str) -> bool:
    try:
        return any(part.endswith(module) for part in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def samples_of(served: Process) -> list[tuple[str, dict[str, str], float]]:
    text = httpx2.get(f"{served.url}/metrics").text
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


def answering(served: Process) -> Counter[str]:
    """How many requests each process has answered, as the metrics tell."""
    counted: Counter[str] = Counter()
    for name, labels, value in samples_of(served):
        if name == "recollect_requests_total":
            counted[labels["process"]] += int(value)
    return counted


class Callers:
    """Threads that send requests all the time: on connections that stay open, and on new ones."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_over = threading.Event()
        self.answers: Counter[int] = Counter()
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._call, args=(stays,)) for stays in (True, True, False)]

    def _call(self, stays: bool) -> None:
        number = 0
        client = httpx2.Client(base_url=self._url, timeout=LONGEST)
        while not self._is_over.wait(0.02):  # the processes that start need the processor, too
            number += 1
            try:
                if number % 3:
                    answer = client.get("/v1/conversations?limit=1")
                else:
                    answer = client.post("/v1/conversations", json=RECORD)
                self.answers[answer.status_code] += 1
            except httpx2.HTTPError as error:
                self.failures.append(repr(error))
            if not stays:
                client.close()
                client = httpx2.Client(base_url=self._url, timeout=LONGEST)
        client.close()

    def __enter__(self) -> "Callers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()


@contextmanager
def several(folder: Path, *arguments: str) -> Iterator[Process]:
    (folder / "recollect.toml").write_text(SETTINGS)
    options = ("--workers", "2", "--config", str(folder / "recollect.toml"), *arguments)
    with started(folder, *options, environment={"RECOLLECT_MEMORY__WORKERS": "1"}) as served:
        until(lambda: count_ready(served) == 2)
        try:
            yield served
        finally:
            served.process.send_signal(signal.SIGTERM)
            assert served.process.wait(LONGEST) == 0


def count_ready(served: Process) -> float:
    return next((value for name, _, value in samples_of(served) if name == "recollect_server_processes"), 0)


def test_a_process_that_is_started_again_creates_no_file_in_place_of_a_deleted_one(tmp_path: Path) -> None:
    with several(tmp_path) as served:
        for file in tmp_path.glob("recollect.db*"):
            file.unlink()
        psutil.Process(servers_of(served).pop()).kill()
        until(lambda: "recollect.db was deleted while it was in use" in (tmp_path / "log").read_text())
        assert not (tmp_path / "recollect.db").exists()


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_several_processes_are_one_service_that_restarts_without_a_refused_request(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    more = () if kind == "file" else ("--url", request.getfixturevalue("migrated_url"))
    with several(tmp_path, *more) as served:
        before = servers_of(served)
        with Callers(served.url) as callers:
            until(lambda: callers.answers[201] > 5 and len(learners_of(served)) == 1)
            learner = learners_of(served)
            served.process.send_signal(signal.SIGHUP)
            until(lambda: (now := servers_of(served)) and len(now) == 2 and not now & before)
            until(lambda: len(now := learners_of(served)) == 1 and not now & learner)
            after = callers.answers[201]
            until(lambda: callers.answers[201] > after + 5)
        assert callers.failures == []
        assert set(callers.answers) == {200, 201}
        coverage = httpx2.get(f"{served.url}/v1/coverage").json()
        assert coverage["remembered"] + coverage["pending"] == callers.answers[201]
        assert _lines(served, "restarted") == 1
        assert _lines(served, "server process ended unexpectedly, restarting") == 0


def test_a_dead_process_is_started_again_and_a_wrong_configuration_changes_nothing(tmp_path: Path) -> None:
    with several(tmp_path) as served:
        assert sum("listens on" in line for line in served.said) == 1
        victim, other = sorted(servers_of(served))
        psutil.Process(victim).kill()
        until(lambda: len(now := servers_of(served)) == 2 and victim not in now)
        until(lambda: count_ready(served) == 2)
        assert other in servers_of(served)
        restarts = [value for name, _, value in samples_of(served) if "process_restarts_total" in name]
        assert restarts == [1]

        before = servers_of(served)
        (tmp_path / "recollect.toml").write_text("[server]\nwrokers = 3\n")
        served.process.send_signal(signal.SIGHUP)
        until(lambda: _lines(served, "restart failed, the old processes continue"))
        assert servers_of(served) == before
        assert httpx2.get(f"{served.url}/readyz").status_code == 200


def test_a_rate_limit_holds_for_all_processes_together_and_each_counts_what_it_did(tmp_path: Path) -> None:
    async def make_key() -> str:
        async with KeyStore(str(tmp_path / "recollect.db")) as keys:
            return (await keys.create("limited", "admin"))[1]

    headers = {"Authorization": f"Bearer {asyncio.run(make_key())}"}
    with several(tmp_path) as served:
        began, statuses = time.monotonic(), Counter[int]()
        while min(answering(served)[str(pid)] for pid in servers_of(served)) < 25 or not statuses[429]:
            statuses[httpx2.get(f"{served.url}/v1/whoami", headers=headers).status_code] += 1
        most = 20 + (time.monotonic() - began) * 20 / 60
        assert 20 <= statuses[200] <= most + 1
        assert set(answering(served)) >= {str(pid) for pid in servers_of(served)}


def test_the_processes_end_with_their_supervisor_however_it_ends(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_text(SETTINGS)
    options = ("--workers", "2", "--config", str(tmp_path / "recollect.toml"))
    with started(tmp_path, *options, environment={}) as served:
        until(lambda: count_ready(served) == 2)
        assert learners_of(served) == set()  # there is nothing to learn yet
        httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
        until(lambda: len(learners_of(served)) == 1)
        until(lambda: httpx2.get(f"{served.url}/v1/coverage").json()["remembered"] == 1)
        pids = servers_of(served) | learners_of(served)
        served.process.kill()
        served.process.wait(LONGEST)
        until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_an_idle_learning_process_ends_and_any_process_gets_it_started_again(tmp_path: Path) -> None:
    environment = {"RECOLLECT_MEMORY__IDLE_SECONDS": "1"}
    with started(tmp_path, "--workers", "2", environment=environment) as served:
        for count in range(1, 4):
            httpx2.post(f"{served.url}/v1/conversations", json=RECORD)
            until(lambda c=count: httpx2.get(f"{served.url}/v1/coverage").json()["remembered"] == c)
            until(lambda: learners_of(served) == set())
        assert httpx2.get(f"{served.url}/readyz").json()["parts"]["workers"] == {"state": "ready"}


def test_a_service_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_text('[chat]\nagents_file = "none.toml"\n')
    options = ("--workers", "2", "--config", str(tmp_path / "recollect.toml"))
    with pytest.raises(AssertionError), started(tmp_path, *options, environment={}):
        pass
    assert re.search(r"recollect: .*none\.toml", (tmp_path / "log").read_text())


def _lines(served: Process, message: str) -> int:
    return sum(line["message"] == message for line in served.log())
