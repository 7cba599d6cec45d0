"""Imports sessions from a SQLite file of the Agents SDK, written by any of its session classes."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ImportFormatError, InvalidItemError
from ..items import Item, decode_item, encode_items
from ..sql.sqlite.connection import connect_reader, redact_contents
from ..text_checks import check_text
from .changes import change_history
from .protocol import Session
from .sql.tables import Tables

# A damaged file can make SQLite allocate too much memory, or quote bytes that are not text.
_FAULTS = (sqlite3.Error, MemoryError, UnicodeDecodeError)
_PLAIN = 'SELECT id, CAST(message_data AS BLOB) FROM "{messages}" WHERE session_id = ? ORDER BY id'
# The main branch includes items without structure: a plain session wrote them, and they must not be lost.
_BRANCH = """
SELECT m.id, CAST(m.message_data AS BLOB) FROM "{messages}" m
LEFT JOIN message_structure s ON s.message_id = m.id AND s.session_id = m.session_id
WHERE m.session_id = ? AND coalesce(s.branch_id, 'main') = ?
ORDER BY m.id
"""


@dataclass
class ImportReport:
    """The result of an import."""

    sessions: int = 0
    items: int = 0
    corrupt_rows: int = 0
    sessions_left_alone: int = 0
    names_passed_over: int = 0
    """Sessions and branches of a damaged file whose names are not valid session ids."""
    atomic: bool = True
    """Whether each session was filled in one atomic step. If not, the sessions are not `Rewritable`."""
    branches: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The original session and branch of each session that was created from a branch."""


async def import_sdk_sessions(
    source: str | Path,
    open_session: Callable[[str], Session],
    *,
    sessions_table: str = "agent_sessions",
    messages_table: str = "agent_messages",
) -> ImportReport:
    """Copy every session of an SDK file into the session that `open_session(session_id)` returns.

    Takes files of `SQLiteSession`, `AsyncSQLiteSession`, `AdvancedSQLiteSession` and, on SQLite,
    `SQLAlchemySession`. Branches other than `main` become sessions named `session:branch`. A session that
    already has items is skipped, so an interrupted import can be repeated.
    """
    file = _SDKFile(Path(source), Tables(sessions_table, messages_table))
    report = ImportReport()
    histories, report.names_passed_over = await asyncio.to_thread(file.names)
    taken = {session_id for session_id, _ in histories}
    for session_id, branch_id in histories:
        name = _name_of(session_id, branch_id, taken)
        if branch_id not in (None, "main"):
            report.branches[name] = (session_id, str(branch_id))
        items, corrupt = await asyncio.to_thread(file.items, session_id, branch_id)
        report.corrupt_rows += corrupt
        await _copy(open_session(name), items, report)
    return report


def _name_of(session_id: str, branch_id: str | None, taken: set[str]) -> str:
    """Return the session's own id, or for a branch other than `main` an id that is not taken."""
    if branch_id in (None, "main"):
        return session_id
    name = f"{session_id}:{branch_id}"
    while name in taken:
        name += "'"
    return name


async def _copy(session: Session, items: list[Item], report: ImportReport) -> None:
    taken = False

    def fill_if_empty(existing: list[Item]) -> list[Item]:
        nonlocal taken
        taken = not existing
        return existing or items

    report.atomic &= await change_history(session, fill_if_empty)
    if taken:
        report.sessions += 1
        report.items += len(items)
    else:
        report.sessions_left_alone += 1


def _can_be_stored(item: Item) -> bool:
    """Whether we can store an item. The SDK also stores values that are not JSON, such as NaN."""
    try:
        encode_items([item])
    except InvalidItemError:
        return False
    return True


def _is_name(value: object) -> bool:
    """Whether a value is a valid name. SQLite columns can hold any type, also in a damaged file."""
    try:
        check_text("name", value)
    except (TypeError, ValueError):
        return False
    return True


def _connect_read_only(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True)


class _SDKFile:
    """An SDK file, opened read-only."""

    def __init__(self, path: Path, tables: Tables) -> None:
        self._path = path
        self._tables = tables

    def names(self) -> tuple[list[tuple[str, str | None]], int]:
        """Return each session with each of its branches, and the number of invalid names."""
        with self._connection() as connection:
            rows = connection.execute(f'SELECT session_id FROM "{self._tables.sessions}"').fetchall()
            sessions = [session_id for (session_id,) in rows if _is_name(session_id)]
            nameless = len(rows) - len(sessions)
            if not self._is_advanced(connection):
                return [(session_id, None) for session_id in sessions], nameless
            pairs = connection.execute("SELECT DISTINCT session_id, branch_id FROM message_structure")
            stored = pairs.fetchall()
            branches = [pair for pair in stored if all(map(_is_name, pair))]
            found = sorted({*((session_id, "main") for session_id in sessions), *branches})
            return found, nameless + len(stored) - len(branches)

    def items(self, session_id: str, branch_id: str | None) -> tuple[list[Item], int]:
        """Return the items of a session or branch, and the number of corrupt rows."""
        sql, parameters = (_PLAIN, (session_id,)) if branch_id is None else (_BRANCH, (session_id, branch_id))
        with self._connection() as connection:
            rows = connection.execute(sql.format(messages=self._tables.messages), parameters).fetchall()
        items = [
            item for _, stored in rows if (item := decode_item(stored)) is not None and _can_be_stored(item)
        ]
        return items, len(rows) - len(items)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(connect_reader(str(self._path.resolve()), _connect_read_only)) as connection:
                yield connection
        except _FAULTS as error:
            redact_contents(error)
            raise ImportFormatError(f"{self._path} is not a file of the Agents SDK: {error}") from error

    @staticmethod
    def _is_advanced(connection: sqlite3.Connection) -> bool:
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'message_structure'")
        return found.fetchone() is not None
