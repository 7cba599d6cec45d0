"""`recollect demo`: an agent that remembers, with a scripted model."""

import argparse

from ..arguments import Commands, add_command


def add_demo_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    add_command(
        commands,
        "demo",
        "run an agent that remembers, locally, without a key or a server",
        "  recollect demo\n",
        _demo,
    )


def _demo(_: argparse.Namespace) -> int:
    from .processes import run_demo

    return run_demo()
