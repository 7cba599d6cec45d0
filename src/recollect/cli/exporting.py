"""`recollect export --all` and `--markdown`."""

import argparse
import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TextIO

from ..private_files import replace_privately
from .arguments import raise_usage_error
from .database import open_store, resolve_user
from .output import plural, print_note, progress
from .threads import export_threads

_PAGE = 200  # users


def export_tenant(options: argparse.Namespace, file: TextIO) -> int:
    """Write everything of a tenant, or of one agent, as JSON Lines."""
    lines = asyncio.run(_write_tenant(options, file))
    where = f" to {options.output}" if options.output else ""
    print_note(f"exported {plural(lines - 1, 'record')}{where}")
    return 0


async def _write_tenant(options: argparse.Namespace, file: TextIO) -> int:
    lines = 0
    with progress("exporting") as shown:
        async for line in _tenant_lines(options):
            file.write(json.dumps(line) + "\n")
            lines += 1
            shown.advance()
    return lines


async def _tenant_lines(options: argparse.Namespace) -> AsyncIterator[dict[str, Any]]:
    async with open_store(options) as store:
        async for line in store.export_tenant_lines(agent_id=options.agent):
            yield line
    async for thread in export_threads(options):
        yield {"kind": "threads", "data": thread}


def export_markdown(options: argparse.Namespace) -> int:
    """Write a readable text: of one user, or of each user as a file of a folder."""
    if options.all and options.output is None:
        raise_usage_error("--all --markdown writes a file for each user: pass --output FOLDER")
    if not options.all:
        resolve_user(options)
    count = asyncio.run(_write_markdown(options))
    if options.output is not None:
        print_note(f"wrote {plural(count, 'file')} to {options.output}")
    return 0


async def _write_markdown(options: argparse.Namespace) -> int:
    from ..moving.markdown import describe_user

    async with open_store(options) as store:
        if not options.all:
            text = "".join(
                [part async for part in describe_user(store, resolve_user(options), options.agent)]
            )
            if options.output is None:
                print(text, end="")
            else:
                write_file(options.output, text)
            return 1
        count, after = 0, None
        while page := await store.list_users(after=after, limit=_PAGE):
            for user in page:
                text = "".join([part async for part in describe_user(store, user.user_id, options.agent)])
                write_file(options.output / file_name(user.user_id), text)
                count += 1
            after = page[-1].position
        return count


def write_file(path: Path, text: str) -> None:
    """Write a private file, which appears complete or not at all."""
    with replace_privately(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def file_name(user_id: str) -> str:
    """A name that every file system allows. Ids that look alike in it differ in their hashes."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", user_id).strip(".-")[:60]
    digest = hashlib.sha256(user_id.encode()).hexdigest()[:8]
    # Some file systems do not tell upper case from lower case.
    return f"{plain}.md" if plain == user_id == user_id.lower() else f"{plain or 'user'}-{digest}.md"
