"""The page on working from the terminal: its commands are commands of ours."""

import re
import shlex
from pathlib import Path

from recollect.cli import _parser

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "work-from-the-terminal.md"


def test_its_commands_are_commands_of_ours() -> None:
    commands = re.findall(r"^ {4}recollect (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) > 15
    parser = _parser()
    for command in commands:
        parser.parse_args(shlex.split(command))
