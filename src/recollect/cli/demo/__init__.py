"""`recollect demo`: how the demo is asked for."""

import argparse

from ..arguments import Commands, add_command


def add_demo_parser(commands: Commands) -> None:
    """Add the command to the others."""
    add_command(
        commands,
        "demo",
        "an agent that remembers, on this machine, with no key and no server",
        "  recollect demo\n",
        _demo,
    )


def _demo(_: argparse.Namespace) -> int:
    from .processes import run_demo

    return run_demo()
