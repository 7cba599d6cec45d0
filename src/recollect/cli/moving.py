"""`recollect export` and `recollect erase`: all that is stored about a user."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from ..private_files import replace_privately
from .opening import confirm, existing_url, open_store, told_url, user_of
from .output import one_line, plural, say, table, tell_json
from .parsing import Commands, add_command, add_json, add_place, add_yes
from .progress import Progress, progress


def add_export_parser(commands: Commands) -> None:
    """Add the command to the others."""
    export = add_command(
        commands,
        "export",
        "export everything about a user",
        "  recollect export --user ada --output ada.jsonl\n  recollect export --user ada --json > ada.json\n",
        _export,
    )
    _add_whose(export)
    export.add_argument(
        "--output", type=Path, metavar="FILE", help="a file, which only you may read; else standard output"
    )
    add_place(export)
    export.add_argument("--json", action="store_true", help="one JSON document, and not JSON Lines")


def add_erase_parser(commands: Commands) -> None:
    """Add the command to the others."""
    erase = add_command(
        commands,
        "erase",
        "erase everything about a user, for good",
        "  recollect erase --user ada\n  recollect erase --user ada --yes --vacuum --json > receipt.json\n",
        _erase,
    )
    _add_whose(erase)
    erase.add_argument(
        "--vacuum",
        action="store_true",
        help="then clear the files of the database of it, which takes a while",
    )
    add_yes(erase)
    add_place(erase)
    add_json(erase)


def _add_whose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", help="about whom; else RECOLLECT_USER")
    parser.add_argument("--agent", help="with this agent alone (default: with all)")


# --- export ---


def _export(options: argparse.Namespace) -> int:
    user_id = user_of(options)
    with _written(options.output) as file, progress("exporting") as shown:
        lines = asyncio.run(_write_export(options, user_id, file, shown))
    if lines == 0:
        say("nothing is stored about this user")
    elif options.output is not None:
        say(f"exported {plural(lines, 'record')} to {options.output}")
    return 0


async def _write_export(options: argparse.Namespace, user_id: str, file: TextIO, shown: Progress) -> int:
    async with open_store(options) as store:
        if options.json:
            exported = await store.export_user(user_id, agent_id=options.agent)
            file.write(json.dumps(exported, indent=2) + "\n")
            return sum(len(each) for each in exported.values() if isinstance(each, list))
        counted = cast(IO[str], _Counted(file, shown))
        return await store.export_user_to(counted, user_id, agent_id=options.agent) - 1


class _Counted:
    """A file that tells how many lines were written to it."""

    def __init__(self, file: TextIO, shown: Progress) -> None:
        self._file = file
        self._shown = shown

    def write(self, text: str) -> int:
        """Write a line."""
        self._shown.advance()
        return self._file.write(text)


@contextmanager
def _written(path: Path | None) -> Iterator[TextIO]:
    """A file that appears whole or not at all, for its owner alone; or standard output."""
    if path is None:
        yield sys.stdout
        return
    with replace_privately(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield file


# --- erase ---


def _erase(options: argparse.Namespace) -> int:
    user_id = user_of(options)
    where = told_url(existing_url(options))
    if not confirm(options, f"Erase all that is stored about {one_line(user_id)} in {where}, for good?"):
        return 1
    with progress("erasing"):
        receipt = asyncio.run(_erase_user(options, user_id))
    if options.json:
        tell_json(receipt)
        return 0
    gone = {name: number for name, number in receipt["counts"].items() if number}
    if gone:
        print(table(("ERASED", "HOW MANY"), gone.items()))
    else:
        say("nothing was stored about this user")
    print(f"receipt: {receipt['subject']} at {receipt['erased_at']}")
    return 0


async def _erase_user(options: argparse.Namespace, user_id: str) -> dict[str, Any]:
    async with open_store(options) as store:
        receipt = await store.erase_user(user_id, agent_id=options.agent)
        if options.vacuum:
            await store.vacuum()
        return receipt.to_dict()
