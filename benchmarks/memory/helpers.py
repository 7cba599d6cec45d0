"""Processes beside the suite that are asked line by line: a model provider, and peers in their own Python."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

API_KEY = "test-key"
_ROOT = Path(__file__).resolve().parents[2]


class Helper:
    """A process that answers each line with a line."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT, env=environment
        )

    def read(self) -> str:
        """The next line it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a helper ended with code {self._process.wait()}, and was not done")
        return line.rstrip("\n")

    def ask(self, value: Any) -> Any:
        """What it says to a value; both are JSON."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()
        return json.loads(self.read())

    def end(self) -> None:
        """End its input, and wait for it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass(frozen=True)
class Figures:
    """What a provider has done so far."""

    requests: int
    seconds: float


class Provider:
    """A provider of models that others can reach by its URL."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper
        self.base_url = helper.read()

    def figures(self) -> Figures:
        """What it has done so far."""
        return Figures(**self._helper.ask("figures"))


@contextmanager
def provider(*arguments: str) -> Iterator[Provider]:
    """A provider that answers at once; with `hold`, it never does."""
    helper = Helper([sys.executable, "-m", f"{__package__}.provider_process", *arguments])
    try:
        yield Provider(helper)
    finally:
        helper.end()
