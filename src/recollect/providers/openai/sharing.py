"""Stores on an engine that somebody else has opened, and closes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ...sql.database import Database, SQLStore

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

S = TypeVar("S", bound=SQLStore)


def open_on(
    kind: type[S],
    url: str | None,
    engine: "AsyncEngine | None",
    create_tables: bool,
    engine_kwargs: Mapping[str, Any] | None,
) -> S:
    """A store at a URL, whose engine all there share; or on an engine, which is never disposed of."""
    if engine is None:
        assert url is not None
        return kind(url, create_tables=create_tables, engine_kwargs=engine_kwargs)
    store = kind.__new__(kind)
    store._database = _database_on(engine, create_tables)
    return store


def _database_on(engine: "AsyncEngine", create_tables: bool) -> Database:
    from ...sessions.sqlalchemy import SQLAlchemySession

    # A session on the engine has what runs scripts there, and what all know who use the engine.
    running = SQLAlchemySession("shared", engine=engine, create_tables=create_tables)._engine
    return Database(running, engine.dialect.name, lambda: None, lambda: None)
