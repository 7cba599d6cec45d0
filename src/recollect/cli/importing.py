"""`recollect import`: an export of a user comes back, and sessions of the Agents SDK move in."""

import argparse
import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

from ..errors import ConflictError, ImportFormatError
from .opening import file_of, open_store, url_of
from .output import say, table, tell_json
from .parsing import Commands, add_command, add_json, add_place
from .progress import progress

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
