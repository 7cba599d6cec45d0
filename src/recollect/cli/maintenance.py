"""`recollect backup`, `recollect migrate` and `recollect repair`: operations on a whole database."""

import argparse
import asyncio
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import ConflictError, NotADatabaseError, RecollectError, StorageError
from ..private_files import replace_privately
from .arguments import Commands, add_command, add_json, add_place, add_yes, path
from .database import configured_url, confirm, damage_in, existing_url, file_of, open_memory_database
from .output import one_line, plural, progress, say, table, tell_json

if TYPE_CHECKING:
    from ..memory.database.repair import CorruptRow

_PAGES = 1000  # copied at a time


def add_backup_parser(commands: Commands) -> None:
    """Add the command to the others."""
    backup = add_command(
        commands,
        "backup",
        "copy the database to a file while others use it, and check the copy",
        "  recollect backup backups/monday.db\n"
        "  recollect backup monday.dump --url postgresql://recollect@db/recollect   runs pg_dump\n",
        _backup,
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="where the copy goes")
    backup.add_argument("--force", action="store_true", help="replace a file that is there")
    add_place(backup, tenant=False)
    add_json(backup)


def _backup(options: argparse.Namespace) -> int:
    url = existing_url(options)
    if options.file.exists() and not options.force:
        raise ConflictError(f"{options.file} is there already: say --force to replace it")
    options.file.parent.mkdir(parents=True, exist_ok=True)
    source = file_of(url)
    if source is not None:
        copy_file(source, options.file)
    elif url.startswith("postgres"):
        _dump(url, options.file)
    else:
        raise StorageError(
            "only a SQLite file or a PostgreSQL can be backed up; others have means of their own"
        )
    told = {"file": str(options.file), "bytes": options.file.stat().st_size}
    if options.json:
        tell_json(told)
    else:
        checked = " and checked" if source is not None else ""
        print(f"backed up to {one_line(str(options.file))}{checked}, {told['bytes']:,} bytes")
    return 0


# --- SQLite ---


def copy_file(source: Path, target: Path) -> None:
    """Copy a SQLite file as it is at one moment, whoever writes to it meanwhile, and check the copy.

    The copy appears whole or not at all. It has mode 0600, whatever the mode of the database is.
    """
    try:
        with replace_privately(target) as temporary:
            _copy_checked(source, temporary)
    except sqlite3.DatabaseError as error:
        raise NotADatabaseError(f"{source} cannot be copied: {error}") from error


def _copy_checked(source: Path, target: Path) -> None:
    try:
        _copy(source, target)
        _check(target)
    finally:
        for end in ("-wal", "-shm", "-journal"):
            Path(f"{target}{end}").unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    # Not read-only: such a connection leaves files beside the database when it closes.
    address = f"{source.resolve().as_uri()}?mode=rw"
    with closing(sqlite3.connect(address, uri=True)) as held, closing(sqlite3.connect(target)) as copy:
        # A transaction keeps the file as it is now. Without, each write of others would begin the copy anew.
        held.execute("BEGIN")
        held.execute("SELECT count(*) FROM sqlite_master").fetchone()
        with progress("copying") as shown:
            held.backup(copy, pages=_PAGES, progress=lambda _, left, total: shown.reach(total - left, total))


def _check(path: Path) -> None:
    with progress("checking"), closing(sqlite3.connect(path)) as copy:
        damage = damage_in(copy)
    if damage:
        raise StorageError(
            "the copy is damaged, as is the database: recover it before it is written to again"
        )


# --- PostgreSQL ---


def _dump(url: str, target: Path) -> None:
    command, environment = dump_command(url, target)
    if shutil.which(command[0]) is None:
        raise RecollectError(
            "a backup of PostgreSQL is made by pg_dump, which is not installed here. Where it is, run: "
            + " ".join(command)
        )
    with replace_privately(target) as temporary:
        command, environment = dump_command(url, temporary)
        with progress("dumping"):
            ended = subprocess.run(
                command, env=os.environ | environment, capture_output=True, text=True, check=False
            )
        if ended.returncode:
            say(ended.stderr.strip())
            raise StorageError("pg_dump could not make the backup, for the reason above")


def dump_command(url: str, target: Path) -> tuple[list[str], dict[str, str]]:
    """The command that backs up a PostgreSQL, and the variables it needs: a password is no argument."""
    parts: Any = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    given = {
        "--host": query.get("host") or parts.hostname,
        "--port": query.get("port") or parts.port,
        "--username": parts.username and unquote(parts.username),
        "--dbname": unquote(parts.path.lstrip("/")),
    }
    command = ["pg_dump", "--format=custom", "--no-password", f"--file={target}"]
    command += [f"{name}={value}" for name, value in given.items() if value]
    secret = {"PGPASSWORD": unquote(parts.password)} if parts.password else {}
    return command, secret | ({"PGSSLMODE": query["sslmode"]} if "sslmode" in query else {})


def add_migrate_parser(commands: Commands) -> None:
    """Add the command to the others."""
    migrate = add_command(
        commands,
        "migrate",
        "bring a database server's schema to the newest revision",
        "  recollect migrate postgresql://recollect@db/recollect\n"
        "  RECOLLECT_URL=postgresql://recollect@db/recollect recollect migrate\n",
        _migrate,
    )
    migrate.add_argument("url", nargs="?", help="such as postgresql://user@host/name; else as configured")
    migrate.add_argument("--config", type=Path, metavar="FILE", help="a TOML file; else RECOLLECT_CONFIG")
    add_json(migrate)


def _migrate(options: argparse.Namespace) -> int:
    import asyncio

    from ..migrations import migrate

    url = options.url or configured_url(options.config)
    if not url:
        raise ValueError("migrate needs the URL of a database, or RECOLLECT_URL in the environment")
    if url.startswith("sqlite") or ("://" not in url and url.endswith(".db")):
        raise ValueError("SQLite files migrate by themselves when they are opened")
    before, after = asyncio.run(migrate(url))
    if options.json:
        tell_json({"before": before, "after": after})
    else:
        print(f"already at {after}" if before == after else f"migrated from {before or 'nothing'} to {after}")
    return 0


_EXPLAINED = """
A corrupt row has a column that cannot be parsed. Reading leaves it out. This command saves each such row to a
file, and then sets its corrupt columns to neutral values (mended) or, where there are none, takes the row out
(removed). A memory or a conversation is never removed (left).
"""


def add_repair_parser(commands: Commands) -> None:
    """Add the command to the others."""
    repair = add_command(
        commands,
        "repair",
        "find the corrupt rows of long-term memory, and repair them",
        "  recollect repair --dry-run\n  recollect repair --save corrupt.jsonl --yes\n",
        _repair,
    )
    repair.description = f"{repair.description}\n{_EXPLAINED}"
    repair.add_argument("--dry-run", action="store_true", help="only list them; nothing is changed")
    repair.add_argument(
        "--save", type=path, metavar="FILE", help="where their rows go (default: recollect-repair-TIME.jsonl)"
    )
    add_yes(repair)
    add_place(repair, tenant=False)
    add_json(repair)


def _repair(options: argparse.Namespace) -> int:
    found = asyncio.run(_find(options))
    is_repaired = bool(found) and not options.dry_run
    if is_repaired and not confirm(options, f"Repair {plural(len(found), 'corrupt row')}?"):
        return 1
    saved = options.save or Path(f"recollect-repair-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")
    if is_repaired:
        with _created(saved) as file:
            found = asyncio.run(_mend(options, file))
    _print(options, found, saved if is_repaired else None)
    return 0


def _print(options: argparse.Namespace, found: "Sequence[CorruptRow]", saved: Path | None) -> None:
    if options.json:
        rows = [row.to_dict() for row in found]
        tell_json({"rows": rows, "is_repaired": saved is not None, "saved": saved and str(saved)})
        return
    if found:
        listed = ((row.table, row.row_id, ", ".join(row.columns), row.outcome) for row in found)
        print(table(("TABLE", "ROW", "CORRUPT", "OUTCOME"), listed))
    if not found:
        say("no corrupt rows")
    elif saved is None:
        say(f"{plural(len(found), 'corrupt row')}; nothing was changed")
    else:
        say(f"the rows as they were are in {one_line(str(saved))}: it holds contents, so delete it in time")


def _created(target: Path) -> IO[str]:
    """A new file that only its owner can read."""
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8")


async def _find(options: argparse.Namespace) -> "list[CorruptRow]":
    from ..memory.database.repair import find_corrupt_rows

    async with open_memory_database(options) as database:
        return [row async for row in find_corrupt_rows(database)]


async def _mend(options: argparse.Namespace, saved: IO[str]) -> "list[CorruptRow]":
    from ..memory.database.repair import repair_rows

    async with open_memory_database(options) as database:
        return [row async for row in repair_rows(database, saved)]
