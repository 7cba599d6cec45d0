"""Whether a service can do its work, part by part, in fixed words: who may ask is anybody."""

import asyncio
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from ..errors import DiskFullError, MissingTablesError, RecollectError, SchemaMismatchError
from ..memory.database.access import MemoryDatabase
from ..migrations import VERSION_TABLE, known_revisions, newest_revision
from ..sql.scripts import Script, Statement
from ..sql.urls import sqlite_path
from .telemetry.collector import database_of, embedding_of, seconds_behind

if TYPE_CHECKING:
    from .service import Service

State = Literal["ready", "degraded", "not_ready"]

_FRESH = 1.0  # seconds: nobody needs a key to ask, and each answer takes the database some work
_LONGEST_LOOK = 3.0
_LATE = 60.0  # seconds that due work may wait before somebody should know
_REVISION = f"SELECT version_num FROM {VERSION_TABLE}"


@dataclass(frozen=True)
class Part:
    """How a part of the service is, and why, if it is not as it should be."""

    state: State
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The part as JSON tells it."""
        return {"state": self.state} | ({} if self.why is None else {"why": self.why})


READY = Part("ready")
STOPPING = Part("not_ready", "stopping")
DISK_FULL = Part("not_ready", "disk full")
NO_LEARNER = Part("degraded", "no learner")


def state_of(parts: dict[str, Part]) -> State:
    """The state of the whole: that of its worst part."""
    states: tuple[State, ...] = ("not_ready", "degraded")
    return next((state for state in states if any(part.state == state for part in parts.values())), "ready")


def schema_at(revision: str | None) -> Part:
    """How a schema is at a revision; one ahead of us is for those who will replace us, and serves us too."""
    if revision == newest_revision():
        return READY
    if revision is None or revision in known_revisions():
        return Part("not_ready", "behind")
    return Part("degraded", "ahead")


class Readiness:
    """Looks at the parts of a service, and remembers for a moment what it saw."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._seen: dict[str, Part] = {}
        self._seen_at = -float("inf")
        self._looking = asyncio.Lock()

    async def look(self) -> dict[str, Part]:
        """The parts by their names, each with its state."""
        async with self._looking:
            if time.monotonic() - self._seen_at >= _FRESH:
                self._seen, self._seen_at = await self._parts(), time.monotonic()
        return self._seen | self._now()

    def _now(self) -> dict[str, Part]:
        """The parts that are known without looking, as they are at this moment."""
        parts: dict[str, Part] = {}
        if self._service.is_stopping:
            parts["server"] = STOPPING
        if database_of(self._service.memory).is_full:
            parts["disk"] = DISK_FULL
        if not self._service.is_learning and self._seen["workers"].state != "not_ready":
            parts["workers"] = NO_LEARNER
        return parts

    async def _parts(self) -> dict[str, Part]:
        database = await _guarded(self._database)
        if database.state != "ready":
            unknown = Part("not_ready", "database")
            return {"server": READY, "database": database, "schema": unknown, "workers": unknown}
        return {
            "server": READY,
            "database": database,
            "disk": await _guarded(self._disk),
            "schema": await _guarded(self._schema),
            "workers": await _guarded(self._workers),
            "embedder": self._embedder(),
            "provider": self._provider(),
        }

    async def _database(self) -> Part:
        await database_of(self._service.memory).fetch("SELECT 1", (), list)
        return READY

    async def _disk(self) -> Part:
        if await is_disk_full(database_of(self._service.memory), self._service):
            return DISK_FULL
        return Part("degraded", "disk nearly full") if has_little_space(self._service) else READY

    async def _schema(self) -> Part:
        """On a server it is migrated by hand; a file, or a server in development, is by us."""
        database = database_of(self._service.memory)
        if database._database.dialect == "sqlite" or self._service.settings.database.create_tables:
            return READY
        rows = await database.fetch(_REVISION, (), list)
        return schema_at(rows[0][0] if rows else None)

    async def _workers(self) -> Part:
        late = await seconds_behind(database_of(self._service.memory))
        return READY if late < _LATE else Part("degraded", "behind")

    def _embedder(self) -> Part:
        learning, embedding = self._service.learning, embedding_of(self._service.memory)
        is_failing = embedding is not None and embedding.last_error is not None
        if learning is not None:
            is_failing = learning.is_embedder_failing
        return Part("degraded", "failing") if is_failing else READY

    def _provider(self) -> Part:
        return READY if self._service.provider.agents() else Part("not_ready", "no agents")


async def _guarded(look: Callable[[], Awaitable[Part]]) -> Part:
    """What a look tells, or that it failed, in a word."""
    try:
        async with asyncio.timeout(_LONGEST_LOOK):
            return await look()
    except (MissingTablesError, SchemaMismatchError):
        return Part("not_ready", "not migrated")
    except TimeoutError:
        return Part("not_ready", "slow")
    except (RecollectError, OSError):
        return Part("not_ready", "unreachable")


# --- disk space ---

if TYPE_CHECKING:
    from .service import Service

_NEARLY_FULL = 64 * 2**20  # bytes that are left
_TRIED = 8 * 2**20  # bytes that must fit: room for a few requests, and not only for a small one
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_ROWS_OF_TRIAL = _TRIED // 64  # which is about the size of each


async def is_disk_full(database: MemoryDatabase, service: "Service") -> bool:
    """Whether nothing can be written, because the disk of the database is full."""
    learning = service.learning
    is_suspected = database.is_full or (learning is not None and learning.is_disk_full)
    folder = _folder_of(service.settings.database.url)
    if not is_suspected and not (folder and is_nearly_full(folder)):
        return False
    is_full = await (_is_server_full(database) if folder is None else asyncio.to_thread(_is_full, folder))
    if not is_full:
        database.forget_full()
    return is_full


def has_little_space(service: "Service") -> bool:
    """Whether the disk of a SQLite file is nearly full; of a server that is not known."""
    folder = _folder_of(service.settings.database.url)
    return folder is not None and is_nearly_full(folder)


def is_nearly_full(folder: Path) -> bool:
    """Whether a file system has little space left."""
    return shutil.disk_usage(folder).free < _NEARLY_FULL


def _folder_of(url: str) -> Path | None:
    path = sqlite_path(url)
    return None if path in (None, ":memory:") else Path(str(path)).resolve().parent


def _is_full(folder: Path) -> bool:
    """Whether a small file cannot be written to a folder; it is gone afterwards."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".recollect-") as file:
            _take(file)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        return True
    return False


def _take(file: IO[bytes]) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, _TRIED)
    else:
        file.write(bytes(_TRIED))
        file.flush()


async def _is_server_full(database: MemoryDatabase) -> bool:
    """Whether PostgreSQL cannot take space for a table, which is gone with its transaction."""
    try:
        await database.write(_take_space)
    except DiskFullError:
        return True
    return False


def _take_space() -> Script[None]:
    yield Statement(
        "CREATE TEMPORARY TABLE recollect_space ON COMMIT DROP AS"
        f" SELECT md5(CAST(random() AS TEXT)) AS filler FROM generate_series(1, {_ROWS_OF_TRIAL})"
    )
