"""The health of a service, part by part, in fixed words: the endpoint needs no key.

Disk space: the database remembers a write that failed for lack of space. From then on, and while the file
system of a SQLite file is nearly full, each check allocates some space and gives it back, so the service
becomes ready again as soon as there is space.
"""

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

from ..errors import FileReplacedError, MissingTablesError, RecollectError, SchemaMismatchError
from ..sql.schema import VERSIONS
from ..sql.sqlalchemy.revisions import READ_REVISION
from ..sql.urls import sqlite_path

if TYPE_CHECKING:
    from .service import Service

State = Literal["ready", "degraded", "not_ready"]

_CACHE_SECONDS = 1.0  # anybody may call the endpoint, and each check queries the database
_TIMEOUT = 3.0
_LATE = 60.0  # seconds that due work may wait before the workers count as degraded

_NEARLY_FULL = 64 * 2**20  # free bytes
_PROBE_BYTES = 8 * 2**20  # must fit: enough for a few requests, not only for a small one
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class PartHealth:
    """The state of one part of the service, with the reason if it is not ready."""

    state: State
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the part."""
        return {"state": self.state} | ({} if self.why is None else {"why": self.why})


READY = PartHealth("ready")
STOPPING = PartHealth("not_ready", "stopping")
DISK_FULL = PartHealth("not_ready", "disk full")
NO_LEARNER = PartHealth("degraded", "no learner")
LOST_KEYS = PartHealth("not_ready", "replaced")
"""The database has none of the keys that were created for this service."""


def worst_state(parts: dict[str, PartHealth]) -> State:
    """The state of the whole service, which is that of its worst part."""
    states: tuple[State, ...] = ("not_ready", "degraded")
    return next((state for state in states if any(part.state == state for part in parts.values())), "ready")


def schema_health(revision: str | None) -> PartHealth:
    """The health of a schema at a revision.

    A schema ahead of this process is degraded, not an error: during a rolling upgrade the old instances keep
    serving on it.
    """
    if revision == VERSIONS[-1]:
        return READY
    if revision is None or revision in VERSIONS:
        return PartHealth("not_ready", "behind")
    return PartHealth("degraded", "ahead")


class Readiness:
    """Checks the parts of a service, and caches the result for a second."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._parts: dict[str, PartHealth] = {}
        self._checked_at = -float("inf")
        self._lock = asyncio.Lock()

    async def check(self) -> dict[str, PartHealth]:
        """The health of each part by its name."""
        async with self._lock:
            if time.monotonic() - self._checked_at >= _CACHE_SECONDS:
                self._parts, self._checked_at = await self._check_parts(), time.monotonic()
        return self._parts | self._current_state()

    def _current_state(self) -> dict[str, PartHealth]:
        """The parts whose state is known without a query, so it is never cached."""
        parts: dict[str, PartHealth] = {}
        if self._service.is_stopping:
            parts["server"] = STOPPING
        if self._service.memory.monitor.is_disk_full:
            parts["disk"] = DISK_FULL
        if not self._service.is_learning and self._parts["workers"].state != "not_ready":
            parts["workers"] = NO_LEARNER
        return parts

    async def _check_parts(self) -> dict[str, PartHealth]:
        database = await _guarded(self._check_database)
        if database.state != "ready":
            unknown = PartHealth("not_ready", "database")
            return {"server": READY, "database": database, "schema": unknown, "workers": unknown}
        return {
            "server": READY,
            "database": database,
            "disk": await _guarded(self._check_disk),
            "schema": await _guarded(self._check_schema),
            "workers": await _guarded(self._check_workers),
            "embedder": self._check_embedder(),
            "provider": self._check_provider(),
        }

    async def _check_database(self) -> PartHealth:
        await self._service.memory.monitor.ping()
        try:
            return LOST_KEYS if await self._service.keys.are_lost() else READY
        except (MissingTablesError, SchemaMismatchError):  # which the part `schema` says
            return READY

    async def _check_disk(self) -> PartHealth:
        if await is_disk_full(self._service):
            return DISK_FULL
        folder = _folder_of(self._service.settings.database.url)
        is_low = folder is not None and is_nearly_full(folder)
        return PartHealth("degraded", "disk nearly full") if is_low else READY

    async def _check_schema(self) -> PartHealth:
        """Check the revision of a server that an operator migrates. The service migrates files itself."""
        settings = self._service.settings.database
        if sqlite_path(settings.url) is not None or settings.create_tables:
            return READY
        rows = await self._service.memory.monitor.fetch_rows(READ_REVISION)
        return schema_health(rows[0][0] if rows else None)

    async def _check_workers(self) -> PartHealth:
        late = await self._service.memory.monitor.seconds_behind()
        return READY if late < _LATE else PartHealth("degraded", "behind")

    def _check_embedder(self) -> PartHealth:
        learning = self._service.learning
        embedder = self._service.memory.monitor if learning is None else learning
        return PartHealth("degraded", "failing") if embedder.is_embedder_failing else READY

    def _check_provider(self) -> PartHealth:
        return READY if self._service.provider.agents() else PartHealth("not_ready", "no agents")


async def _guarded(check: Callable[[], Awaitable[PartHealth]]) -> PartHealth:
    """The result of a check; a failed check is not ready, with a fixed reason."""
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await check()
    except (MissingTablesError, SchemaMismatchError):
        return PartHealth("not_ready", "not migrated")
    except FileReplacedError:
        return PartHealth("not_ready", "file replaced or deleted")
    except TimeoutError:
        return PartHealth("not_ready", "slow")
    except (RecollectError, OSError):
        return PartHealth("not_ready", "unreachable")


# --- disk space ---


async def is_disk_full(service: "Service") -> bool:
    """Whether nothing can be written because the disk of the database is full."""
    monitor, learning = service.memory.monitor, service.learning
    has_failed = monitor.is_disk_full or (learning is not None and learning.is_disk_full)
    folder = _folder_of(service.settings.database.url)
    if not has_failed and not (folder and is_nearly_full(folder)):
        return False
    if folder is None:
        is_full = not await monitor.can_allocate(_PROBE_BYTES)
    else:
        is_full = await asyncio.to_thread(_is_full, folder)
    if not is_full:
        monitor.clear_disk_full()
    return is_full


def is_nearly_full(folder: Path) -> bool:
    """Whether the file system of a folder has little space left."""
    return shutil.disk_usage(folder).free < _NEARLY_FULL


def _folder_of(url: str) -> Path | None:
    """The folder of a SQLite file; `None` for a server or a database in memory."""
    path = sqlite_path(url)
    return None if path in (None, ":memory:") else Path(str(path)).resolve().parent


def _is_full(folder: Path) -> bool:
    """Whether a temporary file of the probe's size cannot be written to a folder."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".recollect-") as file:
            _allocate(file)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        return True
    return False


def _allocate(file: IO[bytes]) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, _PROBE_BYTES)
    else:
        file.write(bytes(_PROBE_BYTES))
        file.flush()
