"""`recollect import KIND SOURCE` and `recollect copy`: moving in from other systems and between databases."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from ..service_client import is_service_url
from .arguments import (
    Commands,
    NotFoundError,
    add_command,
    add_json_option,
    add_yes_option,
    raise_usage_error,
    suggestion,
)
from .database import confirm, hide_credentials, open_store, resolve_new_url, resolve_url, sqlite_file
from .output import one_line, plural, print_json, print_note, progress, table

if TYPE_CHECKING:
    from ..moving.copying import CopyReport
    from ..moving.kinds import Kind, ReadOptions
    from ..moving.records import ImportReport

_SHOWN = 20  # problems that are printed; `--json` has up to a thousand
_SAMPLE = 3  # conversations or entries that a dry run shows
_AGENT = "assistant"


def import_kind(options: argparse.Namespace) -> int:
    """Import a source of a kind and print the report. The exit code is 1 if anything was lost."""
    from ..moving.kinds import KINDS, kind_named

    if options.kind not in KINDS:
        hint = suggestion(options.kind, KINDS) or f"use one of {', '.join(KINDS)}"
        raise_usage_error(f"unknown kind '{one_line(options.kind)}'; {hint}")
    return import_source(options, kind_named(options.kind), options.source)


def import_source(options: argparse.Namespace, kind: "Kind", source: str) -> int:
    """Import a source of a kind."""
    if is_service_url(resolve_url(options)) and not options.dry_run:
        raise_usage_error("a service takes lines with POST /v1/import: --url must be a database")
    reading = _read_options(options, kind)
    if kind.name == "langgraph":
        report = _copy_langgraph(options, source)
    elif options.dry_run:
        report = asyncio.run(_try(options, kind, source, reading))
    else:
        report = asyncio.run(_run(options, kind, source, reading))
    if options.json:
        print_json(report.to_dict())
    else:
        print_report(report, options.dry_run)
    return 0 if report.is_complete else 1


def _copy_langgraph(options: argparse.Namespace, source: str) -> "ImportReport":
    from ..moving.readers.langgraph import copy_langgraph

    if options.dry_run:
        raise_usage_error(
            "langgraph has no dry run: its copies are compared, and repeated copies change nothing"
        )
    with progress("copying"):
        return asyncio.run(copy_langgraph(source, resolve_new_url(options)))


def _read_options(options: argparse.Namespace, kind: "Kind") -> "ReadOptions":
    import os

    from ..moving.kinds import ReadOptions

    user = options.user or os.environ.get("RECOLLECT_USER")
    if kind.needs_owner and not user:
        raise_usage_error(f"whose is it? {kind.name} does not say: pass --user or set RECOLLECT_USER")
    agent = options.agent or os.environ.get("RECOLLECT_AGENT")
    key, base = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    return ReadOptions(options.tenant, agent, user, key, base)


def _learns(options: argparse.Namespace, kind: "Kind") -> bool:
    return kind.learns if options.learn is None else bool(options.learn)


async def _run(
    options: argparse.Namespace, kind: "Kind", source: str, reading: "ReadOptions"
) -> "ImportReport":
    from ..moving.importer import Importer
    from ..moving.sources import watching
    from .store_items import StoreItems

    with progress("importing") as shown, watching(shown.reach):
        async with open_store(options, create=True) as store:
            importer = Importer(
                store,
                agent_id=reading.agent_id or _AGENT,
                user_id=reading.user_id,
                learn=_learns(options, kind),
            )
            items = StoreItems(options)
            records = kind.read(source, reading)
            taken = records if isinstance(records, AsyncIterator) else items.take_from(records)
            report = await importer.run(taken if kind.name == "jsonl" else records)
            report.merge(items.report)
            return report


async def _try(
    options: argparse.Namespace, kind: "Kind", source: str, reading: "ReadOptions"
) -> "ImportReport":
    """Read everything, count it, and print a sample. Nothing is written."""
    from ..moving.importer import dry_run
    from ..moving.sources import watching

    with progress("reading") as shown, watching(shown.reach):
        report, sample = await dry_run(kind.read(source, reading), reading, _AGENT, _SAMPLE)
    if not options.json:
        for line in sample:
            print(one_line(line))
    return report


def print_report(report: "ImportReport", is_dry: bool = False) -> None:
    """Print what an import added, skipped and lost."""
    names = sorted(report.added.keys() | report.existing.keys())
    rows = [(name.replace("_", " "), report.added[name], report.existing[name]) for name in names]
    rows = [row for row in rows if row[1] or row[2]]
    if rows:
        print(table(("RECORDS", "FOUND" if is_dry else "IMPORTED", "ALREADY THERE"), rows))
    else:
        print_note("nothing to import")
    for reason, count in report.empty.items():
        print_note(f"not imported, {plural(count, 'time')}: {reason}")
    for problem in report.problems[:_SHOWN]:
        print_note(one_line(f"{problem.where}: {problem.reason}"))
    if report.lost > _SHOWN:
        print_note(f"and {report.lost - _SHOWN:,} more; --json lists them")
    if report.lost:
        rest = "can be imported" if is_dry else "was imported"
        print_note(f"{plural(report.lost, 'part')} lost or changed, as listed; everything else {rest}")


# --- copy ---


def add_copy_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    copying = add_command(
        commands,
        "copy",
        "copy a database to another one, such as a file to PostgreSQL, and compare them",
        "  recollect copy recollect.db postgresql://user@host/name\n"
        "  recollect copy postgresql://user@host/name recollect.db\n"
        "\nThe source may be in use. Stop the writers and run the command again before you switch: the\n"
        "second pass copies only what has changed. Rows that only the target has are removed, with --yes or\n"
        "after a question. Tables of other applications are left alone.\n",
        _copy,
    )
    copying.add_argument("source", metavar="FROM", help="a path or postgresql://user@host/name")
    copying.add_argument("target", metavar="TO", help="the same; its tables are created if they are missing")
    add_yes_option(copying)
    add_json_option(copying)


def _copy(options: argparse.Namespace) -> int:
    report = asyncio.run(_copy_databases(options))
    if report is None:
        return 1
    if options.json:
        print_json({"tables": [vars(each) for each in report.tables]})
        return 0
    rows = [
        (each.name, each.rows, each.added, each.changed, each.removed, each.checksum)
        for each in report.tables
        if each.rows or each.removed
    ]
    print(table(("TABLE", "ROWS", "ADDED", "CHANGED", "REMOVED", "CHECKSUM OF BOTH"), rows))
    if report.written:
        print_note(
            f"{plural(report.written, 'row')} written; both have the same {report.rows:,} rows. If the source"
            " is in use, stop its writers and run this again"
        )
    else:
        print_note(f"nothing to copy: both have the same {plural(report.rows, 'row')}")
    return 0


async def _copy_databases(options: argparse.Namespace) -> "CopyReport | None":
    """Copy, unless rows would be removed and the user does not want that."""
    from ..errors import ConflictError
    from ..moving.copying import copy_database
    from .copied_tables import add_search_indexes, create_tables, our_tables

    source, target = options.source, options.target
    paths = [sqlite_file(url) for url in (source, target)]
    if source == target or (paths[0] is not None and paths[1] and paths[0].resolve() == paths[1].resolve()):
        raise ConflictError("cannot copy a database into itself")
    if paths[0] is not None and not paths[0].exists():
        raise NotFoundError(f"no database at {paths[0]}")
    await create_tables(source, target)
    tables = await our_tables(source)
    extra = {} if options.yes else await _count_extra(source, target, tables)
    if extra and not confirm(options, _question(extra, target), _question(extra, target) + " Pass --yes"):
        return None
    with progress("copying") as shown:
        report = await copy_database(
            source,
            target,
            lambda _, done, size: shown.reach(done, size),
            tables=tables,
            remove_extra=options.yes or bool(extra),
        )
    with progress("indexing"):
        await add_search_indexes(target)
    return report


async def _count_extra(source: str, target: str, tables: set[str]) -> dict[str, int]:
    from ..moving.copying import count_extra_rows

    with progress("comparing"):
        return await count_extra_rows(source, target, tables=tables)


def _question(extra: dict[str, int], target: str) -> str:
    found = ", ".join(f"{count:,} of {name}" for name, count in extra.items())
    return f"Remove the rows that only {hide_credentials(target)} has ({found})?"
