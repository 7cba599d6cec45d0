"""`recollect remember`, `recollect recall` and `recollect forget`: one user's memory, by hand."""

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from .arguments import (
    Commands,
    NotThereError,
    add_command,
    add_json,
    add_owner,
    add_place,
    count,
    json_object,
    refuse,
)
from .database import open_store, owner_of, user_of
from .memory import NO_ENTRY, TYPES
from .output import one_line, painted, say, table, tell_json

if TYPE_CHECKING:
    from ..memory.entry import Entry
    from ..memory.hits import MemorySearch, TurnSearch


def add_remember_parser(commands: Commands) -> None:
    """Add the command to the others."""
    remember = add_command(
        commands,
        "remember",
        "write down something about a user",
        '  recollect remember "Ada is allergic to peanuts" --user ada\n'
        '  recollect remember "Ada moved to Porto" --user ada --type event --date 2026-03\n',
        _remember,
    )
    remember.add_argument("text", metavar="TEXT", help="one statement")
    add_owner(remember)
    remember.add_argument(
        "--type", choices=TYPES, default="profile", help="what it is about (default: profile)"
    )
    remember.add_argument("--date", metavar="DATE", help="since when, or on which day, month or year")
    remember.add_argument(
        "--metadata", type=json_object, metavar="JSON", help="a JSON object to keep with it"
    )
    add_place(remember)
    add_json(remember)


def add_recall_parser(commands: Commands) -> None:
    """Add the command to the others."""
    recall = add_command(
        commands,
        "recall",
        "find what is known about a user, and what they said",
        '  recollect recall "where does she live?" --user ada\n'
        "  recollect recall allergies --user ada --type profile --explain\n"
        "  recollect recall allergies --user ada --all-agents\n",
        _recall,
    )
    recall.add_argument("query", metavar="QUERY", help="a question, or some words")
    add_owner(recall)
    recall.add_argument("--type", choices=TYPES, help="only entries of this type, and no messages")
    recall.add_argument("--limit", type=count, default=5, metavar="N", help="of each (default: 5)")
    recall.add_argument("--all-agents", action="store_true", help="of all agents of the user")
    recall.add_argument(
        "--wait", type=count, metavar="SECONDS", help="wait for what is still to be learned, so long at most"
    )
    recall.add_argument("--explain", action="store_true", help="show what each score is made of")
    add_place(recall)
    add_json(recall)


def add_forget_parser(commands: Commands) -> None:
    """Add the command to the others."""
    forget = add_command(
        commands,
        "forget",
        "delete an entry for good, with all that it has superseded",
        "  recollect forget 5f0c3c1e-0d0b-4a43-9f57-8f6a5a6f2f11\n",
        _forget,
    )
    forget.add_argument("entry_id", metavar="ENTRY_ID", help="as `recollect recall` shows it")
    add_place(forget)
    add_json(forget)


# --- remember ---


def _remember(options: argparse.Namespace) -> int:
    entry, is_new = asyncio.run(_write(options))
    if options.json:
        tell_json({"is_new": is_new, **entry.to_dict()})
    else:
        print(f"{'remembered' if is_new else 'remembered already'} as {entry.content_id}")
    return 0


async def _write(options: argparse.Namespace) -> "tuple[Entry, bool]":
    owner = owner_of(options)
    async with open_store(options, makes=True, embeds=True) as store:
        entry, is_new = await store.add_entry_unless_known(
            *owner, options.type, options.text, valid_from=options.date, metadata=options.metadata
        )
        if is_new:
            await store.embed_pending()  # so that it is found by meaning, also where no worker runs
        return entry, is_new


# --- recall ---


def _recall(options: argparse.Namespace) -> int:
    known, said = asyncio.run(_find(options))
    warnings = list(dict.fromkeys((*known.warnings, *said.warnings)))
    if options.json:
        entries, messages = [hit.to_dict() for hit in known.hits], [hit.to_dict() for hit in said.hits]
        tell_json({"entries": entries, "messages": messages, "warnings": warnings})
        return 0
    for warning in warnings:
        say(f"recollect: {one_line(warning)}")
    if not known.hits and not said.hits:
        say("nothing is remembered about that")
    _print_found(known, said, options.explain)
    return 0


async def _find(options: argparse.Namespace) -> "tuple[MemorySearch, TurnSearch]":
    from ..memory.hits import TurnSearch

    owner = _searched(options)
    async with open_store(options, embeds=True) as store:
        if options.wait is not None:
            await store.wait_until_learned(*owner, timeout=options.wait)
        known = await store.search_memories(
            options.query, *owner, limit=options.limit, content_type=options.type
        )
        if options.type is not None:
            return known, TurnSearch(())
        return known, await store.search_conversations(options.query, *owner, limit=options.limit)


def _searched(options: argparse.Namespace) -> tuple[str | None, str]:
    """The agent, unless all are searched, and the user."""
    if not options.all_agents:
        return owner_of(options)
    if options.agent is not None:
        refuse("--agent and --all-agents cannot be given together")
    return None, user_of(options)


def _print_found(known: "MemorySearch", said: "TurnSearch", explain: bool) -> None:
    if known.hits:
        rows = (
            (_score(hit), hit.entry.content_type, hit.entry.content_id, hit.entry.text) for hit in known.hits
        )
        print(table(("SCORE", "TYPE", "ENTRY", "KNOWN"), rows))
    if known.hits and said.hits:
        print()
    if said.hits:
        talks = (
            (_score(hit), hit.message.speaker, f"{hit.message.created_at:%Y-%m-%d}", hit.message.content)
            for hit in said.hits
        )
        print(table(("SCORE", "ROLE", "ON", "SAID"), talks))
    hits: tuple[Any, ...] = (*known.hits, *said.hits)
    for hit in hits if explain else ():
        parts = ", ".join(f"{name} {value:.2f}" for name, value in hit.parts.items())
        print(painted(f"{_score(hit)} = {parts}", "dim"))


def _score(hit: Any) -> str:
    return f"{hit.score:.2f}"


# --- forget ---


def _forget(options: argparse.Namespace) -> int:
    removed = asyncio.run(_delete(options))
    if not removed:
        raise NotThereError(NO_ENTRY)
    if options.json:
        tell_json({"content_id": options.entry_id, "removed": removed})
    else:
        print("forgotten" if removed == 1 else f"forgotten, with {removed - 1} that it had superseded")
    return 0


async def _delete(options: argparse.Namespace) -> int:
    async with open_store(options) as store:
        return await store.delete_entry(options.entry_id)
