"""Checkpoints and stores of LangGraph, on SQLite and PostgreSQL.

They are copied with LangGraph's own classes, which alone know their formats, and compared after the copy.
"""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, NoReturn

from ...errors import ConflictError, ImportFormatError, InvalidValueError
from ...extras import require_extra
from ...sql.urls import sqlite_path
from ..records import ImportReport, Skipped


def open_source(*_: object) -> NoReturn:
    """Refuse: checkpoints are no records."""
    raise InvalidValueError(
        "langgraph is copied, not read: use `copy_langgraph`, or `recollect import langgraph`"
    )


async def copy_langgraph(source: str, target: str) -> ImportReport:
    """Copy all threads, and the items of a store where the source has one."""
    require_extra("langgraph", "langgraph.checkpoint.base", "copying from LangGraph")
    from ...integrations.langgraph.checkpointer import Checkpointer
    from ...integrations.langgraph.migration import copy_threads
    from ...integrations.langgraph.store.copies import copy_items
    from ...integrations.langgraph.store.store import Store

    report = ImportReport()
    async with AsyncExitStack() as opened:
        saver, store = await _open(source, opened)
        if saver is not None:
            checkpoints = await opened.enter_async_context(Checkpointer(target))
            try:
                found, copied = await copy_threads(saver, checkpoints)
                report.added["checkpoints"] += copied
                report.existing["checkpoints"] += found - copied
            except ConflictError as error:
                report.skip(Skipped("checkpoints", str(error)))
        if store is not None:
            items = await opened.enter_async_context(Store(target))
            found, copied = await copy_items(store, items)
            report.added["store items"] += copied
            report.existing["store items"] += found - copied
    return report


async def _open(source: str, opened: AsyncExitStack) -> tuple[Any, Any]:
    """The saver and the store of a source, each if the source has its tables."""
    path = sqlite_path(source)
    try:
        if path is not None:
            return await _open_file(path, opened)
        return await _open_server(source, opened)
    except ImportError as error:
        name = "sqlite" if path is not None else "postgres"
        raise ImportFormatError(f"install langgraph-checkpoint-{name} to read this source") from error


async def _open_file(path: str, opened: AsyncExitStack) -> tuple[Any, Any]:
    tables = await asyncio.to_thread(_tables_of, Path(path))
    if not tables & {"checkpoints", "store"}:
        raise ImportFormatError(f"{path} has no checkpoints and no store of LangGraph")
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    saver = store = None
    if "checkpoints" in tables:
        saver = await opened.enter_async_context(AsyncSqliteSaver.from_conn_string(path))
    if "store" in tables:
        store = await opened.enter_async_context(AsyncSqliteStore.from_conn_string(path))
    return saver, store


def _tables_of(path: Path) -> set[str]:
    if not path.is_file():
        raise FileNotFoundError(2, "No such file or directory", str(path))
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            return {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error as error:
        raise ImportFormatError(f"{path} is not a SQLite file") from error


async def _open_server(url: str, opened: AsyncExitStack) -> tuple[Any, Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore

    from ..copying.ends import open_end

    async with open_end(url, to_write=False) as end:
        tables = await end.tables()
    if not tables.keys() & {"checkpoints", "store"}:
        raise ImportFormatError("the database has no checkpoints and no store of LangGraph")
    saver = store = None
    if "checkpoints" in tables:
        saver = await opened.enter_async_context(AsyncPostgresSaver.from_conn_string(url))
    if "store" in tables:
        store = await opened.enter_async_context(AsyncPostgresStore.from_conn_string(url))
    return saver, store
