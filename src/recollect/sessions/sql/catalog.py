"""The catalog of a database: lists its sessions, and deletes those that have been idle for long."""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ...sql.scripts import Engine, Row, Script, Statement
from ...sql.sqlite.connection import EngineOptions
from ...sql.sqlite.registry import acquire_engine, drop_engine, release_engine
from ..protocol import SessionInfo, SessionMetadata, SessionPage
from .dialects import queries_for
from .queries import Queries
from .tables import Tables

_DELETED_PER_TRANSACTION = 200


class SQLCatalog:
    """The sessions of one pair of tables."""

    def __init__(
        self, engine: Engine, queries: Queries, close: Callable[[], None], drop: Callable[[], None]
    ) -> None:
        """`close` and `drop` both release the engine; `drop` never waits."""
        self._engine = engine
        self._queries = queries
        self._close: Callable[[], None] | None = close
        self._drop = drop

    def close(self) -> None:
        """Release the database. May be called more than once."""
        close, self._close = self._close, None
        if close is not None:
            close()

    def __del__(self) -> None:
        if self._close is not None:
            self._drop()

    async def list_sessions(
        self, user_id: str | None, agent_id: str | None, limit: int, cursor: str | None
    ) -> SessionPage:
        """A page of sessions, the most recently used first. Raises `ValueError` for an invalid cursor."""
        after = (None, None) if cursor is None else _decode_cursor(cursor)
        await self._engine.prepare(self._queries.schema)
        rows = await self._engine.fetch(
            self._queries.list_sessions, (user_id, agent_id, *after, limit + 1), list[Row]
        )
        page = rows[:limit]
        next_cursor = _encode_cursor(page[-1]) if len(rows) > limit else None
        return SessionPage([_info_from_row(row) for row in page], next_cursor)

    async def delete_idle_sessions(self, seconds: float) -> int:
        """Delete sessions that were not updated for that long. Returns their number.

        It deletes some in each transaction, so that others can write in between.
        """
        await self._engine.prepare(self._queries.schema)
        deleted = 0
        while some := await self._engine.write(partial(self._delete_some, seconds)):
            deleted += some
        return deleted

    def _delete_some(self, seconds: float) -> Script[int]:
        rows = yield Statement(self._queries.delete_idle_sessions, (float(seconds), _DELETED_PER_TRANSACTION))
        return len(rows)


def open_file_catalog(path: str, tables: Tables, options: dict[str, Any]) -> SQLCatalog:
    """The catalog of a SQLite file, on the engine that sessions with these options share."""
    chosen = {name: options[name] for name in ("durability", "busy_timeout") if name in options}
    engine = acquire_engine(path, EngineOptions(**chosen))
    close, drop = partial(release_engine, engine), partial(drop_engine, engine)
    return SQLCatalog(engine, queries_for("sqlite", tables), close, drop)


def open_server_catalog(url: str, tables: Tables, options: dict[str, Any]) -> SQLCatalog:
    """The catalog at a URL of SQLAlchemy, on the engine that the sessions of that URL share."""
    from ...sql.sqlalchemy.registry import acquire_shared, release_shared

    shared = acquire_shared(url, options.get("engine_kwargs") or {}, options.get("create_tables", False))

    def release() -> None:
        release_shared(shared)

    return SQLCatalog(shared, queries_for(shared.url.get_backend_name(), tables), release, release)


def _info_from_row(row: Row) -> SessionInfo:
    session_id, created_at, updated_at, item_count, user_id, agent_id, title, data = row
    metadata = SessionMetadata(user_id, agent_id, title, json.loads(data) if data else {})
    return SessionInfo(session_id, _utc(created_at), _utc(updated_at), item_count, metadata)


def _utc(stored: object) -> datetime | None:
    """A stored time. `None` if another program stored an invalid one, which must not hide the page."""
    try:
        time = stored if isinstance(stored, datetime) else datetime.fromisoformat(str(stored))
    except ValueError:
        return None
    return time.replace(tzinfo=UTC)


def _encode_cursor(row: Row) -> str:
    session_id, _, updated_at, *_ = row
    return base64.urlsafe_b64encode(json.dumps([str(updated_at), session_id]).encode()).decode()


def _decode_cursor(cursor: str) -> tuple[str, str]:
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor))
        if not isinstance(place, list) or not all(isinstance(part, str) for part in place):
            raise ValueError("not a list of strings")
        updated_at, session_id = place
        datetime.fromisoformat(updated_at)
        return updated_at, session_id
    except (ValueError, TypeError) as error:
        raise ValueError("not a cursor of an earlier page") from error
