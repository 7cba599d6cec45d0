"""The command line: `recollect COMMAND`."""

import argparse
import sys
from collections.abc import Sequence

from ..errors import RecollectError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 for success, 1 for an error that is told, 2 for wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except RecollectError as error:
        print(f"recollect: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="recollect", description="The memory layer for AI agents.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo", help="an agent that remembers, on this machine, with no key and no server"
    )
    demo.set_defaults(run=_demo)
    return parser


def _demo(_: argparse.Namespace) -> int:
    from .demo import run_demo

    return run_demo()
