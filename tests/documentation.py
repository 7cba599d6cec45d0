"""The pages of the documentation, and how their examples run.

This file is also the program that runs one page in another environment: `python documentation.py PAGE`.
"""

import ast
import asyncio
import inspect
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = [ROOT / "docs" / "how-to" / f"use-with-{name}.md" for name in ("crewai", "strands")]
"""Pages whose examples run in another environment; see `tests/mcp1`."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL_LINE = re.compile(r"pip install ([^`\n]*recollect-memory[^`\n]*)")


def install_line(page: Path) -> str:
    """The packages that a page tells its reader to install: its first such line, else Recollect alone."""
    found = INSTALL_LINE.search(page.read_text("utf-8"))
    return " ".join(shlex.split(found[1], comments=True)) if found else "recollect-memory"


def run_blocks(page: Path) -> None:
    """Run the Python blocks of a page one after another, as `python -m asyncio` would."""
    names: dict[str, object] = {"__name__": "documentation"}
    with asyncio.Runner() as runner:
        text = page.read_text("utf-8")
        for block in BLOCK.finditer(text):
            at_its_line = "\n" * text.count("\n", 0, block.start(1)) + block[1]
            code = compile(at_its_line, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)
            if inspect.iscoroutine(result):
                runner.run(result)


if __name__ == "__main__":
    run_blocks(Path(sys.argv[1]))
