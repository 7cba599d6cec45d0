"""`recollect remember`, `recollect recall` and `recollect forget`: add, recall and delete what is known."""

import argparse
import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..memory.operations.search import Recall
from .arguments import (
    Commands,
    NotFoundError,
    add_command,
    add_database_options,
    add_json_option,
    add_operation_options,
    add_owner_options,
    chance,
    count,
    date,
    json_object,
    operation_from,
    raise_usage_error,
    time,
)
from .database import open_store, resolve_owner, resolve_user
from .memory import NO_ENTRY, TYPES
from .output import colorize, one_line, print_json, print_note, table

if TYPE_CHECKING:
    from ..memory.block import Line
    from ..memory.entry import Entry
    from ..memory.hits import MemoryHit, Recalled, TurnHit


def add_remember_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    remember = add_command(
        commands,
        "remember",
        "add an entry about a user",
        '  recollect remember "Ada is allergic to peanuts" --user ada\n'
        '  recollect remember "Ada moved to Porto" --user ada --type event --date 2026-03\n',
        _remember,
    )
    remember.add_argument("text", metavar="TEXT", help="one statement")
    add_owner_options(remember)
    remember.add_argument(
        "--type", choices=TYPES, default="profile", help="type of the entry (default: profile)"
    )
    remember.add_argument(
        "--date",
        type=date,
        metavar="DATE",
        help="the day, month or year of an event, or since when a fact holds",
    )
    remember.add_argument(
        "--expires",
        type=time,
        metavar="DATE",
        help="the last day, month or year in which it holds, or a time",
    )
    remember.add_argument(
        "--metadata", type=json_object, metavar="JSON", help="a JSON object to store with the entry"
    )
    remember.add_argument(
        "--tag", action="append", metavar="TAG", help="a tag to store with the entry; may be repeated"
    )
    add_database_options(remember)
    add_json_option(remember)


def add_recall_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    recall = add_command(
        commands,
        "recall",
        "show what an agent is given for a question, line by line",
        '  recollect recall "where does she live?" --user ada\n'
        "  recollect recall allergies --user ada --type profile --explain\n"
        "  recollect recall allergies --user ada --all-agents\n"
        "  recollect recall boat --user ada --tag work --name Bo --since 2026-03\n",
        _recall,
    )
    recall.add_argument("query", metavar="QUERY", help="a question or keywords")
    add_owner_options(recall)
    recall.add_argument("--type", choices=TYPES, help="only entries of this type; no messages")
    recall.add_argument(
        "--limit",
        type=count,
        metavar="N",
        help="show at most so many lines (default: all)",
    )
    add_operation_options(recall, Recall, "query", "agent_id", "user_id", "budget")
    recall.add_argument(
        "--min-score", type=chance, metavar="CHANCE", help="only lines with at least this chance"
    )
    recall.add_argument("--all-agents", action="store_true", help="search all agents of the user")
    recall.add_argument(
        "--wait", type=count, metavar="SECONDS", help="first wait for pending runs, at most this long"
    )
    recall.add_argument("--explain", action="store_true", help="show the parts of each score")
    add_database_options(recall)
    add_json_option(recall)


def add_forget_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    forget = add_command(
        commands,
        "forget",
        "delete an entry and all entries that it superseded, permanently",
        "  recollect forget 5f0c3c1e-0d0b-4a43-9f57-8f6a5a6f2f11\n",
        _forget,
    )
    forget.add_argument("entry_id", metavar="ENTRY_ID", help="the id, as shown by `recollect recall`")
    add_database_options(forget)
    add_json_option(forget)


# --- remember ---


def _remember(options: argparse.Namespace) -> int:
    entry, is_new = asyncio.run(_write(options))
    if options.json:
        print_json({"is_new": is_new, **entry.to_dict()})
    else:
        print(f"{'remembered' if is_new else 'remembered already'} as {entry.content_id}")
    return 0


async def _write(options: argparse.Namespace) -> "tuple[Entry, bool]":
    owner = resolve_owner(options)
    async with open_store(options, create=True, embed=True) as store:
        entry, is_new = await store.add_entry_unless_known(
            *owner,
            options.type,
            options.text,
            valid_from=options.date,
            metadata=options.metadata,
            tags=options.tag,
            expires_at=options.expires,
        )
        if is_new:
            await store.embed_pending()  # makes it searchable by meaning even if no worker runs
        return entry, is_new


# --- recall ---


def _recall(options: argparse.Namespace) -> int:
    found = asyncio.run(_find(options))
    lines = _choose_lines(found, options)
    if options.json:
        print_json({"lines": [line.to_dict() for line in lines], "warnings": list(found.warnings)})
        return 0
    for warning in found.warnings:
        print_note(f"recollect: {one_line(warning)}")
    if not lines:
        print_note("nothing is known about this")
        return 0
    print(table(("CHANCE", "REASON", "ID", "LINE"), map(_cells, lines)))
    if options.explain:
        _explain(found, lines)
    return 0


async def _find(options: argparse.Namespace) -> "Recalled":
    owner = _search_scope(options)
    async with open_store(options, embed=True) as store:
        if options.wait is not None:
            await store.wait_until_learned(*owner, timeout=options.wait)
        return await store.perform(operation_from(options, Recall, agent_id=owner[0], user_id=owner[1]))


def _choose_lines(found: "Recalled", options: argparse.Namespace) -> "list[Line]":
    """The lines of a block that the options let through, in its order."""
    lines = [line for line in found.lines if line.score >= (options.min_score or 0.0)]
    if options.type is not None:
        entries = (*(hit.entry for hit in found.entries), *found.instructions)
        wanted = {entry.content_id for entry in entries if entry.content_type == options.type}
        lines = [line for line in lines if line.kind != "quote" and line.id in wanted]
    return lines[: options.limit]


def _search_scope(options: argparse.Namespace) -> tuple[str | None, str]:
    """Return the agent and the user. The agent is `None` with `--all-agents`."""
    if not options.all_agents:
        return resolve_owner(options)
    if options.agent is not None:
        raise_usage_error("--agent and --all-agents cannot be used together")
    return None, resolve_user(options)


def _cells(line: "Line") -> tuple[str, ...]:
    return f"{line.score:.2f}", line.reason, line.id, line.text


def _explain(found: "Recalled", lines: "Sequence[Line]") -> None:
    """Print the parts of the scores that searches gave to entries and messages."""
    hits: dict[str, MemoryHit | TurnHit] = {hit.message.message_id: hit for hit in found.turns}
    hits |= {hit.entry.content_id: hit for hit in found.entries}
    for line in lines:
        if hit := hits.get(line.id):
            parts = ", ".join(f"{name} {value:.2f}" for name, value in hit.parts.items())
            print(colorize(f"{one_line(line.id)}: {hit.score:.2f} = {parts}", "dim"))


# --- forget ---


def _forget(options: argparse.Namespace) -> int:
    removed = asyncio.run(_delete(options))
    if not removed:
        raise NotFoundError(NO_ENTRY)
    if options.json:
        print_json({"content_id": options.entry_id, "removed": removed})
    else:
        print("forgotten" if removed == 1 else f"forgotten, with {removed - 1} superseded")
    return 0


async def _delete(options: argparse.Namespace) -> int:
    async with open_store(options) as store:
        return await store.delete_entry(options.entry_id)
