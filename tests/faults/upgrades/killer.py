"""Migrations that end where they are told to."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_TREE = Path(__file__).parents[3]


class Killer:
    """Runs migrations in processes, and ends them where it is asked to."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.upgrades.killing"],
            cwd=_TREE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # so that the processes it forks can be ended with it
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()

    def migrate(self, place: str, **how: Any) -> dict[str, Any]:
        """Migrate, and be killed at a statement (`at`) or after some seconds (`after`); how it ended."""
        (ended,) = self._ask({"place": place, **how})
        return dict(ended)

    def migrate_together(self, place: str, count: int) -> list[dict[str, Any]]:
        """Migrate in several processes that begin at the same time; how they ended."""
        return list(self._ask({"place": place, "together": count}))

    def migrate_with_pause(self, place: str, at: int, meanwhile: Callable[[], None]) -> dict[str, Any]:
        """Migrate, and stop before a statement while something else is done; how it ended."""
        if self._ask({"place": place, "at": at, "how": "pause"}) == "paused":
            meanwhile()
            (ended,) = self._ask("go on")
            return dict(ended)
        raise ValueError(f"there are fewer than {at} statements")

    def _ask(self, what: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
