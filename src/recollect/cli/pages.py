"""`recollect page`: what is known about a user, on one page."""

import argparse
import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import (
    Commands,
    add_command,
    add_database_options,
    add_json_option,
    add_owner_options,
    count,
    raise_usage_error,
)
from .database import open_store, resolve_owner
from .exporting import file_name, write_file
from .output import plural, print_json, print_note, table

if TYPE_CHECKING:
    from ..memory.page import PageChanges, UserPage
    from ..memory.store import MemoryStore

_USERS = 200  # read at once
_VERSIONS = 20


def add_page_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    page = add_command(
        commands,
        "page",
        "show what is known about a user on one page",
        "  recollect page --user ada\n"
        "  recollect page --user ada --as-of 2026-01-31\n"
        "  recollect page --user ada --since 2026-01-31     what changed since then\n"
        "  recollect page --user ada --prompt               as a model sees it\n"
        "  recollect page --all --output people/            a file for each user\n",
        _page,
    )
    add_owner_options(page)
    page.add_argument("--budget", type=count, default=600, metavar="N", help="most tokens (default: 600)")
    page.add_argument("--as-of", metavar="TIME", help="what was known at this time, such as 2026-01-31")
    forms = page.add_mutually_exclusive_group()
    forms.add_argument("--since", metavar="TIME", help="show the lines that changed since this time")
    forms.add_argument("--history", action="store_true", help="list the newest versions of the page")
    forms.add_argument("--prompt", action="store_true", help="print the page for a prompt, framed as data")
    forms.add_argument("--all", action="store_true", help="all users of the tenant (needs --output)")
    page.add_argument(
        "--output", type=Path, metavar="FOLDER", help="with --all: the folder for the files, one per user"
    )
    add_database_options(page)
    add_json_option(page)


def _page(options: argparse.Namespace) -> int:
    _check(options)
    if options.all:
        files = asyncio.run(_write_all(options))
        print_note(f"wrote {plural(files, 'file')} to {options.output}")
    elif options.history:
        _print_history(options, asyncio.run(_read_history(options)))
    elif options.since is not None:
        _print_changes(options, asyncio.run(_read_changes(options)))
    else:
        _print_page(options, asyncio.run(_read(options)))
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.all != (options.output is not None):
        raise_usage_error("--all writes a file for each user: give --all --output FOLDER")
    if options.all and (options.user or options.json):
        raise_usage_error("--all writes Markdown of all users: leave out --user and --json")
    if options.history and options.as_of:
        raise_usage_error("--history lists all versions: leave out --as-of")


def _print_page(options: argparse.Namespace, page: "UserPage") -> None:
    if options.json:
        print_json(page.to_dict())
        return
    if not page.lines and not page.left_out:
        print_note("nothing is known about this user; `recollect memory list` shows all memories")
    print(page.prompt if options.prompt else page.text, end="\n" if options.prompt and page.prompt else "")
    if page.left_out:
        print_note(f"{plural(page.left_out, 'entry', 'entries')} left out; --budget N makes room for more")


def _print_history(options: argparse.Namespace, pages: "list[UserPage]") -> None:
    if options.json:
        print_json([page.to_dict() for page in pages])
    elif pages:
        rows = ((f"{page.as_of:%Y-%m-%d %H:%M}", page.version, len(page.lines)) for page in pages)
        print(table(("SINCE", "VERSION", "LINES"), rows))
    else:
        print_note("nothing is known about this user")


def _print_changes(options: argparse.Namespace, changes: "PageChanges") -> None:
    if options.json:
        print_json(asdict(changes))
        return
    for sign, lines in (("-", changes.removed), ("+", changes.added)):
        for line in lines:
            print(f"{sign} {line.text}")
    if not changes.removed and not changes.added:
        print_note("no changes")


async def _read(options: argparse.Namespace) -> "UserPage":
    async with open_store(options) as store:
        return await store.page(*resolve_owner(options), budget=options.budget, as_of=options.as_of)


async def _read_history(options: argparse.Namespace) -> "list[UserPage]":
    async with open_store(options) as store:
        return await store.page_history(*resolve_owner(options), budget=options.budget, limit=_VERSIONS)


async def _read_changes(options: argparse.Namespace) -> "PageChanges":
    async with open_store(options) as store:
        owner, budget = resolve_owner(options), options.budget
        older = await store.page(*owner, budget=budget, as_of=options.since)
        return (await store.page(*owner, budget=budget, as_of=options.as_of)).changes_since(older)


async def _write_all(options: argparse.Namespace) -> int:
    files, after = 0, None
    async with open_store(options) as store:
        while users := await store.list_users(after=after, limit=_USERS):
            for user in users:
                if text := await _describe(store, user.user_id, options):
                    write_file(options.output / file_name(user.user_id), text)
                    files += 1
            after = users[-1].position
    return files


async def _describe(store: "MemoryStore", user_id: str, options: argparse.Namespace) -> str:
    """The pages about a user: that of one agent, or those of all."""
    agents = [options.agent] if options.agent else await _agents_of(store, user_id)
    pages = [await store.page(each, user_id, budget=options.budget, as_of=options.as_of) for each in agents]
    known = [page for page in pages if page.text]
    return known[0].text if len(known) == 1 else "\n".join(map(_with_agent, known))


async def _agents_of(store: "MemoryStore", user_id: str) -> list[str]:
    agents: list[str] = []
    after = None
    while memories := await store.list_memories(user_id=user_id, after=after):
        agents += [memory.agent_id for memory in memories]
        after = memories[-1].memory_id
    return sorted(agents)


def _with_agent(page: "UserPage") -> str:
    from ..strategies.summaries.escaping import escape_markdown

    title, _, rest = page.text.partition("\n")
    return f"{title}, with the agent {escape_markdown(page.agent_id)}\n{rest}"
