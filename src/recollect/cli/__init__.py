"""The command line: `recollect COMMAND`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import RecollectError
from .bench import add_bench_parser
from .configuration import configured_url
from .keys import add_keys_parser
from .mcp import add_mcp_parser
from .serve import add_serve_parser
from .worker import add_worker_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 for success, 1 for an error that is told, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (RecollectError, ValueError) as error:
        print(f"recollect: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="recollect", description="The memory layer for AI agents.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo", help="an agent that remembers, on this machine, with no key and no server"
    )
    demo.set_defaults(run=_demo)
    add_serve_parser(commands)
    add_keys_parser(commands)
    migrate = commands.add_parser("migrate", help="bring a database server's schema to the newest revision")
    migrate.add_argument("url", nargs="?", help="such as postgresql://user@host/name; else as configured")
    migrate.add_argument("--config", type=Path, metavar="FILE", help="a TOML file; else RECOLLECT_CONFIG")
    migrate.set_defaults(run=_migrate)
    add_worker_parser(commands)
    add_bench_parser(commands)
    add_mcp_parser(commands)
    return parser


def _migrate(options: argparse.Namespace) -> int:
    import asyncio

    from ..migrations import migrate

    url = options.url or configured_url(options.config)
    if not url:
        raise ValueError("migrate needs the URL of a database, or RECOLLECT_URL in the environment")
    if url.startswith("sqlite") or ("://" not in url and url.endswith(".db")):
        raise ValueError("SQLite files migrate by themselves when they are opened")
    before, after = asyncio.run(migrate(url))
    print(f"already at {after}" if before == after else f"migrated from {before or 'nothing'} to {after}")
    return 0


def _demo(_: argparse.Namespace) -> int:
    from .demo import run_demo

    return run_demo()
