"""The line that a service prints when it is ready."""

import socket
from ipaddress import ip_address

from ...sql.urls import hide_credentials
from ..settings import Settings
from .listener import address_of


def announce(settings: Settings, listener: socket.socket) -> str:
    """Where the service listens, on what database, with which extractor and embedder. It has no password."""
    parts = [
        f"dashboard {_browser_address(listener)}",
        f"database {hide_credentials(settings.database.url)}",
        f"extractor {settings.memory.extractor}",
        f"embedder {settings.memory.embedder}",
    ]
    if settings.server.workers:
        parts.append(f"server processes {settings.server.workers}")
    return f"Recollect listens on {address_of(listener)} ({'; '.join(parts)})"


def _browser_address(listener: socket.socket) -> str:
    """The URL for a browser on this machine: an address such as 0.0.0.0 is none."""
    host, port = listener.getsockname()[:2]
    return f"http://localhost:{port}/" if ip_address(host).is_unspecified else f"{address_of(listener)}/"
