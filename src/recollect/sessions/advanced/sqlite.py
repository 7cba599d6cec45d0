"""Advanced sessions in a SQLite file."""

import logging
from pathlib import Path
from typing import Any

from ..sqlite import SQLiteSession
from .session import AdvancedSession


class AdvancedSQLiteSession(AdvancedSession, SQLiteSession):
    """A session with branches, usage and structured queries, on the tables of the Agents SDK.

    `store_usage` adds the cost of a run to its turn when the Runner stores its items. Without it, call
    `store_run_usage` after each run. Tables that are missing are made, with or without `create_tables`.
    Further arguments are those of `SQLiteSession`.
    """

    def __init__(
        self,
        *,
        session_id: str,
        db_path: str | Path = ":memory:",
        create_tables: bool = False,  # noqa: ARG002 - for compatibility with the SDK
        logger: logging.Logger | None = None,
        session_settings: Any = None,
        store_usage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(session_id, db_path, session_settings=session_settings, **kwargs)
        self._configure(logger, store_usage)
