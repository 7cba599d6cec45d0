"""The list of threads, without the packages of LangGraph: whose they are, and their checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...sql.columns import time_from_column, time_to_column
from ...sql.scripts import Row, Script, Statement
from .schema import THREADS
from .tables import CheckpointTables

_LIST = (
    "SELECT t.thread_id, max(t.user_id), min(t.created_at), max(t.updated_at),"
    " (SELECT count(*) FROM langgraph_checkpoints c JOIN langgraph_threads own ON own.id = c.thread"
    " WHERE own.thread_id = t.thread_id)"
    " FROM langgraph_threads t {} GROUP BY t.thread_id {}"
    " ORDER BY max(t.updated_at) DESC, t.thread_id LIMIT ?1"
)
_OF_USER = "WHERE t.user_id = ?{}"
_AFTER = "HAVING max(t.updated_at) < ?{0} OR (max(t.updated_at) = ?{0} AND t.thread_id > ?{1})"
_EXISTS_IN_SQLITE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1"
_EXISTS_ON_SERVER = "SELECT 1 FROM pg_class WHERE relname = ?1 AND pg_table_is_visible(oid)"
_DELETE = "DELETE FROM langgraph_threads WHERE thread_id = ?1 RETURNING 1"


@dataclass(frozen=True)
class ThreadInfo:
    """A thread of LangGraph."""

    thread_id: str
    user_id: str | None
    """The `user_id` that a config of the thread named."""
    created_at: datetime
    updated_at: datetime
    checkpoints: int


class ThreadList(CheckpointTables):
    """The threads in a database."""

    async def list(
        self, *, user_id: str | None = None, after: tuple[datetime, str] | None = None, limit: int = 50
    ) -> Sequence[ThreadInfo]:
        """The threads of a user, or all, those that changed last first.

        `after` is the time of the last change and the id of the thread before the first one. A database that
        no checkpointer has used has none, and is not changed.
        """
        if not await self.exist():
            return []
        parameters: list[Any] = [limit]
        conditions = ["", ""]
        if user_id is not None:
            parameters.append(user_id)
            conditions[0] = _OF_USER.format(len(parameters))
        if after is not None:
            parameters += (time_to_column(after[0]), after[1])
            conditions[1] = _AFTER.format(len(parameters) - 1, len(parameters))
        return await self.fetch(_LIST.format(*conditions), parameters, _infos_from)

    async def delete(self, thread_id: str) -> bool:
        """Delete a thread with all its checkpoints. `False` if it does not exist."""
        if not await self.exist():
            return False
        return await self.write(lambda: _delete(thread_id))

    async def exist(self) -> bool:
        """Whether the database has tables of checkpoints."""
        exists = _EXISTS_IN_SQLITE if self._database.dialect == "sqlite" else _EXISTS_ON_SERVER
        return await self._database.engine.fetch(exists, (THREADS.name,), bool)


def _delete(thread_id: str) -> Script[bool]:
    rows = yield Statement(_DELETE, (thread_id,))
    return bool(rows)


def _infos_from(rows: list[Row]) -> list[ThreadInfo]:
    return [
        ThreadInfo(thread_id, user, time_from_column(created), time_from_column(updated), int(count))
        for thread_id, user, created, updated, count in rows
    ]
