"""The sessions that callers keep in the service, in the usual tables of sessions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ..sessions.manager import open_session
from ..sessions.protocol import SessionMetadata
from ..sessions.tenants import stored_id
from ..sql.urls import sqlite_path
from .problems import Problem
from .settings import DatabaseSettings


class ServiceSessions:
    """Opens the sessions of each tenant."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._url = settings.url
        self._options: dict[str, Any] = {} if sqlite_path(settings.url) is not None else settings.options()

    @asynccontextmanager
    async def open(
        self, tenant: str, session_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> AsyncIterator[Any]:
        """A session of a tenant, which is closed afterwards. A new one gets this owner.

        Adapters of frameworks store sessions of any tenant under ids of their own. Such a session of another
        tenant is refused as if it did not exist.
        """
        metadata = SessionMetadata(user_id, agent_id, None, {"tenant": tenant})
        session: Any = open_session(
            self._url, stored_id(tenant, session_id), metadata=metadata, **self._options
        )
        async with session:
            if (await session.get_metadata()).data.get("tenant", tenant) != tenant:
                raise Problem("not_found", "There is no session with this id.")
            yield session
