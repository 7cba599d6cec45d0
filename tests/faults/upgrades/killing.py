"""Migrations in processes that end where they are told to: `python -m tests.faults.upgrades.killing`.

It reads one JSON object a line, does what it says in processes of its own, and answers in a line. They are
forked from this one, which has all code loaded, so that a thousand of them are quick.
"""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from recollect.migrations import migrate

from .contents import is_file
from .kept import migrate_file

_OF_FILES = (sqlite3.Connection, sqlite3.Cursor)


def main() -> None:
    """Answer until nobody asks any more."""
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _answer(asked: dict[str, Any]) -> list[dict[str, Any]]:
    begin, held = os.pipe()
    children = [_Child(asked, begin, held) for _ in range(asked.get("together", 1))]
    os.close(begin)
    os.close(held)  # this is what lets them begin, all at once
    if asked.get("after") is not None:
        time.sleep(asked["after"])
        children[0].signal(signal.SIGKILL)
    return [child.ending() for child in children]


class _Child:
    """A process that migrates, and tells how that ended."""

    def __init__(self, asked: dict[str, Any], begin: int, held: int) -> None:
        self._told, telling = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(held)
            os.read(begin, 1)
            _migrate_and_tell(asked, telling)
        os.close(telling)

    def signal(self, how: signal.Signals) -> None:
        os.kill(self._process, how)

    def ending(self) -> dict[str, Any]:
        _, status = os.waitpid(self._process, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            print(json.dumps("paused"), flush=True)
            sys.stdin.readline()
            self.signal(signal.SIGCONT)
            _, status = os.waitpid(self._process, 0)
        with os.fdopen(self._told) as told:
            said = told.read()
        code = os.waitstatus_to_exitcode(status)
        ending: dict[str, Any] = json.loads(said) if said else silent_ending(code)
        return ending


def silent_ending(code: int) -> dict[str, Any]:
    """How one ended that said nothing: killed, as it was meant to be, or in a way that nobody meant."""
    return {"ended": "killed"} if code == -signal.SIGKILL else {"ended": "died", "code": code}


# --- in the process that migrates ---


def _migrate_and_tell(asked: dict[str, Any], telling: int) -> None:
    code = 1
    try:
        counter = _Counter(asked.get("at"), asked.get("how", "kill"))
        ending = _migrate(asked["place"], counter)
        os.write(telling, json.dumps(ending).encode())
        code = 0
    finally:
        os._exit(code)  # what the parent has open is not ours to close


def _migrate(place: str, counter: "_Counter") -> dict[str, Any]:
    watch, work = (_watch_files, migrate_file) if is_file(place) else (_watch_servers, migrate)
    watch(counter.count)
    try:
        asyncio.run(work(place))
    except Exception as error:  # noqa: BLE001 - this is where the process ends, and the parent is told
        return {"ended": "failed", "error": type(error).__name__, "statements": counter.statements}
    return {"ended": "finished", "statements": counter.statements}


class _Counter:
    """Counts statements, and ends or stops this process before one of them is run."""

    def __init__(self, at: int | None, how: str) -> None:
        self.statements = 0
        self._at = at
        self._signal = signal.SIGKILL if how == "kill" else signal.SIGSTOP

    def count(self, *_: object) -> None:
        self.statements += 1
        if self.statements == self._at:
            os.kill(os.getpid(), self._signal)


def _watch_files(count: Callable[..., None]) -> None:
    """Count what is done with a file, whoever does it in this process: Python tells of each call."""

    def look(_: object, what: str, called: Any) -> None:
        if what == "c_call" and isinstance(getattr(called, "__self__", None), _OF_FILES):
            count()

    threading.setprofile(look)
    sys.setprofile(look)


def _watch_servers(count: Callable[..., None]) -> None:
    @event.listens_for(Engine, "before_cursor_execute")
    def look(*_: object) -> None:
        count()

    @event.listens_for(Engine, "commit")
    def look_at_commit(*_: object) -> None:
        count()


if __name__ == "__main__":
    main()
