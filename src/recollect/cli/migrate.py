"""`recollect migrate`: the schema of a database server, brought to the newest revision."""

import argparse
from pathlib import Path

from .configuration import configured_url
from .output import tell_json
from .parsing import Commands, add_command, add_json


def add_migrate_parser(commands: Commands) -> None:
    """Add the command to the others."""
    migrate = add_command(
        commands,
        "migrate",
        "bring a database server's schema to the newest revision",
        "  recollect migrate postgresql://recollect@db/recollect\n"
        "  RECOLLECT_URL=postgresql://recollect@db/recollect recollect migrate\n",
        _migrate,
    )
    migrate.add_argument("url", nargs="?", help="such as postgresql://user@host/name; else as configured")
    migrate.add_argument("--config", type=Path, metavar="FILE", help="a TOML file; else RECOLLECT_CONFIG")
    add_json(migrate)


def _migrate(options: argparse.Namespace) -> int:
    import asyncio

    from ..migrations import migrate

    url = options.url or configured_url(options.config)
    if not url:
        raise ValueError("migrate needs the URL of a database, or RECOLLECT_URL in the environment")
    if url.startswith("sqlite") or ("://" not in url and url.endswith(".db")):
        raise ValueError("SQLite files migrate by themselves when they are opened")
    before, after = asyncio.run(migrate(url))
    if options.json:
        tell_json({"before": before, "after": after})
    else:
        print(f"already at {after}" if before == after else f"migrated from {before or 'nothing'} to {after}")
    return 0
