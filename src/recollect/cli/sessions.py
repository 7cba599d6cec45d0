"""`recollect sessions`: list, show and delete sessions."""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..items import Item, is_call, is_output, is_reasoning, pair_calls, role_of, text_of, type_of
from .arguments import (
    Commands,
    NotFoundError,
    add_command,
    add_database_options,
    add_json_option,
    add_yes_option,
    count,
)
from .database import confirm, resolve_existing_url
from .output import colorize, indent_lines, one_line, plural, print_json, print_note, table
from .threads import delete_thread, list_threads, read_thread

if TYPE_CHECKING:
    from ..sessions.protocol import SessionInfo

_PAGE = 200
_CHAT_TABLES = ("sdk_agent_sessions", "sdk_agent_session_messages")


def add_sessions_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    sessions = add_command(
        commands,
        "sessions",
        "list, show and delete sessions",
        "  recollect sessions list --user ada\n  recollect sessions show demo --limit 20\n",
    )
    actions = sessions.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_list(actions)
    _add_show(actions)
    _add_delete(actions)


def _add_list(actions: Commands) -> None:
    listing = add_command(
        actions,
        "list",
        "list sessions, most recently used first",
        "  recollect sessions list\n  recollect sessions list --user ada --json\n"
        "  recollect sessions list --chats --url postgresql://recollect@db/recollect\n",
        _list,
    )
    listing.add_argument("--user", help="only sessions whose metadata names this user")
    listing.add_argument("--agent", help="only sessions whose metadata names this agent")
    listing.add_argument("--limit", type=count, default=50, metavar="N", help="maximum number (default: 50)")
    _add_common(listing)


def _add_delete(actions: Commands) -> None:
    delete = add_command(
        actions,
        "delete",
        "delete a session and its items, permanently",
        "  recollect sessions delete demo\n  recollect sessions delete demo --yes\n",
        _delete,
    )
    delete.add_argument(
        "session_id", metavar="SESSION_ID", help="the id, as shown by `recollect sessions list`"
    )
    add_yes_option(delete)
    _add_common(delete)


def _add_show(actions: Commands) -> None:
    show = add_command(
        actions,
        "show",
        "show the items of a session, with tool calls on one line",
        "  recollect sessions show demo\n  recollect sessions show demo --all --unfold\n"
        "  recollect sessions show demo --branch retry --json\n",
        _show,
    )
    show.add_argument(
        "session_id", metavar="SESSION_ID", help="the id, as shown by `recollect sessions list`"
    )
    show.add_argument(
        "--limit", type=count, default=50, metavar="N", help="number of newest items (default: 50)"
    )
    show.add_argument("--all", action="store_true", help="show all items")
    show.add_argument("--unfold", action="store_true", help="show tool arguments and outputs in full")
    show.add_argument("--branch", help="a branch of the session")
    _add_common(show)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chats", action="store_true", help=f"chat sessions of the service, in the table {_CHAT_TABLES[0]}"
    )
    parser.add_argument("--threads", action="store_true", help="threads of LangGraph, with their checkpoints")
    parser.add_argument("--sessions-table", metavar="NAME", help="(default: agent_sessions)")
    parser.add_argument("--messages-table", metavar="NAME", help="(default: agent_messages)")
    add_database_options(parser, tenant=False)
    add_json_option(parser)


# --- actions ---


def _list(options: argparse.Namespace) -> int:
    found = asyncio.run(list_threads(options) if options.threads else _gather(options))
    counted = "CHECKPOINTS" if options.threads else "ITEMS"
    if options.json:
        print_json([_as_json(info) for info in found])
    elif found:
        print(table(("SESSION", counted, "UPDATED", "USER", "TITLE"), map(_row, found)))
    else:
        print_note("no sessions" + asyncio.run(_describe_others(options)))
    return 0


async def _describe_others(options: argparse.Namespace) -> str:
    """Where the database has sessions, if not in the tables that were listed."""
    if options.chats or options.threads or options.sessions_table:
        return ""
    options.chats, options.limit = True, 1
    if await _gather(options):
        return " here, but the service has chats: add --chats"
    return " here, but there are threads of LangGraph: add --threads" if await list_threads(options) else ""


async def _gather(options: argparse.Namespace) -> "list[SessionInfo]":
    from ..sessions.manager import SessionManager

    found: list[SessionInfo] = []
    cursor = None
    with closing(SessionManager(resolve_existing_url(options), **_tables(options))) as manager:
        while len(found) < options.limit:
            most = min(_PAGE, options.limit - len(found))
            page = await manager.list_sessions(
                user_id=options.user, agent_id=options.agent, limit=most, cursor=cursor
            )
            found += page.sessions
            cursor = page.next_cursor
            if cursor is None:
                return found
    print_note(f"showing the first {len(found)}; use --limit for more")
    return found


def _show(options: argparse.Namespace) -> int:
    items = asyncio.run(read_thread(options) if options.threads else _read(options))
    if options.json:
        print_json({"session_id": options.session_id, "item_count": len(items), "items": items})
        return 0
    print(colorize(f"{one_line(options.session_id)}: {plural(len(items), 'item')}", "bold"))
    print("\n".join(render_items(items, unfold=options.unfold)))
    if not options.all and len(items) == options.limit:
        print_note(f"showing the newest {options.limit} items; use --all for all")
    return 0


def _delete(options: argparse.Namespace) -> int:
    options.limit, options.all, options.branch = 1, False, None
    if not options.threads:
        asyncio.run(_read(options))  # a missing session is an error before the confirmation
    if not confirm(options, f"Delete the session {one_line(options.session_id)} permanently?"):
        return 1
    asyncio.run(delete_thread(options) if options.threads else _clear(options))
    deleted = {"session_id": options.session_id, "deleted": True}
    print_json(deleted) if options.json else print(f"deleted {one_line(options.session_id)}")
    return 0


async def _read(options: argparse.Namespace) -> list[Any]:
    from ..sessions.manager import open_session
    from ..sessions.protocol import Described, SessionMetadata, with_ability

    session: Any = open_session(
        resolve_existing_url(options), options.session_id, advanced=bool(options.branch), **_tables(options)
    )
    async with aclosing(session):
        limit = sys.maxsize if options.all else options.limit
        branch = {"branch_id": options.branch} if options.branch else {}
        items: list[Any] = await session.get_items(limit=limit, **branch)
        described = with_ability(session, Described)
        if not items and (described is None or await described.get_metadata() == SessionMetadata()):
            what = "session with this id" if not options.branch else "session with this id and branch"
            raise NotFoundError(f"no {what} has any items; `recollect sessions list` shows all sessions")
    return items


async def _clear(options: argparse.Namespace) -> None:
    from ..sessions.manager import open_session

    session: Any = open_session(resolve_existing_url(options), options.session_id, **_tables(options))
    async with aclosing(session):
        await session.clear_session()


def _tables(options: argparse.Namespace) -> dict[str, Any]:
    names = _CHAT_TABLES if options.chats else (None, None)
    sessions, messages = options.sessions_table or names[0], options.messages_table or names[1]
    chosen = {"sessions_table": sessions, "messages_table": messages}
    return {name: table for name, table in chosen.items() if table is not None}


# --- output ---


def _row(info: "SessionInfo") -> tuple[object, ...]:
    owner = info.metadata.user_id or "-"
    return info.session_id, info.item_count, _day(info.updated_at), owner, info.metadata.title or "-"


def _day(time: datetime | None) -> str:
    return "-" if time is None else f"{time:%Y-%m-%d %H:%M}"


def _as_json(info: "SessionInfo") -> dict[str, Any]:
    from ..memory.times import format_time

    metadata = info.metadata
    return {
        "session_id": info.session_id,
        "created_at": info.created_at and format_time(info.created_at),
        "updated_at": info.updated_at and format_time(info.updated_at),
        "item_count": info.item_count,
        "user_id": metadata.user_id,
        "agent_id": metadata.agent_id,
        "title": metadata.title,
        "data": dict(metadata.data),
    }


_FOLDED = 100  # characters of arguments, and of an output
_INDENT = " " * 4


def render_items(items: Sequence[Item], *, unfold: bool = False) -> list[str]:
    """Render items as lines that are safe to print. Reasoning is shown only with `unfold`."""
    pairs = pair_calls(items)
    answered = {place for places in pairs.outputs_of.values() for place in places}
    lines: list[str] = []
    for place, item in enumerate(items):
        if is_call(item):
            outputs = [items[each] for each in pairs.outputs_of.get(place, [])]
            lines += _unfolded(item, outputs) if unfold else [_folded(item, outputs)]
        elif place not in answered and (unfold or not is_reasoning(item)):
            lines += _message(item) if role_of(item) is not None else [_other(item)]
    return lines


def _message(item: Item) -> Iterator[str]:
    yield colorize(one_line(role_of(item) or ""), "bold")
    yield indent_lines(text_of(item), _INDENT)


def _folded(call: Item, outputs: Sequence[Item]) -> str:
    answer = " → ".join(_fold(text_of(output)) for output in outputs) or "no output"
    return colorize(f"{_INDENT}⚙ {_named(call)}({_fold(_arguments(call))}) → {answer}", "dim")


def _unfolded(call: Item, outputs: Sequence[Item]) -> Iterator[str]:
    yield colorize(f"{_INDENT}⚙ {_named(call)}", "dim")
    yield indent_lines(_arguments(call), _INDENT * 2)
    for output in outputs:
        yield colorize(f"{_INDENT}→", "dim")
        yield indent_lines(text_of(output), _INDENT * 2)


def _other(item: Item) -> str:
    kind = "tool output without its call" if is_output(item) else one_line(type_of(item))
    text = _fold(text_of(item))
    return colorize(f"{_INDENT}[{kind}{': ' + text if text else ''}]", "dim")


def _named(call: Item) -> str:
    return one_line(str(call.get("name") or type_of(call)))


def _arguments(call: Item) -> str:
    """Return the arguments of a call. Their field depends on the type of the call."""
    given = next((call[name] for name in ("arguments", "action", "input") if name in call), "")
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _fold(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _FOLDED else f"{line[:_FOLDED]}…"
