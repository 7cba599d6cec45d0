"""Whether the database still has disk space to write to.

A write that failed for want of space is remembered by the database. From then on, and while a file system
with a SQLite file is nearly full, some space is taken and given back each time anybody asks: so the answer
changes back by itself when there is space again.
"""

import asyncio
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import DiskFullError
from ..memory.database.access import MemoryDatabase
from ..sql.scripts import Script, Statement
from ..sql.urls import sqlite_path

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
