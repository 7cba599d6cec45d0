"""What the doctor finds out about a database."""

import asyncio
import os
import shlex
import shutil
import sqlite3
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import RecollectError
from ..database import damage_in

if TYPE_CHECKING:
    from ...sql.schema import Schema

State = Literal["ok", "off", "warning", "wrong"]

_LITTLE_SPACE = 1_000_000_000  # bytes: time to make some
_NO_SPACE = 100_000_000
_QUICKLY_READ = 500_000_000  # bytes of a file
_LONGEST_LOOK = 15.0  # seconds


@dataclass(frozen=True)
class Finding:
    """How a part is, and what mends it if it is not as it should be."""

    name: str
    state: State
    found: str
    fix: str = ""


async def guarded(
    name: str, check: Callable[[], Awaitable[Finding]], seconds: float = _LONGEST_LOOK
) -> Finding:
    """What a check finds, or that it failed, in the words of the error."""
    try:
        async with asyncio.timeout(seconds):
            return await check()
    except TimeoutError:
        return Finding(name, "wrong", f"no answer in {seconds:g} seconds", "see that it runs")
    except (RecollectError, OSError, ValueError) as error:
        return Finding(name, "wrong", str(error), "see that it runs, and that its address is right")


def look_at_file(path: Path) -> list[Finding]:
    """How the file of a SQLite database is; one that is not there is not made."""
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
    opened = _opened(path)
    schema = [] if opened.state == "wrong" else [_schema(path)]
    return [opened, *schema, _permissions(path), space]


def _opened(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK):
        return Finding(
            "database", "wrong", f"{path} cannot be read and written", "give this user both rights"
        )
    size = path.stat().st_size
    try:
        with closing(existing(path)) as held:
            held.execute("SELECT count(*) FROM sqlite_master").fetchone()
            damage = damage_in(held) if size <= _QUICKLY_READ else []
    except sqlite3.Error as error:
        return Finding("database", "wrong", f"{path} cannot be opened: {error}", "name another, or a backup")
    if damage:
        return Finding("database", "wrong", f"{path} is damaged: {damage[0]}", "go back to a backup")
    checked = "whole" if size <= _QUICKLY_READ else "too large to be looked through"
    return Finding("database", "ok", f"{path}, {size:,} bytes, {checked}")


def existing(path: Path) -> sqlite3.Connection:
    """A connection to a file that is there.

    It is not a read-only one: such a connection leaves files beside the database when it closes.
    """
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=3)


def _schema(path: Path) -> Finding:
    try:
        with closing(existing(path)) as held:
            taken = steps_in(held)
    except sqlite3.Error as error:
        return Finding("schema", "wrong", f"its steps cannot be read: {error}", "name another, or a backup")
    return schema_finding(taken, known_steps())


def known_steps() -> dict[str, list[str]]:
    """The steps that this version knows, by what they belong to."""
    return {schema.scope: [step.name for step in schema.steps()] for schema in _schemas()}


def _schemas() -> "Sequence[Schema]":
    from ...memory.database.schema import MemorySchema
    from ...providers.openai.database.schema import ChatSchema
    from ...server.database.schema import ServiceSchema

    return (MemorySchema(), ChatSchema(), ServiceSchema())


def steps_in(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """The steps that were taken in a file, by what they belong to."""
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'recollect_migrations'"
    if connection.execute(known).fetchone() is None:
        return {}
    taken: dict[str, set[str]] = {}
    for scope, step in connection.execute("SELECT scope, step FROM recollect_migrations"):
        taken.setdefault(scope, set()).add(step)
    return taken


def schema_finding(taken: Mapping[str, Set[str]], known: Mapping[str, Sequence[str]]) -> Finding:
    """How far the tables of a file have come, against the steps that this version knows."""
    newer = sorted(step for scope in taken.keys() & known.keys() for step in taken[scope] - {*known[scope]})
    if newer:
        told = f"a newer version of recollect has written it ({', '.join(newer)})"
        return Finding("schema", "warning", told, "use that version, or a newer one")
    there = [scope for scope in known if scope in taken]
    told = ", ".join(f"{scope} {len(taken[scope])} of {len(known[scope])} steps" for scope in there)
    if all(len(taken[scope]) == len(known[scope]) for scope in there):
        return Finding("schema", "ok", told or "no tables of memory yet")
    return Finding("schema", "ok", f"{told}; the rest is taken when it is next opened")


def _permissions(path: Path) -> Finding:
    """Of the file, and of those that SQLite keeps beside it, which hold the newest of the data."""
    files = [path, *(beside for end in ("-wal", "-shm") if (beside := Path(f"{path}{end}")).exists())]
    open_to_all = [str(each) for each in files if is_for_everybody(each)]
    if open_to_all:
        told = f"everybody here may read {', '.join(open_to_all)}"
        return Finding("permissions", "warning", told, f"chmod 600 {shlex.join(open_to_all)}")
    return Finding("permissions", "ok", "the file is not for everybody")


def is_for_everybody(path: Path) -> bool:
    """Whether other users of this machine may read a file, or write to it."""
    return bool(path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH))


def _space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    told = f"{free / 1e9:.1f} GB free in {folder}"
    if free < _NO_SPACE:
        return Finding("disk", "wrong", told, "make room: writes are about to fail")
    if free < _LITTLE_SPACE:
        return Finding("disk", "warning", told, "make room soon")
    return Finding("disk", "ok", told)
