"""Where advanced sessions live, and what is in the tables beneath them."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import recollect
from recollect.sql.scripts import Statement

Item = dict[str, Any]


class MemoryDatabase:
    """A database for each session."""

    def open(self, session_id: str = "s", **options: Any) -> Any:
        return recollect.AdvancedSQLiteSession(session_id=session_id, **options)


@dataclass
class FileDatabase:
    """A SQLite file."""

    path: Path

    def open(self, session_id: str = "s", **options: Any) -> Any:
        return recollect.AdvancedSQLiteSession(session_id=session_id, db_path=self.path, **options)

    def open_plain(self, session_id: str = "s") -> Any:
        return recollect.SQLiteSession(session_id, self.path)

    def arguments(self) -> list[str]:
        """How a process of its own finds it."""
        return [str(self.path)]


@dataclass
class PostgresDatabase:
    """Tables of a PostgreSQL server."""

    url: str
    tables: dict[str, Any]

    def open(self, session_id: str = "s", **options: Any) -> Any:
        return recollect.AdvancedSQLAlchemySession.from_url(
            session_id, url=self.url, **self.tables, **options
        )

    def open_plain(self, session_id: str = "s") -> Any:
        return recollect.SQLAlchemySession.from_url(session_id, url=self.url, **self.tables)

    def arguments(self) -> list[str]:
        """How a process of its own finds it."""
        return [self.url, self.tables["sessions_table"], self.tables["messages_table"]]


SharedDatabase = FileDatabase | PostgresDatabase
Database = MemoryDatabase | SharedDatabase


def database_of(arguments: list[str]) -> SharedDatabase:
    """The database that `arguments()` names."""
    if len(arguments) == 1:
        return FileDatabase(Path(arguments[0]))
    url, sessions, messages = arguments
    return PostgresDatabase(url, {"sessions_table": sessions, "messages_table": messages})


# --- items ---


def said(role: str, text: object) -> Item:
    return {"role": role, "content": str(text)}


def turns(*numbers: int, of: str = "") -> list[Item]:
    """A question and an answer for each number."""
    return [
        item
        for number in numbers
        for item in (said("user", f"{of}q{number}"), said("assistant", f"{of}a{number}"))
    ]


def tool_turn(question: str, tool: str, call_id: str) -> list[Item]:
    """A question, the call of a tool, its output, and an answer."""
    return [
        said("user", question),
        {"type": "function_call", "call_id": call_id, "name": tool, "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": "done"},
        said("assistant", "there"),
    ]


# --- what is stored ---


async def rows(session: Any, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a query past the session, with `{messages}` and the like for the names of tables."""
    found = await session._engine.fetch(with_names(session, statement), parameters, list)
    return [tuple(row) for row in found]


async def change(session: Any, statement: str, *parameters: Any) -> None:
    """One statement that changes the tables past the session, named likewise."""

    def script() -> Any:
        yield Statement(with_names(session, statement), parameters)

    await session._engine.write(script)


def with_names(session: Any, statement: str) -> str:
    tables = vars(session._queries.tables)
    return statement.format(**{name: f'"{table}"' for name, table in tables.items()})


async def branch_names(session: Any) -> list[str]:
    return [branch["branch_id"] for branch in await session.list_branches()]


async def histories(session: Any) -> dict[str, list[Item]]:
    """Every branch and what it shows."""
    return {name: await session.get_items(branch_id=name) for name in await branch_names(session)}


async def assert_consistent(session: Any) -> None:
    """Turns have no gaps, items are in order, each row shows an item, and each item is shown."""
    structure = await rows(
        session,
        "SELECT branch_id, message_id, sequence_number, user_turn_number, branch_turn_number, message_type"
        " FROM {structure} WHERE session_id = ?1 ORDER BY branch_id, message_id",
        session.session_id,
    )
    stored = await rows(session, "SELECT id FROM {messages} WHERE session_id = ?1", session.session_id)
    assert {row[1] for row in structure} == {row[0] for row in stored}, "each item is shown, and is there"
    by_branch: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for branch, *rest in structure:
        by_branch[branch].append(tuple(rest))
    for branch, of_branch in by_branch.items():
        _assert_in_order(branch, of_branch)


def _assert_in_order(branch: str, of_branch: list[tuple[Any, ...]]) -> None:
    ids = [row[0] for row in of_branch]
    sequences = [row[1] for row in of_branch]
    assert ids == sorted(set(ids)), branch
    assert sequences == sorted(set(sequences)), branch
    turn = 0
    for _, _, user_turn, branch_turn, kind in of_branch:
        turn += kind == "user"
        assert user_turn == branch_turn == turn, (branch, of_branch)
