"""`recollect repair`: find the corrupt rows of long-term memory, and repair them."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

from .opening import confirm, open_memory_database
from .output import one_line, plural, say, table, tell_json
from .parsing import Commands, add_command, add_json, add_place, add_yes, path

if TYPE_CHECKING:
    from ..memory.database.repair import CorruptRow

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
