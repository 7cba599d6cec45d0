"""The pages of the documentation, and how their examples run."""

import ast
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = [ROOT / "docs" / "how-to" / f"use-with-{name}.md" for name in ("crewai", "strands")]
"""Pages whose examples run in another environment; see `tests/mcp1`."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def run_blocks(page: Path) -> None:
    """Run the Python blocks of a page one after another, as one program that may await."""
    names: dict[str, object] = {"__name__": "documentation"}
    for block in BLOCK.findall(page.read_text()):
        code = compile(block, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
