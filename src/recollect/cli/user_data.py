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
from ..service_client import is_service_url
from .arguments import (
    Commands,
    add_command,
    add_database_options,
    add_json_option,
    add_yes_option,
    raise_usage_error,
)
from .database import (
    confirm,
    hide_credentials,
    open_store,
    resolve_existing_url,
    resolve_new_url,
    resolve_url,
    resolve_user,
    sqlite_file,
)
from .output import Progress, one_line, plural, print_json, print_note, progress, table
from .threads import export_threads, import_store_items


def add_export_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    export = add_command(
        commands,
        "export",
        "export the data of a user, an agent or a tenant",
        "  recollect export --user ada --output ada.jsonl\n"
        "  recollect export --user ada --json > ada.json\n"
        "  recollect export --user ada --markdown --output ada.md   for people to read\n"
        "  recollect export --all --output tenant.jsonl             all users of the tenant\n"
        "  recollect export --all --agent support                   what one agent has of them\n",
        _export,
    )
    _add_subject_options(export)
    export.add_argument("--all", action="store_true", help="all users of the tenant")
    export.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="a file, created with mode 0600 (default: standard output); with --all --markdown, a folder",
    )
    add_database_options(export)
    forms = export.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="write one JSON document instead of JSON Lines")
    forms.add_argument("--markdown", action="store_true", help="write text for people: entries and evidence")


def add_erase_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    erase = add_command(
        commands,
        "erase",
        "erase all data about a user, permanently",
        "  recollect erase --user ada\n  recollect erase --user ada --yes --vacuum --json > receipt.json\n",
        _erase,
    )
    _add_subject_options(erase)
    erase.add_argument(
        "--vacuum",
        action="store_true",
        help="then remove the data from the database files, which takes a while",
    )
    add_yes_option(erase)
    add_database_options(erase)
    add_json_option(erase)


def _add_subject_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", help="the user (default: RECOLLECT_USER)")
    parser.add_argument("--agent", help="only data of this agent (default: all agents)")


# --- export ---


def _export(options: argparse.Namespace) -> int:
    from .exporting import export_markdown, export_tenant

    if options.all and options.user:
        raise_usage_error("give --user or --all, not both")
    if options.all and options.json:
        raise_usage_error("--all writes JSON Lines or Markdown: leave out --json")
    if (options.all or options.markdown) and is_service_url(resolve_url(options)):
        raise_usage_error("a service exports one user as JSON: leave out --all and --markdown")
    if options.markdown:
        return export_markdown(options)
    if options.all:
        with _open_output(options.output) as file:
            return export_tenant(options, file)
    user_id = resolve_user(options)
    with _open_output(options.output) as file, progress("exporting") as shown:
        lines = asyncio.run(_write_export(options, user_id, file, shown))
    if lines == 0:
        print_note("no data about this user")
    elif options.output is not None:
        print_note(f"exported {plural(lines, 'record')} to {options.output}")
    return 0


async def _write_export(options: argparse.Namespace, user_id: str, file: TextIO, shown: Progress) -> int:
    threads = [thread async for thread in export_threads(options, user_id)]
    async with open_store(options) as store:
        if options.json:
            exported = await store.export_user(user_id, agent_id=options.agent)
            exported |= {"threads": threads} if threads else {}
            file.write(json.dumps(exported, indent=2) + "\n")
            return sum(len(each) for each in exported.values() if isinstance(each, list))
        counted = cast(IO[str], _CountingFile(file, shown))
        lines = await store.export_user_to(counted, user_id, agent_id=options.agent) - 1
        for thread in threads:
            counted.write(json.dumps({"kind": "threads", "data": thread}) + "\n")
        return lines + len(threads)


class _CountingFile:
    """A file that counts the lines written to it."""

    def __init__(self, file: TextIO, shown: Progress) -> None:
        self._file = file
        self._shown = shown

    def write(self, text: str) -> int:
        """Write a line."""
        self._shown.advance()
        return self._file.write(text)


@contextmanager
def _open_output(path: Path | None) -> Iterator[TextIO]:
    """Open the output: standard output, or a private file that appears complete or not at all."""
    if path is None:
        yield sys.stdout
        return
    with replace_privately(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield file


# --- erase ---


def _erase(options: argparse.Namespace) -> int:
    user_id = resolve_user(options)
    where = hide_credentials(resolve_existing_url(options))
    if not confirm(options, f"Erase all data about {one_line(user_id)} in {where}, permanently?"):
        return 1
    with progress("erasing"):
        receipt = asyncio.run(_erase_user(options, user_id))
    if options.json:
        print_json(receipt)
        return 0
    gone = {name: number for name, number in receipt["counts"].items() if number}
    if gone:
        print(table(("ERASED", "COUNT"), gone.items()))
    else:
        print_note("no data about this user was stored")
    print(f"receipt: {receipt['subject']} at {receipt['erased_at']}")
    for words in receipt["remains"].values():
        print_note(words)
    return 0


async def _erase_user(options: argparse.Namespace, user_id: str) -> dict[str, Any]:
    async with open_store(options) as store:
        receipt = await store.erase_user(user_id, agent_id=options.agent)
        if options.vacuum:
            await store.vacuum()
        return receipt.to_dict()


_SQLITE = b"SQLite format 3\0"
_LONGEST_FIRST_LINE = 1_000_000  # bytes
_SKIPPED = ("sessions", "events", "summaries", "threads")  # parts of an export that are not imported


def add_import_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    importing = add_command(
        commands,
        "import",
        "import from other systems, or the export of a user",
        "  recollect import chatgpt export.zip --user ada         conversations, with their times\n"
        "  recollect import mem0 ~/.mem0 --user ada --dry-run     what would be imported\n"
        "  recollect import jsonl ada.jsonl                       an export, or lines of your own\n"
        "  recollect import ada.jsonl                             the same\n"
        "  recollect import demo.json                             one session, written by export_session\n"
        "  recollect import claude-code --follow                  transcripts, and what is added to them\n"
        f"\nkinds:\n{_kinds_listed()}"
        "\nAn import can be repeated: what is there is skipped. The exit code is 1 if anything was lost.\n",
        _import,
    )
    importing.add_argument("kind", metavar="KIND", help="the kind of the source (listed below), or a file")
    importing.add_argument("source", metavar="SOURCE", nargs="?", help="a file, a folder, a URL or an id")
    importing.add_argument(
        "--user", help="the user of conversations that name none (default: RECOLLECT_USER)"
    )
    importing.add_argument("--agent", help="their agent (default: RECOLLECT_AGENT, else assistant)")
    importing.add_argument("--follow", action="store_true", help="transcripts: go on until interrupted")
    importing.add_argument("--again", action="store_true", help="transcripts: read unchanged ones, too")
    importing.add_argument("--dry-run", action="store_true", help="count and show a sample; write nothing")
    importing.add_argument(
        "--learn",
        action=argparse.BooleanOptionalAction,
        help="learn from the conversations (default: of chatgpt, claude and jsonl)",
    )
    add_database_options(importing)
    add_json_option(importing)


def _kinds_listed() -> str:
    from ..moving.kinds import KINDS
    from .transcripts import PROGRAMS

    listed = {kind.name: kind.words for kind in KINDS.values()} | PROGRAMS
    return "".join(f"  {name:<21}{words}\n" for name, words in listed.items())


def _import(options: argparse.Namespace) -> int:
    from ..moving.kinds import kind_named
    from .moving import import_kind, import_source
    from .transcripts import PROGRAMS, import_transcripts

    if options.kind in PROGRAMS:
        return import_transcripts(options)
    if options.source is not None:
        return import_kind(options)
    options.file = Path(options.kind)
    if _is_lines_file(options.file):
        return import_source(options, kind_named("jsonl"), options.kind)
    return _import_file(options)


def _import_file(options: argparse.Namespace) -> int:
    if options.dry_run:
        raise_usage_error("--dry-run needs JSON Lines, or a KIND and its SOURCE")
    with options.file.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    if is_database:
        _check_other(resolve_url(options), options.file)
        counts = asyncio.run(_import_sdk(options))
    else:
        counts = asyncio.run(_import_document(options, _read_document(options.file)))
    if options.json:
        print_json(counts)
    else:
        print(table(("IMPORTED", "COUNT"), ((name.replace("_", " "), n) for name, n in counts.items())))
    return 0


def _check_other(url: str, path: Path) -> None:
    target = sqlite_file(url)
    if target is not None and target.resolve() == path.resolve():
        raise ConflictError("cannot import a file into itself: its sessions are already there")


async def _import_sdk(options: argparse.Namespace) -> dict[str, int]:
    from ..sessions.manager import open_session
    from ..sessions.sdk_import import import_sdk_sessions

    url = resolve_new_url(options)
    with progress("importing sessions") as shown:

        def opened(session_id: str) -> Any:
            shown.advance()
            return open_session(url, session_id)

        report = await import_sdk_sessions(options.file, opened)
    counts = {"sessions": report.sessions, "items": report.items, "branches": len(report.branches)}
    counts |= {"corrupt_rows": report.corrupt_rows, "sessions_left_alone": report.sessions_left_alone}
    counts |= {"names_passed_over": report.names_passed_over}
    return counts


async def _import_document(options: argparse.Namespace, document: dict[str, Any]) -> dict[str, int]:
    if isinstance(document.get("items"), list):
        return await _import_session(options, document)
    if skipped := _skipped_kinds(document):
        print_note(f"not imported (exported for reading only): {', '.join(skipped)}")
    with progress("importing"):
        # Items first: they are skipped if the import is repeated, and the rest is not.
        items = await import_store_items(options, document)
        async with open_store(options, create=True) as store:
            return await store.import_user(document) | items


def _skipped_kinds(document: dict[str, Any]) -> list[str]:
    counts = {kind: document.get(kind) for kind in _SKIPPED}
    return [f"{len(listed)} {kind}" for kind, listed in counts.items() if listed and isinstance(listed, list)]


async def _import_session(options: argparse.Namespace, document: dict[str, Any]) -> dict[str, int]:
    """Import a session written by `export_session`. An existing session is not changed."""
    from ..sessions.history import import_session
    from ..sessions.manager import open_session

    session_id = document.get("session_id")
    if not isinstance(session_id, str) or not session_id:
        raise ImportFormatError("the file has no session_id")
    session: Any = open_session(resolve_new_url(options), session_id)
    async with aclosing(session):
        if await session.get_items(limit=1):
            raise ConflictError("a session with this id already exists and was not changed")
        return {"sessions": 1, "items": await import_session(session, options.file, "json")}


def _read_document(path: Path) -> dict[str, Any]:
    """Read an export as one JSON document."""
    try:
        text = path.read_text("utf-8-sig")
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ImportFormatError(f"{path} is not JSON, JSON Lines or a SQLite file of the SDK") from error
    if not isinstance(read, dict):
        raise ImportFormatError(f"{path} is not an export: expected a JSON object, found another JSON value")
    if "items" not in read and not str(read.get("format", "")).startswith("recollect.user/"):
        raise ImportFormatError(f"{path} is neither a user export nor a session export")
    return read


def _is_lines_file(path: Path) -> bool:
    """Whether the first line is a complete JSON object, of an export or of the line format."""
    with path.open("rb") as file:
        line = file.readline(_LONGEST_FIRST_LINE).removeprefix(b"\xef\xbb\xbf")
        has_more = bool(file.read(1))
    try:
        first = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "items" not in first and (has_more or "kind" in first)
