"""Where a campaign takes place: a file on a disk, a small disk, or a server with a proxy before it."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, Self, TypeAlias

from recollect import ConnectionLostError, DiskFullError, UnreachableError
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer

from ..clock import shared_clock
from ..disk import POSTGRES_THERE, fill, make_room, small_disk
from ..leaks import deadlocks_in, left_in_postgres, left_in_redis, left_in_sqlite
from ..proxy import CuttingProxy
from .model import Follower, History
from .places import Place
from .stored import check_file, check_postgres, check_redis

ARENAS = 3  # of a place, at most
_SMALL = 48 << 20  # bytes of a small disk
_SMALL_OF_SERVER = 512 << 20
_PATIENCE = 5.0  # seconds that a fault waits for its victims
_LETTING_GO = 10.0  # seconds that a server has to notice that its clients have gone
_FULL = DiskFullError.__name__
_LOST = (_FULL, ConnectionLostError.__name__, UnreachableError.__name__)  # with a server that cannot write


class Arena(Protocol):
    """A place made ready: where it is, what can be done to it, and what is found in it afterwards."""

    @property
    def where(self) -> str:
        """The path or URL, without a driver, by which clients reach it."""
        ...

    @property
    def faults(self) -> "Faults":
        """What can be done to it, beside killing clients."""
        ...

    @property
    def followers(self) -> dict[str, Follower]:
        """What its sessions must hold, by their names."""
        ...

    def check(self, found: Mapping[str, History]) -> list[str]:
        """What is wrong beneath, and what was left behind, in words."""
        ...


class Watch(Protocol):
    """What a fault can see of the clients."""

    def failures(self, *errors: str) -> int:
        """How many calls have ended with an error of one of these names so far."""
        ...


# Does harm, and says whether it took effect.
Fault: TypeAlias = Callable[[random.Random, Watch], bool]
Faults: TypeAlias = Mapping[str, Fault]
Server: TypeAlias = PostgresServer | RedisServer


class FileArena:
    """A SQLite file, on a disk that can be filled where it is small."""

    def __init__(self, place: Place, folder: Path, is_small: bool) -> None:
        self._place = place
        self._folder = folder
        self._path = folder / "sessions.db"
        self.where = str(self._path)
        self.faults: Faults = {"disk full": self._fill} if is_small else {}
        self.followers: dict[str, Follower] = {}

    def check(self, found: Mapping[str, History]) -> list[str]:
        """What is wrong with the file, and locks on it."""
        return left_in_sqlite(self._path) + check_file(self._path, self._place.advanced, found)

    def _fill(self, chance: random.Random, watch: Watch) -> bool:
        return _fill_until_felt(self._folder, chance, lambda: watch.failures(_FULL))


class ServerArena:
    """A server, reached directly or by a proxy that does harm; the kind of it is that of the place."""

    def __init__(
        self,
        place: Place,
        server: Server,
        proxy: CuttingProxy | None,
        followers: dict[str, Follower],
    ) -> None:
        self._place = place
        self._server = server
        self._url = server.url if isinstance(server, RedisServer) else _database(server, place)
        self._proxy = proxy
        self.followers = followers
        self.faults: Faults = {"server killed": self._kill} if proxy is None else _harm(proxy)

    @property
    def where(self) -> str:
        """The URL of the server, or of the proxy before it."""
        if self._proxy is None:
            return self._url
        return self._url.replace(f":{self._server.port}/", f":{self._proxy.port}/")

    def check(self, found: Mapping[str, History]) -> list[str]:
        """What is wrong in the server, and what it still holds of its clients."""
        if isinstance(self._server, RedisServer):
            return self._held() + check_redis(self._server.command, found)
        stored = check_postgres(self._url, self._place.advanced, found)
        return self._held() + deadlocks_in(self._server.log) + stored

    def _kill(self, chance: random.Random, watch: Watch) -> bool:  # noqa: ARG002
        somebody_is_there = bool(self._held(patience=0))
        self._server.kill()
        time.sleep(chance.uniform(0, 0.05))
        self._start()
        return somebody_is_there

    def _start(self) -> None:
        with shared_clock().started_meanwhile():
            self._server.start()

    def _held(self, patience: float = _LETTING_GO) -> list[str]:
        if isinstance(self._server, RedisServer):
            return left_in_redis(self._server.command, patience)
        return left_in_postgres(self._url, patience)


class FullArena(ServerArena):
    """A server whose data are on a disk that can be filled."""

    def __init__(self, place: Place, server: Server, disk: Path) -> None:
        super().__init__(place, server, None, {})
        self._disk = disk
        self.faults: Faults = {"disk full": self._fill}

    def _fill(self, chance: random.Random, watch: Watch) -> bool:
        """A server refuses what it cannot write, or gives up: it is started when there is room again."""
        is_felt = _fill_until_felt(self._disk, chance, lambda: watch.failures(*_LOST))
        if not _wait_for(self._server.answers):
            self._server.kill()
            self._start()
        return is_felt


def _fill_until_felt(disk: Path, chance: random.Random, failures: Callable[[], int]) -> bool:
    """Leave little room or none, until some calls have failed for it; `False` where none has."""
    before = failures()
    try:
        fill(disk, leaving=chance.choice((0, chance.randrange(100_000))))
        enough = before + chance.randint(1, 20)
        _wait_for(lambda: failures() > enough)
    finally:
        make_room(disk)
    return failures() > before


def _harm(proxy: CuttingProxy) -> Faults:
    def cut(chance: random.Random, watch: Watch) -> bool:  # noqa: ARG001
        were_cut = proxy.cut(refuse=chance.random() < 0.5)
        time.sleep(chance.uniform(0, 0.1))
        return were_cut > 0

    def delay(chance: random.Random, watch: Watch) -> bool:  # noqa: ARG001
        proxy.delay(chance.uniform(0.001, 0.03))
        before = proxy.passed
        time.sleep(chance.uniform(0.05, 0.2))
        return proxy.passed > before

    def truncate(chance: random.Random, watch: Watch) -> bool:  # noqa: ARG001
        proxy.truncate_after(chance.randrange(1, 5000))
        return _wait_for(lambda: proxy.has_truncated)

    faults: Faults = {"connections cut": cut, "answers delayed": delay, "answers truncated": truncate}
    return {name: _mended(proxy, fault) for name, fault in faults.items()}


def _mended(proxy: CuttingProxy, fault: Fault) -> Fault:
    def do(chance: random.Random, watch: Watch) -> bool:
        try:
            return fault(chance, watch)
        finally:
            proxy.mend()

    return do


def _wait_for(condition: Callable[[], bool]) -> bool:
    """Wait for the effect of a fault; `False` where nobody meets with it."""
    deadline = time.monotonic() + _PATIENCE
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return met


@contextmanager
def arenas_of(place: Place, servers: "Servers") -> Iterator[list[Arena]]:
    """The arenas of a place, for as long as they are needed."""
    if not place.is_served:
        with TemporaryDirectory(prefix="recollect-faults-") as folder, small_disk(_SMALL) as disk:
            yield [FileArena(place, Path(folder), is_small=False), FileArena(place, disk, is_small=True)]
        return
    server, known = servers.of(place), dict[str, Follower]()
    with CuttingProxy(server.port) as proxy:
        yield [
            ServerArena(place, server, None, known),
            ServerArena(place, server, proxy, known),
            FullArena(place, *servers.on_small_disk(place)),
        ]


class Servers:
    """The servers that places are kept in, each started when it is first needed, by the shared clock."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: dict[str, Server] = {}
        self._on_small_disks: dict[str, tuple[Server, Path]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def of(self, place: Place) -> Server:
        """The server of a place."""
        if place.kept_in not in self._started:
            self._started[place.kept_in] = self._start(place)
        return self._started[place.kept_in]

    def on_small_disk(self, place: Place) -> tuple[Server, Path]:
        """Another of its kind, and the disk of its data."""
        if place.kept_in not in self._on_small_disks:
            disk = self._stack.enter_context(small_disk(_SMALL_OF_SERVER))
            self._on_small_disks[place.kept_in] = self._start(place, disk), disk
        return self._on_small_disks[place.kept_in]

    def _start(self, place: Place, disk: Path | None = None) -> Server:
        if place.kept_in == "redis":
            server: Server = RedisServer(durable=True, inside=disk)
        else:
            server = PostgresServer(inside=disk, settings=POSTGRES_THERE if disk else None)
        with shared_clock().started_meanwhile():
            self._stack.enter_context(server)
        return server


def _database(server: PostgresServer, place: Place) -> str:
    """The URL of a database of the place's own."""
    import psycopg

    name = place.name.replace("-", "_")
    with psycopg.connect(server.url, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
        if known is None:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return f"{server.url.rpartition('/')[0]}/{name}"
