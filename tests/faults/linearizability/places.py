"""Where sessions are kept, and how each is opened there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer

_KEY = "a key of the proof"


def _plain(url: str, session_id: str, **options: Any) -> Any:
    from recollect import open_session

    return open_session(url, session_id, **options)


def _made(url: str, session_id: str) -> Any:
    return _plain(url, session_id, create_tables=True)


def _advanced(url: str, session_id: str) -> Any:
    return _plain(url, session_id, advanced=True, create_tables=True)


def _encrypted(url: str, session_id: str) -> Any:
    from recollect import EncryptedSession

    return EncryptedSession(session_id, _plain(url, session_id), _KEY, ttl=None)


PLACES: dict[str, Callable[[str, str], Any]] = {
    "sqlite": _plain,
    "advanced-sqlite": _advanced,
    "encrypted": _encrypted,
    "postgresql-asyncpg": _made,
    "postgresql-psycopg": _made,
    "advanced-postgresql": _advanced,
    "redis": _plain,
}
"""How a session is opened, by where it is kept."""

_DRIVERS = {
    "postgresql-asyncpg": "asyncpg",
    "postgresql-psycopg": "psycopg",
    "advanced-postgresql": "asyncpg",
}


def open_at(place: str, url: str, session_id: str) -> Any:
    """A session of this place."""
    return PLACES[place](url, session_id)


def driven(place: str, url: str) -> str:
    """The URL of a PostgreSQL for the driver of a place."""
    return url.replace("postgresql://", f"postgresql+{_DRIVERS[place]}://")


@contextmanager
def server_of(place: str, folder: Path) -> Iterator[str]:
    """The URL of what a place needs, which is there as long as it is needed."""
    if place in _DRIVERS:
        with PostgresServer() as postgres:
            yield driven(place, postgres.url)
    elif place == "redis":
        with RedisServer() as redis:
            yield redis.url
    else:
        yield str(folder / f"{place}.db")
