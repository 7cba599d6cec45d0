"""The backends whose promises are put to the test, and what each is put through."""

from dataclasses import dataclass
from typing import Any

from recollect import EncryptedSession, open_session

KEY = "the key of a campaign"
_RAW = {"postgresql": "postgresql", "redis": "redis", "sqlite": "file"}


@dataclass(frozen=True)
class Place:
    """A backend: how its sessions are opened, and its share of the work."""

    name: str
    scheme: str
    operations: int
    """Its share, among all places."""
    faults: int
    """Likewise."""
    advanced: bool = False
    encrypted: bool = False

    @property
    def kept_in(self) -> str:
        """What keeps the data: a `file`, `postgresql` or `redis`."""
        return _RAW[self.scheme.partition("+")[0]]

    @property
    def is_served(self) -> bool:
        """Whether a server has it: what was sent there may still happen after its sender has gone."""
        return self.kept_in != "file"

    def url(self, where: str) -> str:
        """The URL for sessions of what is at a path, or at a URL without a driver."""
        if self.kept_in == "file":
            return where if self.scheme == "sqlite" else f"{self.scheme}:///{where}"
        return f"{self.scheme}://{where.partition('://')[2]}"

    def open(self, url: str, session_id: str) -> Any:
        """A session there."""
        options = {"create_tables": True} if "+" in self.scheme else {}
        session = open_session(url, session_id, advanced=self.advanced, **options)
        return EncryptedSession(session_id, session, KEY, ttl=None) if self.encrypted else session


PLACES = (
    Place("sqlite", "sqlite", 260_000, 180),
    Place("sqlite-advanced", "sqlite", 100_000, 90, advanced=True),
    Place("sqlite-encrypted", "sqlite", 80_000, 80, encrypted=True),
    Place("aiosqlite", "sqlite+aiosqlite", 20_000, 40),
    Place("postgresql-asyncpg", "postgresql+asyncpg", 90_000, 100),
    Place("postgresql-psycopg", "postgresql+psycopg", 30_000, 60),
    Place("postgresql-advanced", "postgresql+asyncpg", 30_000, 50, advanced=True),
    Place("redis", "redis", 90_000, 100),
)


def place_named(name: str) -> Place:
    """The place of a name."""
    return next(place for place in PLACES if place.name == name)
