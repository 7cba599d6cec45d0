"""`recollect backup`: a copy of the database that can be opened, made while others write."""

import argparse
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import ConflictError, NotADatabaseError, RecollectError, StorageError
from ..private_files import replace_privately
from .integrity import damage_in
from .opening import existing_url, file_of
from .output import one_line, say, tell_json
from .parsing import Commands, add_command, add_json, add_place
from .progress import progress

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
