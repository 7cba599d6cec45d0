"""The sessions that callers keep in the service, in the usual tables of sessions."""

from typing import Any
from urllib.parse import quote

from ..memory.rights.personal_data import DEFAULT_TENANT
from ..sessions.manager import open_session
from ..sessions.protocol import SessionMetadata
from ..sql.urls import sqlite_path
from .settings import DatabaseSettings

_OF_TENANT = "tenant:"


class ServiceSessions:
    """Opens the sessions of each tenant."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._url = settings.url
        self._options: dict[str, Any] = {} if sqlite_path(settings.url) is not None else settings.options()

    def open(
        self, tenant: str, session_id: str, user_id: str | None = None, agent_id: str | None = None
    ) -> Any:
        """A handle on a session of a tenant, which the caller closes. A new one gets this owner."""
        metadata = SessionMetadata(user_id, agent_id, None, {"tenant": tenant})
        return open_session(self._url, stored_id(tenant, session_id), metadata=metadata, **self._options)


def stored_id(tenant: str, session_id: str) -> str:
    """The id of a session in the database. No two tenants share one.

    Sessions of the default tenant have the same id as for a program that opens the database itself.
    """
    if tenant == DEFAULT_TENANT and not session_id.startswith(_OF_TENANT):
        return session_id
    return f"{_OF_TENANT}{quote(tenant, safe='')}/{session_id}"
