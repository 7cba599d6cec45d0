"""The pages that tell of commands: they are commands of ours."""

import re
import shlex
from pathlib import Path

import pytest

from recollect.cli import _parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^(?: {4})?(?:\.venv/bin/)?recollect ([a-z].*)$", re.MULTILINE)
TOLD = {page: COMMAND.findall(page.read_text("utf-8")) for page in PAGES}


@pytest.mark.parametrize("page", [page for page in PAGES if TOLD[page]], ids=lambda page: page.stem)
def test_its_commands_are_commands_of_ours(page: Path) -> None:
    parser = _parser()
    for command in TOLD[page]:
        alone = (
            command.partition("  ")[0].partition(" > ")[0].removesuffix(" &")
        )  # what it does may stand beside
        parser.parse_args(shlex.split(alone, comments=True))


def test_there_are_many_of_them() -> None:
    assert sum(map(len, TOLD.values())) > 40
