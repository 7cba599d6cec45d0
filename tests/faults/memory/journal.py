"""What a client meant to do and what it was told, in a file that outlives it.

A line is written before an operation and one after it, so a client that is killed leaves at most one
operation of each of its tasks in doubt.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from .model import Operation


class Journal:
    """The journal of one life of a client."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def intend(self, task: int, operation: msgspec.Struct) -> None:
        """Say what is about to be done."""
        self._write("intend", task, msgspec.to_builtins(operation))

    def acknowledged(self, task: int, kind: str, content_id: str = "") -> None:
        """Say that it is done."""
        self._write("acknowledged", task, [kind, content_id])

    def looked(self, task: int, kind: str) -> None:
        """Say that something was read, and was as it must be."""
        self._write("looked", task, kind)

    def refused(self, task: int, error: str) -> None:
        """Say that a call failed, and is made again."""
        self._write("refused", task, error)

    def wrong(self, what: str) -> None:
        """Say that something was not as it must be."""
        self._write("wrong", 0, what)

    def ended(self, left: list[str]) -> None:
        """Say that the client has come to its end, and what it has not let go of."""
        self._write("ended", 0, left)

    def close(self) -> None:
        os.close(self._file)

    def _write(self, what: str, task: int, told: Any) -> None:
        os.write(self._file, (json.dumps([what, task, told]) + "\n").encode())


@dataclass
class Done:
    """What one task has done: acknowledged operations in their order, and the one in doubt, if any."""

    acknowledged: list[tuple[Operation, str]] = field(default_factory=list)
    in_doubt: Operation | None = None


@dataclass
class Life:
    """All that a journal tells."""

    tasks: dict[int, Done] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    """The errors after which a call was made again."""
    wrong: list[str] = field(default_factory=list)
    left: list[str] | None = None
    """What was not let go of; `None` if the client was killed."""


def read_journal(path: Path) -> Life:
    """What a life came to."""
    life = Life()
    for what, task, told in read_lines(path):
        done = life.tasks.setdefault(task, Done())
        if what == "intend":
            done.in_doubt = msgspec.convert(told, Operation)
        elif what == "acknowledged":
            assert done.in_doubt is not None
            done.acknowledged.append((done.in_doubt, told[1]))
            done.in_doubt = None
            life.counts[told[0]] += 1
        elif what == "looked":
            life.counts[told] += 1
        elif what == "refused":
            life.refused[told] += 1
        elif what == "wrong":
            life.wrong.append(told)
        else:
            life.left = told
    return life


def read_lines(path: Path) -> Iterator[tuple[str, int, Any]]:
    """What a journal tells, line by line."""
    for line in path.read_text().splitlines():
        what, task, told = json.loads(line)
        yield what, task, told


class Tail:
    """How far a client has come, read while it goes on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.operations = 0
        self.refusals = 0
        self.has_ended = False

    def look(self) -> int:
        """How many operations have come to their end."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._read += len(whole)
            self.operations += whole.count(b'["acknowledged"') + whole.count(b'["looked"')
            self.refusals += whole.count(b'["refused"')
            self.has_ended = self.has_ended or b'["ended"' in whole
        return self.operations
