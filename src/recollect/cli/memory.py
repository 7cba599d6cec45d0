"""`recollect memory`: what is known about users, with history and evidence."""

import argparse
import asyncio
import json
from typing import TYPE_CHECKING

from ..memory.lifetime import state_of, trust_in
from ..memory.operations.lists import ListEntries, ListMemories, ListUsers
from ..memory.times import now
from .arguments import (
    Commands,
    NotFoundError,
    add_command,
    add_database_options,
    add_json_option,
    add_operation_options,
    add_owner_options,
    operation_from,
)
from .database import open_store, resolve_owner
from .output import colorize, indent_lines, one_line, plural, print_json, print_note, table

if TYPE_CHECKING:
    from ..memory.entry import Entry
    from ..memory.memory import MemoryOutline, UserOutline
    from ..memory.rights.why import Quote, Why

TYPES = ("profile", "event", "mind", "instruction")
NO_ENTRY = "no entry with this id; `recollect memory show` and `recollect recall` show ids"
_ENTRY_HELP = "the id, as shown by `recollect memory show`"


def add_memory_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    memory = add_command(
        commands,
        "memory",
        "show what is known about users, with history and evidence",
        "  recollect memory users\n  recollect memory show --user ada\n",
    )
    actions = memory.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_users(actions)
    _add_list(actions)
    _add_show(actions)
    for name, words, run in (
        ("history", "show an entry and the entries it superseded, oldest first", _history),
        (
            "confirm",
            "confirm an entry: it is certain, and a rejected or expired one is current again",
            _confirm,
        ),
        ("reject", "reject an entry, so that it is not learned again from the same words", _reject),
        ("why", "show the evidence of an entry: the quoted messages and the model that read them", _why),
    ):
        example = f"  recollect memory {name} 5f0c3c1e-0d0b-4a43-9f57-8f6a5a6f2f11\n"
        action = add_command(actions, name, words, example, run)
        action.add_argument("entry_id", metavar="ENTRY_ID", help=_ENTRY_HELP)
        add_database_options(action)
        add_json_option(action)


def _add_users(actions: Commands) -> None:
    users = add_command(
        actions,
        "users",
        "list users with stored data",
        "  recollect memory users\n  recollect memory users --limit 1000 --json\n",
        _users,
    )
    add_operation_options(users, ListUsers)
    add_database_options(users)
    add_json_option(users)


def _add_list(actions: Commands) -> None:
    listing = add_command(
        actions,
        "list",
        "list memories, one per agent and user",
        "  recollect memory list\n  recollect memory list --user ada --json\n",
        _list,
    )
    add_operation_options(listing, ListMemories)
    add_database_options(listing)
    add_json_option(listing)


def _add_show(actions: Commands) -> None:
    show = add_command(
        actions,
        "show",
        "show what is known about a user",
        "  recollect memory show --user ada\n"
        "  recollect memory show --user ada --type event --as-of 2026-01-31\n",
        _show,
    )
    add_owner_options(show)
    add_operation_options(show, ListEntries, "agent_id", "user_id")
    add_database_options(show)
    add_json_option(show)


# --- actions ---


def _users(options: argparse.Namespace) -> int:
    found = asyncio.run(_read_users(options))
    if options.json:
        print_json([user.to_dict() for user in found])
    elif found:
        rows = ((each.user_id, each.memory_count, f"{each.updated_at:%Y-%m-%d %H:%M}") for each in found)
        print(table(("USER", "MEMORIES", "UPDATED"), rows))
    else:
        print_note("no users")
    return 0


async def _read_users(options: argparse.Namespace) -> "list[UserOutline]":
    async with open_store(options) as store:
        return await store.perform(operation_from(options, ListUsers))


def _list(options: argparse.Namespace) -> int:
    found = asyncio.run(_read_memories(options))
    if options.json:
        print_json([outline.to_dict() for outline in found])
    elif found:
        print(table(("USER", "AGENT", *map(str.upper, TYPES), "UPDATED", "MEMORY"), map(_row, found)))
    else:
        print_note("no memories")
    return 0


async def _read_memories(options: argparse.Namespace) -> "list[MemoryOutline]":
    async with open_store(options) as store:
        return await store.perform(operation_from(options, ListMemories))


def _row(outline: "MemoryOutline") -> tuple[object, ...]:
    counts = [outline.counts[kind] for kind in outline.counts]
    updated = f"{outline.updated_at:%Y-%m-%d %H:%M}"
    return outline.user_id, outline.agent_id, *counts, updated, outline.memory_id


def _show(options: argparse.Namespace) -> int:
    entries = asyncio.run(_read_entries(options))
    if options.json:
        print_json([entry.to_dict() for entry in entries])
        return 0
    if not entries:
        print_note("nothing is known about this user; `recollect memory list` shows all memories")
    for kind in TYPES:
        rows = [_entry_row(entry) for entry in entries if entry.content_type == kind]
        if rows:
            print(colorize(kind, "bold"))
            print("\n".join(f"  {text}\n  {colorize(about, 'dim')}" for text, about in rows))
    return 0


async def _read_entries(options: argparse.Namespace) -> "list[Entry]":
    async with open_store(options) as store:
        agent_id, user_id = resolve_owner(options)
        return await store.perform(operation_from(options, ListEntries, agent_id=agent_id, user_id=user_id))


def _entry_row(entry: "Entry") -> tuple[str, str]:
    cited = plural(len({each.message_id for each in entry.evidence}), "message")
    about = [
        entry.content_id,
        f"learned {entry.learned_at:%Y-%m-%d}",
        f"from {cited}" if entry.evidence else "",
    ]
    about += [f"since {entry.valid_from}" if entry.valid_from else "", f"confidence {entry.confidence:g}"]
    state = state_of(entry, now())
    about += [f"until {entry.expires_at:%Y-%m-%d %H:%M}" if entry.expires_at else ""]
    about += ["" if state == "current" else state]
    about += [f"metadata {json.dumps(dict(entry.metadata), ensure_ascii=False)}" if entry.metadata else ""]
    about += [f"tags {', '.join(entry.tags)}" if entry.tags else ""]
    return one_line(entry.text), one_line(", ".join(filter(None, about)))


def _confirm(options: argparse.Namespace) -> int:
    return asyncio.run(_review(options, "confirmed"))


def _reject(options: argparse.Namespace) -> int:
    return asyncio.run(_review(options, "rejected"))


async def _review(options: argparse.Namespace, done: str) -> int:
    async with open_store(options) as store:
        if await store.get_entry(options.entry_id) is None:
            raise NotFoundError(NO_ENTRY)
        act = store.confirm_entry if done == "confirmed" else store.reject_entry
        entry = await act(options.entry_id)
    if options.json:
        print_json(entry.to_dict())
    else:
        print(f"{done} {entry.content_id}")
    return 0


def _history(options: argparse.Namespace) -> int:
    entries = asyncio.run(_read_history(options))
    if not entries:
        raise NotFoundError(NO_ENTRY)
    if options.json:
        print_json([entry.to_dict() for entry in entries])
    else:
        rows = ((f"{each.learned_at:%Y-%m-%d %H:%M}", _format_end(each), each.text) for each in entries)
        print(table(("LEARNED", "VALID UNTIL", "TEXT"), rows))
    return 0


async def _read_history(options: argparse.Namespace) -> "list[Entry]":
    async with open_store(options) as store:
        return await store.get_history(options.entry_id)


def _format_end(entry: "Entry") -> str:
    return "now" if entry.retired_at is None else f"{entry.retired_at:%Y-%m-%d %H:%M}"


def _why(options: argparse.Namespace) -> int:
    why = asyncio.run(_read_why(options))
    if why is None:
        raise NotFoundError(NO_ENTRY)
    if options.json:
        print_json(why.to_dict())
    else:
        print("\n".join(_explain(why)))
    return 0


async def _read_why(options: argparse.Namespace) -> "Why | None":
    async with open_store(options) as store:
        return await store.why(options.entry_id)


def _explain(why: "Why") -> list[str]:
    lines = [colorize(one_line(why.entry.text), "bold"), f"  {_describe_state(why.entry)}"]
    if why.edit is not None:
        by = one_line(why.edit.edited_by) if why.edit.edited_by else "a person"
        lines.append(f"  edited by {by} on {why.edit.edited_at:%Y-%m-%d %H:%M}")
    elif not why.evidence:
        lines.append("  added by a person" if why.origin is None else "  its evidence was erased")
    for quote in why.evidence:
        lines += _render_quote(quote)
    if why.origin is not None:
        by = why.origin.model or "an unknown model"
        lines.append(indent_lines(f"learned by {by}, run {why.origin.run_id}", "  "))
    lines += [f"  superseded: {one_line(entry.text)}" for entry in why.supersedes]
    lines += [f"  superseded by: {one_line(entry.text)}" for entry in why.superseded_by]
    return lines


def _describe_state(entry: "Entry") -> str:
    at = now()
    parts = [f"{state_of(entry, at)}, trust {trust_in(entry, at):.2f}"]
    for words, time in (
        ("confirmed", entry.last_confirmed_at),
        ("expires", entry.expires_at),
        ("rejected", entry.rejected_at),
    ):
        parts += [f"{words} {time:%Y-%m-%d %H:%M}"] if time is not None else []
    return ", ".join(parts)


def _render_quote(quote: "Quote") -> list[str]:
    said = f"  {quote.created_at:%Y-%m-%d %H:%M}, {one_line(quote.speaker)} said:"
    return [said, indent_lines(quote.content, " " * 4)]
