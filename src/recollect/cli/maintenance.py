"""Operations on a whole database: `recollect backup`, `restore`, `migrate` and `repair`."""

import argparse
import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import ConflictError, RecollectError, StorageError
from ..private_files import replace_privately
from ..sql.urls import name_hosts, split_host
from .arguments import Commands, add_command, add_database_options, add_json_option, add_yes_option, path
from .database import (
    configured_url,
    confirm,
    open_memory_database,
    resolve_existing_url,
    resolve_url,
    sqlite_file,
)
from .database_files import copy_file, restore_file
from .output import one_line, plural, print_json, print_note, progress, table

if TYPE_CHECKING:
    from ..memory.database.repair import CorruptRow


def add_backup_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    backup = add_command(
        commands,
        "backup",
        "copy the database to a file while it is in use, and verify the copy",
        "  recollect backup backups/monday.db\n"
        "  recollect backup monday.dump --url postgresql://recollect@db/recollect   runs pg_dump\n",
        _backup,
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="path of the copy")
    backup.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_database_options(backup, tenant=False)
    add_json_option(backup)


def _backup(options: argparse.Namespace) -> int:
    url = resolve_existing_url(options)
    if options.file.exists() and not options.force:
        raise ConflictError(f"{options.file} already exists: use --force to overwrite it")
    options.file.parent.mkdir(parents=True, exist_ok=True)
    source = sqlite_file(url)
    if source is not None:
        copy_file(source, options.file)
    elif url.startswith("postgres"):
        _dump(url, options.file)
    else:
        raise StorageError("backup supports SQLite files and PostgreSQL only; use the tools of your database")
    result = {"file": str(options.file), "bytes": options.file.stat().st_size}
    if options.json:
        print_json(result)
    else:
        checked = " and verified" if source is not None else ""
        print(f"backed up to {one_line(str(options.file))}{checked}, {result['bytes']:,} bytes")
    return 0


def add_restore_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    restore = add_command(
        commands,
        "restore",
        "put a backup in the place of a SQLite database, and keep the old file aside",
        "  recollect restore backups/monday.db\n"
        "  recollect restore backups/monday.db --url conversations.db\n"
        "\n"
        "  Stop the service first: the command refuses while a process uses the database. It checks the\n"
        "  backup, keeps the old file and its log under another name, and removes the log from beside the\n"
        "  new file. Restore a dump of PostgreSQL with pg_restore.\n",
        _restore,
    )
    restore.add_argument("file", type=path, metavar="BACKUP", help="path of the backup")
    add_database_options(restore, tenant=False)
    add_json_option(restore)


def _restore(options: argparse.Namespace) -> int:
    target = sqlite_file(resolve_url(options))
    if target is None:
        raise StorageError("restore supports SQLite files only: use pg_restore for a dump of PostgreSQL")
    kept = restore_file(options.file, target)
    result = {
        "file": str(target),
        "bytes": target.stat().st_size,
        "kept": None if kept is None else str(kept),
    }
    if options.json:
        print_json(result)
    else:
        aside = "" if kept is None else f"; the old file is {one_line(str(kept))}"
        print(f"restored {one_line(str(target))}, {result['bytes']:,} bytes{aside}")
    return 0


# --- PostgreSQL ---


def _dump(url: str, target: Path) -> None:
    command, environment = dump_command(url, target)
    if shutil.which(command[0]) is None:
        raise RecollectError(
            "a PostgreSQL backup needs pg_dump, which is not installed here. Run this where it is installed: "
            + " ".join(command)
        )
    with replace_privately(target) as temporary:
        command, environment = dump_command(url, temporary)
        with progress("dumping"):
            ended = subprocess.run(
                command, env=os.environ | environment, capture_output=True, text=True, check=False
            )
        if ended.returncode:
            print_note(ended.stderr.strip())
            raise StorageError("pg_dump failed; its error is shown above")


def dump_command(url: str, target: Path) -> tuple[list[str], dict[str, str]]:
    """Return the pg_dump command and its environment variables, which carry the password."""
    parts: Any = urlsplit(name_hosts(url))
    query = dict(parse_qsl(parts.query))
    hosts = [split_host(value) for name, value in parse_qsl(parts.query) if name == "host"]
    several = len(hosts) > 1
    given = {
        "--host": ",".join(host for host, _ in hosts) if several else query.get("host") or parts.hostname,
        "--port": ",".join(str(port) for _, port in hosts) if several else query.get("port") or parts.port,
        "--username": parts.username and unquote(parts.username),
        "--dbname": unquote(parts.path.lstrip("/")),
    }
    command = ["pg_dump", "--format=custom", "--no-password", f"--file={target}"]
    command += [f"{name}={value}" for name, value in given.items() if value]
    secret = {"PGPASSWORD": unquote(parts.password)} if parts.password else {}
    named = {"PGSSLMODE": "sslmode", "PGTARGETSESSIONATTRS": "target_session_attrs"}
    return command, secret | {name: query[option] for name, option in named.items() if option in query}


def add_migrate_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    migrate = add_command(
        commands,
        "migrate",
        "migrate the schema of a database server to the newest revision",
        "  recollect migrate --url postgresql://recollect@db/recollect\n"
        "  RECOLLECT_URL=postgresql://recollect@db/recollect recollect migrate\n",
        _migrate,
    )
    migrate.add_argument("--url", help="such as postgresql://user@host/name (default: as configured)")
    migrate.add_argument(
        "--config", type=Path, metavar="FILE", help="a TOML file (default: RECOLLECT_CONFIG)"
    )
    add_json_option(migrate)


def _migrate(options: argparse.Namespace) -> int:
    import asyncio

    from ..migrations import migrate

    url = options.url or configured_url(options.config)
    if not url:
        raise ValueError("migrate needs a database URL: pass --url or set RECOLLECT_URL")
    if url.startswith("sqlite") or ("://" not in url and url.endswith(".db")):
        raise ValueError("SQLite files need no migration command: they migrate when they are opened")
    before, after = asyncio.run(migrate(url))
    if options.json:
        print_json({"before": before, "after": after})
    else:
        print(f"already at {after}" if before == after else f"migrated from {before or 'nothing'} to {after}")
    return 0


_EXPLAINED = """
A corrupt row has a column that cannot be parsed. Reads skip it. This command saves each corrupt row to a
file. Then it sets the corrupt columns to neutral values (mended) or, if a column has none, deletes the row
(removed). It never deletes a memory or a conversation (left).
"""


def add_repair_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    repair = add_command(
        commands,
        "repair",
        "find and repair corrupt rows of long-term memory",
        "  recollect repair --dry-run\n  recollect repair --save corrupt.jsonl --yes\n",
        _repair,
    )
    repair.description = f"{repair.description}\n{_EXPLAINED}"
    repair.add_argument("--dry-run", action="store_true", help="list the rows and change nothing")
    repair.add_argument(
        "--save",
        type=path,
        metavar="FILE",
        help="where to save the rows (default: recollect-repair-TIME.jsonl)",
    )
    add_yes_option(repair)
    add_database_options(repair, tenant=False)
    add_json_option(repair)


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
        print_json({"rows": rows, "is_repaired": saved is not None, "saved": saved and str(saved)})
        return
    if found:
        listed = ((row.table, row.row_id, ", ".join(row.columns), row.outcome) for row in found)
        print(table(("TABLE", "ROW", "CORRUPT", "OUTCOME"), listed))
    if not found:
        print_note("no corrupt rows")
    elif saved is None:
        print_note(f"{plural(len(found), 'corrupt row')}; nothing changed")
    else:
        print_note(
            f"the original rows are in {one_line(str(saved))}, which contains user data; delete it in time"
        )


def _created(target: Path) -> IO[str]:
    """Create a file that only its owner can read. Fail if it exists."""
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
