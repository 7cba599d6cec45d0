"""Where memories live in a campaign: a file, or a PostgreSQL behind a proxy, on a disk that can be full."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from recollect.memory.database.schema import TABLES
from recollect.testing.servers.postgres import PostgresServer

from ..clock import JumpingClock
from ..disk import POSTGRES_THERE, make_room, small_disk
from ..leaks import deadlocks_in, left_in_postgres, left_in_sqlite
from ..proxy import CuttingProxy

_MEGABYTE = 1 << 20
_DRIVERS = ("asyncpg", "psycopg")

Rows = dict[str, list[dict[str, Any]]]
"""All rows of all tables, by the name of the table."""


@dataclass
class Place:
    """A database that several processes see, and what can be done to it; what cannot is `None`."""

    name: str
    folder: Path
    """Outside of what is harmed."""
    disk: Path | None = None
    clock: JumpingClock | None = None
    server_clock: JumpingClock | None = None
    server: PostgresServer | None = None
    proxy: CuttingProxy | None = None
    number: int = field(default=0)

    def new_database(self) -> None:
        """Go on with a database in which there is nothing."""
        self.number += 1
        if self.server is not None:
            with psycopg.connect(self.server.url, autocommit=True) as connection:
                connection.execute(b"CREATE DATABASE e%d" % self.number)

    @property
    def url(self) -> str:
        """The database, past the proxy."""
        if self.server is None:
            return str((self.disk or self.folder) / f"e{self.number}.db")
        return self.server.url.rpartition("/")[0] + f"/e{self.number}"

    def url_for(self, client: int) -> str:
        """The database by the proxy and the driver that a client uses."""
        if self.server is None or self.proxy is None:
            return self.url
        by_proxy = self.url.replace(f":{self.server.port}/", f":{self.proxy.port}/")
        return by_proxy.replace("postgresql:", f"postgresql+{_DRIVERS[client % 2]}:")

    def restart(self) -> None:
        """Start the server anew, whatever has become of it."""
        assert self.server is not None
        self.server.kill()
        with _by(self.server_clock):
            self.server.start()

    def is_answering(self) -> bool:
        """Whether the database can be reached."""
        return self.server is None or self.server.answers()

    def rows(self) -> Rows:
        """All that is stored."""
        if self.server is None:
            connection = sqlite3.connect(self.url)
            try:
                return {table.name: _rows(connection, table.name) for table in TABLES}
            finally:
                connection.close()
        with psycopg.connect(self.url) as connection:
            return {table.name: _rows(connection, table.name) for table in TABLES}

    def left(self) -> list[str]:
        """What clients that have ended still hold of the database, and whether they stood in a ring."""
        if self.server is None:
            return left_in_sqlite(Path(self.url))
        return left_in_postgres(self.url) + deadlocks_in(self.server.log)

    def drop_database(self) -> None:
        """Have room again."""
        if self.server is None:
            for part in Path(self.url).parent.glob(f"e{self.number}.db*"):
                part.unlink()
        else:
            with psycopg.connect(self.server.url, autocommit=True) as connection:
                connection.execute(b"DROP DATABASE e%d WITH (FORCE)" % self.number)


def _rows(connection: Any, table: str) -> list[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@contextmanager
def sqlite_place(folder: Path) -> Iterator[Place]:
    """A file on a small disk, with a clock that can jump, as far as this machine has them."""
    with ExitStack() as stack:
        yield Place("sqlite", folder, _disk(stack, 256), _clock(stack))


@contextmanager
def postgres_place(folder: Path) -> Iterator[Place]:
    """A server of our own on a small disk, behind a proxy, with clocks that can jump."""
    with ExitStack() as stack:
        disk, server_clock = _disk(stack, 768), _clock(stack)
        with _by(server_clock):
            server = stack.enter_context(PostgresServer(inside=disk, settings=POSTGRES_THERE))
        proxy = stack.enter_context(CuttingProxy(server.port))
        if disk is not None:
            stack.callback(make_room, disk)
        yield Place("postgresql", folder, disk, _clock(stack), server_clock, server, proxy)


PLACES = {"sqlite": sqlite_place, "postgresql": postgres_place}


def _disk(stack: ExitStack, megabytes: int) -> Path | None:
    try:
        return stack.enter_context(small_disk(megabytes * _MEGABYTE))
    except PermissionError as error:
        print(f"  no disk will be full: {error}")
        return None


def _clock(stack: ExitStack) -> JumpingClock | None:
    try:
        return stack.enter_context(JumpingClock())
    except FileNotFoundError as error:
        print(f"  no clock will jump: {error}")
        return None


def _by(clock: JumpingClock | None) -> AbstractContextManager[None]:
    return clock.started_meanwhile() if clock else nullcontext()


def wait_until(holds: Any, seconds: float) -> bool:
    """Whether something came to hold within a time."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(holds())
