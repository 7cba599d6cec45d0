"""Several processes on one session: whole batches in order, and one run at a time."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recollect import RunLockTimeoutError, run_lock
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import assert_whole_and_ordered, in_event_loop, texts

pytestmark = pytest.mark.proof

WORKER = Path(__file__).with_name("redis_worker.py")


def start_worker(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


async def stored(url: str, prefix: str) -> list[str]:
    async with RedisSession.from_url("s", url=url, key_prefix=prefix) as session:
        return texts(await session.get_items())


@pytest.mark.parametrize("server", ["redis_url", "cluster_url"])
def test_one_run_at_a_time_across_processes(request: pytest.FixtureRequest, prefix: str, server: str) -> None:
    url = request.getfixturevalue(server)
    workers = [start_worker("turns", url, prefix, "s", 8, name) for name in range(3)]
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, "")
    assert_whole_and_ordered(asyncio.run(stored(url, prefix)), writers=3, batches=8, size=3)


@in_event_loop
async def test_a_lock_whose_process_was_killed_is_free_after_its_lease(redis_url: str, prefix: str) -> None:
    async with RedisSession.from_url("s", url=redis_url, key_prefix=prefix) as session:
        assert await session.take_lease("a process that is no more", 0.3)
        with pytest.raises(RunLockTimeoutError):
            async with run_lock(session, timeout=0.05):
                pass
        async with run_lock(session, timeout=10):
            await session.clear_session()
            assert not await session.take_lease("another", 1), "clearing does not let others in"


def test_kill_9_of_writers_leaves_whole_batches(redis_url: str, prefix: str) -> None:
    with start_worker("add", redis_url, prefix, "s", 100_000, 4) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "0\n"
        time.sleep(random.uniform(0.05, 0.2))
        writer.send_signal(signal.SIGKILL)
        said = writer.stdout.read()  # `communicate` would miss what was read ahead with the first line
    acknowledged = [0, *(int(line) for line in said.split("\n")[:-1])]
    found = asyncio.run(stored(redis_url, prefix))
    batches = [int(text.split("/")[0]) for text in found[::4]]
    assert found == [f"{batch}/{n}" for batch in batches for n in range(4)]
    assert batches[: len(acknowledged)] == acknowledged
    assert len(batches) <= len(acknowledged) + 1
