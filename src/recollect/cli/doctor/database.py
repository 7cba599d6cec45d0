"""Checks of a SQLite file: readable, intact, migrated, private, with free disk space."""

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
from ...sql.schema import VERSIONS
from ..database import find_damage

if TYPE_CHECKING:
    from ...sql.schema import Schema

State = Literal["ok", "off", "warning", "wrong"]

_LITTLE_SPACE = 1_000_000_000  # bytes; a warning below this
_NO_SPACE = 100_000_000
_CHECKED_SIZE = 500_000_000  # bytes of a file
_CHECK_TIMEOUT = 15.0  # seconds


@dataclass(frozen=True)
class Finding:
    """The result of one check, with a fix if there is a problem."""

    name: str
    state: State
    found: str
    fix: str = ""


async def run_check(
    name: str, check: Callable[[], Awaitable[Finding]], seconds: float = _CHECK_TIMEOUT
) -> Finding:
    """Run a check. An error or a timeout becomes a finding."""
    try:
        async with asyncio.timeout(seconds):
            return await check()
    except TimeoutError:
        return Finding(name, "wrong", f"no response within {seconds:g} seconds", "check that it is running")
    except (RecollectError, OSError, ValueError) as error:
        return Finding(name, "wrong", str(error), "check that it is running and that the address is correct")


def check_file(path: Path) -> list[Finding]:
    """Check the file of a SQLite database. A missing file is not created."""
    folder = path.resolve().parent
    if not folder.is_dir():
        return [
            Finding("database", "off", f"{path} and its folder do not exist", "both are created on first use")
        ]
    space = _space(folder)
    if not path.exists():
        state: State = "off" if os.access(folder, os.W_OK) else "wrong"
        fix = (
            "it is created on first use"
            if state == "off"
            else f"give this user write permission for {folder}"
        )
        return [Finding("database", state, f"{path} does not exist yet", fix), space]
    opened = _opened(path)
    schema = [] if opened.state == "wrong" else [_schema(path)]
    return [opened, *schema, _permissions(path), space]


def _opened(path: Path) -> Finding:
    if not os.access(path, os.R_OK | os.W_OK):
        return Finding(
            "database", "wrong", f"no permission to read and write {path}", "give this user both permissions"
        )
    size = path.stat().st_size
    try:
        with closing(connect_existing(path)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            damage = find_damage(connection) if size <= _CHECKED_SIZE else []
    except sqlite3.Error as error:
        return Finding(
            "database", "wrong", f"{path} cannot be opened: {error}", "use another file or a backup"
        )
    if damage:
        return Finding("database", "wrong", f"{path} is damaged: {damage[0]}", "restore a backup")
    checked = "intact" if size <= _CHECKED_SIZE else "integrity not checked (too large)"
    return Finding("database", "ok", f"{path}, {size:,} bytes, {checked}")


def connect_existing(path: Path) -> sqlite3.Connection:
    """Connect to an existing file.

    Not read-only: a read-only connection leaves -wal and -shm files behind when it closes.
    """
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=3)


def _schema(path: Path) -> Finding:
    try:
        with closing(connect_existing(path)) as connection:
            applied = read_applied_steps(connection)
    except sqlite3.Error as error:
        return Finding(
            "schema", "wrong", f"the migration steps cannot be read: {error}", "use another file or a backup"
        )
    return schema_finding(applied, known_steps())


def known_steps() -> dict[str, list[str]]:
    """Return the migration steps of this version, by scope."""
    return {schema.scope: [step.version for step in schema.steps()] for schema in _schemas()}


def _schemas() -> "Sequence[Schema]":
    from ...memory.database.schema import MemorySchema
    from ...providers.openai.database.schema import ChatSchema
    from ...server.database.schema import ServiceSchema

    return (MemorySchema(), ChatSchema(), ServiceSchema())


def read_applied_steps(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the migration steps that a file has, by scope."""
    known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'recollect_migrations'"
    if connection.execute(known).fetchone() is None:
        return {}
    applied: dict[str, set[str]] = {}
    for scope, step in connection.execute("SELECT scope, step FROM recollect_migrations"):
        applied.setdefault(scope, set()).add(step)
    return applied


def unknown_steps(applied: Mapping[str, Set[str]]) -> set[str]:
    """Return the steps of a file that this version does not know."""
    return {step for steps in applied.values() for step in steps} - {*VERSIONS}


def schema_finding(applied: Mapping[str, Set[str]], known: Mapping[str, Sequence[str]]) -> Finding:
    """Compare the steps of a file with those of this version."""
    if unknown := unknown_steps(applied):
        text = f"tables of version {max(unknown)}, which this version of recollect does not know"
        return Finding("schema", "wrong", text, "use the version of recollect that wrote them or a newer one")
    there = [scope for scope in known if scope in applied]
    text = ", ".join(f"{scope} {len(applied[scope])} of {len(known[scope])} steps" for scope in there)
    if all(len(applied[scope]) == len(known[scope]) for scope in there):
        return Finding("schema", "ok", text or "no memory tables yet")
    return Finding("schema", "ok", f"{text}; the next open applies the rest")


def _permissions(path: Path) -> Finding:
    """Check the mode of the file and of its -wal and -shm files, which contain the newest data."""
    files = [path, *(beside for end in ("-wal", "-shm") if (beside := Path(f"{path}{end}")).exists())]
    open_to_all = [str(each) for each in files if is_world_accessible(each)]
    if open_to_all:
        text = f"all users of this machine can read {', '.join(open_to_all)}"
        return Finding("permissions", "warning", text, f"chmod 600 {shlex.join(open_to_all)}")
    return Finding("permissions", "ok", "other users cannot read the file")


def is_world_accessible(path: Path) -> bool:
    """Whether other users of this machine can read or write a file."""
    return bool(path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH))


def _space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB free in {folder}"
    if free < _NO_SPACE:
        return Finding("disk", "wrong", text, "free disk space: writes are about to fail")
    if free < _LITTLE_SPACE:
        return Finding("disk", "warning", text, "free disk space soon")
    return Finding("disk", "ok", text)
