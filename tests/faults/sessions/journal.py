"""What clients say before and after each call, in a file that outlives them.

A line is written before a call and one after it. Who is killed in between leaves a call that may have
happened.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

_READING = ("get", "read_forwards", "read_backwards", "title")


class Outcome(StrEnum):
    """How a call ended, for the one who made it."""

    DONE = "done"
    REFUSED = "refused"  # by a `ValueError`: it made no sense, and the model must think so too
    FAILED = "failed"  # with an error that says that nothing happened
    UNKNOWN = "unknown"  # it has happened, or not


@dataclass(frozen=True)
class Call:
    """One call of a session's method."""

    number: int
    writer: str
    session: str
    kind: str
    arguments: tuple[Any, ...] = ()

    @property
    def only_reads(self) -> bool:
        """Whether nothing is changed by it, whatever becomes of it."""
        return self.kind in _READING


@dataclass(frozen=True)
class Ended:
    """A call and how it ended."""

    call: Call
    outcome: Outcome
    value: Any = None
    """What it returned, or the name of its error."""


class Journal:
    """An append-only file of calls."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def begin(self, call: Call) -> None:
        """Say that a call is about to be made."""
        self._write([call.number, call.writer, call.session, call.kind, call.arguments])

    def end(self, call: Call, outcome: Outcome, value: Any = None) -> None:
        """Say how it ended."""
        self._write([call.number, outcome, value])

    def say(self, name: str, value: Any) -> None:
        """Say something else."""
        self._write([name, value])

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

    def _write(self, line: list[Any]) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


@dataclass(frozen=True)
class Said:
    """What a journal says: the calls in the order in which they ended, and what else was said, by name."""

    calls: list[Ended]
    remarks: list[tuple[str, Any]]


def read_journal(path: Path) -> Said:
    """Everything in a journal; calls without an end are at the end, as unknown."""
    begun: dict[int, Call] = {}
    ended: list[Ended] = []
    remarks: list[tuple[str, Any]] = []
    for line in _lines(path):
        match line:
            case [int(number), str(writer), str(session), str(kind), list(arguments)]:
                begun[number] = Call(number, writer, session, kind, tuple(arguments))
            case [int(number), str(outcome), value]:
                ended.append(Ended(begun.pop(number), Outcome(outcome), value))
            case [str(name), value]:
                remarks.append((name, value))
    ended += [Ended(call, Outcome.UNKNOWN, "killed") for call in begun.values()]
    return Said(ended, remarks)


def _lines(path: Path) -> Iterator[Any]:
    if path.exists():
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)
