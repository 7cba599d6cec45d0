"""`recollect export`, `recollect erase` and `recollect import`: the data of one user."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from ..errors import ConflictError, ImportFormatError
from ..private_files import replace_privately
from .arguments import Commands, add_command, add_json, add_place, add_yes
from .database import confirm, existing_url, file_of, open_store, told_url, url_of, user_of
from .output import Progress, one_line, plural, progress, say, table, tell_json


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


_SQLITE = b"SQLite format 3\0"
_LEFT_OUT = ("sessions", "events", "summaries")  # of an export: they are not brought back


def add_import_parser(commands: Commands) -> None:
    """Add the command to the others."""
    importing = add_command(
        commands,
        "import",
        "bring back an export of a user, or move in the sessions of the Agents SDK",
        "  recollect import ada.jsonl\n"
        "  recollect import conversations.db --url recollect.db   a file of the SDK's sessions\n"
        "  recollect import demo.json                             one session, as export_session wrote it\n",
        _import,
    )
    importing.add_argument(
        "file", type=Path, metavar="FILE", help="an export (JSON or JSON Lines), or a SQLite file of the SDK"
    )
    add_place(importing)
    add_json(importing)


def _import(options: argparse.Namespace) -> int:
    with options.file.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    if is_database:
        _check_other(url_of(options), options.file)
        counts = asyncio.run(_import_sdk(options))
    else:
        counts = asyncio.run(_import_document(options, _read_document(options.file)))
    if options.json:
        tell_json(counts)
    else:
        print(table(("IMPORTED", "HOW MANY"), ((name.replace("_", " "), n) for name, n in counts.items())))
    return 0


def _check_other(url: str, path: Path) -> None:
    target = file_of(url)
    if target is not None and target.resolve() == path.resolve():
        raise ConflictError("a file need not be imported into itself: its sessions are there already")


async def _import_sdk(options: argparse.Namespace) -> dict[str, int]:
    from ..sessions.manager import open_session
    from ..sessions.sdk_import import import_sdk_sessions

    url = url_of(options)
    with progress("moving in sessions") as shown:

        def opened(session_id: str) -> Any:
            shown.advance()
            return open_session(url, session_id)

        report = await import_sdk_sessions(options.file, opened)
    told = {"sessions": report.sessions, "items": report.items, "branches": len(report.branches)}
    told |= {"corrupt_rows": report.corrupt_rows, "sessions_left_alone": report.sessions_left_alone}
    told |= {"names_passed_over": report.names_passed_over}
    return told


async def _import_document(options: argparse.Namespace, document: dict[str, Any]) -> dict[str, int]:
    if isinstance(document.get("items"), list):
        return await _import_session(options, document)
    if left_out := _left_out(document):
        say(f"not brought back, as they are for reading: {', '.join(left_out)}")
    with progress("importing"):
        async with open_store(options, makes=True) as store:
            return await store.import_user(document)


def _left_out(document: dict[str, Any]) -> list[str]:
    told = {kind: document.get(kind) for kind in _LEFT_OUT}
    return [f"{len(listed)} {kind}" for kind, listed in told.items() if listed and isinstance(listed, list)]


async def _import_session(options: argparse.Namespace, document: dict[str, Any]) -> dict[str, int]:
    """A session as `export_session` writes it; one that is there already is left as it is."""
    from ..sessions.history import import_session
    from ..sessions.manager import open_session

    session_id = document.get("session_id")
    if not isinstance(session_id, str) or not session_id:
        raise ImportFormatError("the file does not say which session it is: it has no session_id")
    session: Any = open_session(url_of(options), session_id)
    async with aclosing(session):
        if await session.get_items(limit=1):
            raise ConflictError("there is a session with this id already, and it was left as it is")
        return {"sessions": 1, "items": await import_session(session, options.file, "json")}


def _read_document(path: Path) -> dict[str, Any]:
    """An export, written as one JSON document or as JSON Lines."""
    try:
        text = path.read_text("utf-8-sig")
        read = _read_lines(text) if _is_lines(text) else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(f"{path} is neither JSON nor JSON Lines, nor a file of the SDK") from error
    if not isinstance(read, dict):
        raise ImportFormatError(f"{path} is no export: it is a list, and should be an object")
    if "items" not in read and not str(read.get("format", "")).startswith("recollect.user/"):
        raise ImportFormatError(f"{path} is neither the export of a user nor that of a session")
    return read


def _is_lines(text: str) -> bool:
    """Whether the first line is a document of its own, and more comes after it."""
    first, _, rest = text.partition("\n")
    try:
        json.loads(first)
    except ValueError:
        return False
    return bool(rest.strip()) or '"kind"' in first


def _read_lines(text: str) -> dict[str, Any]:
    heading, *records = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not isinstance(heading, dict):
        raise ValueError("the first line is no heading")
    lists: dict[str, list[Any]] = {}
    for record in records:
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str) or "data" not in record:
            raise ValueError("a line is no record")
        lists.setdefault(record["kind"], []).append(record["data"])
    return {**heading, **lists}
