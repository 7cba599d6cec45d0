"""Advanced sessions on PostgreSQL, and on SQLite through SQLAlchemy."""

import logging
from typing import Any

from ..sqlalchemy import SQLAlchemySession
from .session import AdvancedSession


class AdvancedSQLAlchemySession(AdvancedSession, SQLAlchemySession):
    """A session with branches, usage and structured queries on a database server.

    `store_usage` adds the cost of a run to its turn when the Runner stores its items. Without it, call
    `store_run_usage` after each run. Further arguments are those of `SQLAlchemySession`.
    """

    def __init__(
        self,
        session_id: str,
        *,
        logger: logging.Logger | None = None,
        store_usage: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(session_id, **kwargs)
        self._configure(logger, store_usage)
