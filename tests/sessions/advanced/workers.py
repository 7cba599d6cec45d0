"""Processes that work on one database at once."""

import subprocess
import sys
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("advanced_worker.py")


class Worker:
    """A process with a task, which it begins when it is told to."""

    def __init__(self, database: Any, task: str, name: str = "w", session_id: str = "s") -> None:
        command = [sys.executable, str(WORKER), task, name, session_id, *database.arguments()]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def next_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def wait_until_ready(self) -> None:
        if self.next_line() != "ready":
            raise AssertionError(self.process.communicate()[1])

    def begin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def kill(self) -> list[str]:
        """What it has said since, when it is ended at once."""
        assert self.process.stdout is not None
        self.process.kill()
        # `communicate` would pass over what was read ahead with the last line.
        said = self.process.stdout.read().splitlines()
        self.process.communicate()
        return said

    def end(self) -> list[str]:
        """What it says until it ends, after a check that it ended well."""
        output, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        return output.splitlines()


def at_once(workers: list[Worker]) -> list[list[str]]:
    """What workers say that begin together."""
    for worker in workers:
        worker.wait_until_ready()
    for worker in workers:
        worker.begin()
    return [worker.end() for worker in workers]
