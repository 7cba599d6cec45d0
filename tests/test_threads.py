"""How often the threads of our own processes switch. Those of a user's process are left alone."""

import subprocess
import sys
from pathlib import Path

_REPORT = "import sys; print(sys.getswitchinterval())"
_WORKER = """
import sys
from recollect.cli import main

main(["remember", "The user sails.", "--user", "ada", "--url", sys.argv[1]])
main(["worker", "--url", sys.argv[1], "--until-idle"])
"""
_LIBRARY = """
import asyncio, sys
from recollect import MemoryStore

async def remember():
    async with MemoryStore(sys.argv[1]) as store:
        await store.record_conversation("a", "u", [{"role": "user", "content": "I live in Oslo."}])
        await store.drain(timeout=60)

asyncio.run(remember())
"""


def interval_after(code: str, path: Path) -> float:
    """The switch interval of a new process that has run some code."""
    command = [sys.executable, "-c", f"{code}\n{_REPORT}", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    return float(done.stdout.splitlines()[-1])


def test_a_worker_switches_often(tmp_path: Path) -> None:
    assert interval_after(_WORKER, tmp_path / "memory.db") < 0.001


def test_a_process_of_a_user_stays_as_it_is(tmp_path: Path) -> None:
    assert interval_after(_LIBRARY, tmp_path / "memory.db") == interval_after("", tmp_path)
