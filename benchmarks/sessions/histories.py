"""Files full of realistic items."""

import os
import shutil
import sqlite3
from collections.abc import Mapping
from itertools import count, islice
from pathlib import Path

from ..shared.items import conversation
from .raw import SCHEMA, encode


class Workspace:
    """A directory with the files of a run. Every contender gets a copy of the same file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._templates: dict[tuple[tuple[str, int], ...], Path] = {}
        self._numbers = count(1)

    def new_path(self) -> Path:
        """Where no file is yet."""
        return self._directory / f"{next(self._numbers)}.db"

    def copy_of(self, histories: Mapping[str, int]) -> Path:
        """A file of its own, with so many items for each session id, flushed to the disk.

        Flushed, because what the kernel still has to write would disturb the writes to be measured.
        """
        key = tuple(histories.items())
        if key not in self._templates:
            self._templates[key] = _write_template(self.new_path(), histories)
        path = self.new_path()
        shutil.copyfile(self._templates[key], path)
        with path.open("rb+") as file:
            os.fsync(file)
        return path


def _write_template(path: Path, histories: Mapping[str, int]) -> Path:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN")
    for statement in SCHEMA:
        connection.execute(statement)
    for session_id, number in histories.items():
        connection.execute("INSERT INTO agent_sessions (session_id) VALUES (?)", (session_id,))
        connection.executemany(
            "INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)",
            ((session_id, encode(item).decode()) for item in islice(conversation(), number)),
        )
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    return path
