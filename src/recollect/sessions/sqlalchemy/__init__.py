"""Sessions on PostgreSQL, and on any database that SQLAlchemy reaches."""

from ...extras import require_extra

require_extra("postgres", "sqlalchemy.ext.asyncio", "SQLAlchemySession")

from .session import SQLAlchemySession  # noqa: E402 - only now is it known that it can be imported

__all__ = ["SQLAlchemySession"]
