"""What the doctor finds out about a database."""

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import RecollectError
from .integrity import damage_in
from .opening import file_of, told_url

State = Literal["ok", "off", "warning", "wrong"]

_LITTLE_SPACE = 1_000_000_000  # bytes: time to make some
_NO_SPACE = 100_000_000
_QUICKLY_READ = 500_000_000  # bytes of a file
_LONGEST_LOOK = 15.0  # seconds
_MIGRATE = "run `recollect migrate`"


@dataclass(frozen=True)
class Finding:
    """How a part is, and what mends it if it is not as it should be."""

    name: str
    state: State
    found: str
    fix: str = ""


async def guarded(name: str, check: Callable[[], Awaitable[Finding]]) -> Finding:
    """What a check finds, or that it failed, in the words of the error."""
    try:
        async with asyncio.timeout(_LONGEST_LOOK):
            return await check()
    except TimeoutError:
        return Finding(name, "wrong", f"no answer in {_LONGEST_LOOK:g} seconds", "see that it runs")
    except (RecollectError, OSError, ValueError) as error:
        return Finding(name, "wrong", str(error), "see that it runs, and that its address is right")


async def look_at_database(url: str) -> list[Finding]:
    """How the database is; what is no file is not looked into, but asked."""
    path = file_of(url)
    if path is not None:
        return _file(path)
    if not url.startswith("postgres"):
        return [await guarded("database", lambda: _other_server(url))]
    return [await guarded("database", lambda: _server(url))]


def _file(path: Path) -> list[Finding]:
    folder = path.resolve().parent
    if not folder.is_dir():
        return [
            Finding("database", "off", f"{path} is not there, nor its folder", "both are made when needed")
        ]
    space = _space(folder)
    if not path.exists():
        state: State = "off" if os.access(folder, os.W_OK) else "wrong"
        fix = "it is made when needed" if state == "off" else f"let this user write to {folder}"
        return [Finding("database", state, f"{path} is not there yet", fix), space]
    return [_opened(path), _permissions(path), space]


def _opened(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK):
        return Finding(
            "database", "wrong", f"{path} cannot be read and written", "give this user both rights"
        )
    size = path.stat().st_size
    try:
        # Not read-only: such a connection leaves files beside the database when it closes.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=3)) as held:
            held.execute("SELECT count(*) FROM sqlite_master").fetchone()
            damage = damage_in(held) if size <= _QUICKLY_READ else []
    except sqlite3.Error as error:
        return Finding("database", "wrong", f"{path} cannot be opened: {error}", "name another, or a backup")
    if damage:
        return Finding("database", "wrong", f"{path} is damaged: {damage[0]}", "go back to a backup")
    checked = "whole" if size <= _QUICKLY_READ else "too large to be looked through"
    return Finding("database", "ok", f"{path}, {size:,} bytes, {checked}; it migrates by itself")


def _permissions(path: Path) -> Finding:
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        return Finding("permissions", "warning", f"everybody here may read {path}", f"chmod 600 {path}")
    return Finding("permissions", "ok", "the file is not for everybody")


def _space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    told = f"{free / 1e9:.1f} GB free in {folder}"
    if free < _NO_SPACE:
        return Finding("disk", "wrong", told, "make room: writes are about to fail")
    if free < _LITTLE_SPACE:
        return Finding("disk", "warning", told, "make room soon")
    return Finding("disk", "ok", told)


async def _server(url: str) -> Finding:
    from ..migrations import current_revision, newest_revision

    current, newest = await current_revision(url), newest_revision()
    where = told_url(url)
    if current == newest:
        return Finding("database", "ok", f"{where} is reachable, at revision {current}")
    told = "has no tables yet" if current is None else f"is at revision {current}, not {newest}"
    return Finding("database", "wrong", f"{where} {told}", _MIGRATE)


async def _other_server(url: str) -> Finding:
    from ..sessions.manager import SessionManager

    with closing(SessionManager(url)) as manager:
        await manager.list_sessions(limit=1)
    return Finding("database", "ok", f"{told_url(url)} is reachable, for sessions")
