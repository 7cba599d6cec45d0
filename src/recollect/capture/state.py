"""What capture notes on this machine: which files were read, which commands worked, states of work.

A small SQLite file beside the socket of the daemon, mode 0600. It holds no conversation: losing it costs a
second reading of the transcripts. Commands are hashes.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..private_files import create_private

_TABLES = """
CREATE TABLE IF NOT EXISTS files
  (place TEXT, path TEXT, size INTEGER, changed INTEGER, PRIMARY KEY (place, path));
CREATE TABLE IF NOT EXISTS commands
  (project TEXT, command TEXT, session TEXT, PRIMARY KEY (project, command, session));
CREATE TABLE IF NOT EXISTS told (project TEXT, command TEXT, PRIMARY KEY (project, command));
CREATE TABLE IF NOT EXISTS work
  (session TEXT PRIMARY KEY, state TEXT, is_given INTEGER DEFAULT 0, made TEXT DEFAULT CURRENT_TIMESTAMP);
"""
_LEAST_SESSIONS = 2
_DAYS_OF_WORK = 30


def capture_home() -> Path:
    """The folder of the daemon: `RECOLLECT_CAPTURE_HOME`, or else `.recollect/capture` in the home folder."""
    given = os.environ.get("RECOLLECT_CAPTURE_HOME")
    return Path(given) if given else Path.home() / ".recollect" / "capture"


class CaptureState:
    """The notes of one machine. Each change is a transaction, so several processes may share them."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or capture_home()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private(folder / "state.db")
        self._connection = sqlite3.connect(folder / "state.db", timeout=10, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def is_read(self, place: str, path: Path, stamp: tuple[int, int]) -> bool:
        """Whether a file was read into a database as it is now."""
        query = "SELECT size, changed FROM files WHERE place = ? AND path = ?"
        return bool(self._connection.execute(query, (place, str(path))).fetchone() == stamp)

    def note_read(self, place: str, path: Path, stamp: tuple[int, int]) -> None:
        """Note that a file was read into a database. Call it after the commit."""
        self._connection.execute("REPLACE INTO files VALUES (?, ?, ?, ?)", (place, str(path), *stamp))

    def note_commands(self, project: str, session: str, commands: Iterable[str]) -> list[str]:
        """Note commands that worked, and return those to be remembered: they worked elsewhere, too."""
        found = []
        for command in commands:
            key = _hash(command)
            self._connection.execute(
                "INSERT OR IGNORE INTO commands VALUES (?, ?, ?)", (project, key, session)
            )
            query = "SELECT count(*) FROM commands WHERE project = ? AND command = ?"
            (count,) = self._connection.execute(query, (project, key)).fetchone()
            query = "SELECT 1 FROM told WHERE project = ? AND command = ?"
            if count >= _LEAST_SESSIONS and not self._connection.execute(query, (project, key)).fetchone():
                found.append(command)
        return found

    def note_told(self, project: str, commands: Iterable[str]) -> None:
        """Note that commands are remembered. One whose entry is deleted later does not come back."""
        rows = [(project, _hash(command)) for command in commands]
        self._connection.executemany("INSERT OR IGNORE INTO told VALUES (?, ?)", rows)

    def store_work(self, session: str, state: dict[str, Any]) -> None:
        """Store the state of the work of a session."""
        self._connection.execute(
            "DELETE FROM work WHERE made < datetime('now', ?)", (f"-{_DAYS_OF_WORK} days",)
        )
        self._connection.execute(
            "REPLACE INTO work (session, state) VALUES (?, ?)", (session, json.dumps(state))
        )

    def find_work(self, session: str) -> dict[str, Any] | None:
        """The state of the work of a session, if it was not given back yet."""
        query = "SELECT state FROM work WHERE session = ? AND NOT is_given"
        row = self._connection.execute(query, (session,)).fetchone()
        found: dict[str, Any] | None = json.loads(row[0]) if row else None
        return found

    def note_given(self, session: str) -> None:
        """Note that the state of the work of a session was given back."""
        self._connection.execute("UPDATE work SET is_given = 1 WHERE session = ?", (session,))


def _hash(command: str) -> str:
    return hashlib.sha256(command.encode()).hexdigest()
