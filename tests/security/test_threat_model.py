"""Every line of the threat model names a test, and every test that it names exists."""

import ast
import re
from pathlib import Path

TREE = Path(__file__).parents[2]
PAGE = TREE / "docs" / "explanation" / "threat-model.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def lines() -> list[list[str]]:
    """The lines of the tables, by their columns, without heads."""
    rows = [
        line.strip("|").split("|") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")
    ]
    told = [[cell.strip() for cell in row] for row in rows]
    return [row for row in told if row[0] != "attack" and not row[0].startswith("---")]


def named_in(path: str) -> set[str]:
    tree = ast.parse((TREE / path).read_text("utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_line_says_what_stops_it_and_names_a_test() -> None:
    assert len(lines()) > 30
    assert [row[0] for row in lines() if len(row) != 4 or not row[1] or not NAMED.search(row[2])] == []


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGE.read_text("utf-8"))
    assert [f"{path}::{name}" for path, name in named if name not in named_in(path)] == []


def test_no_test_is_named_in_another_form() -> None:
    assert PAGE.read_text("utf-8").count(".py::") == len(NAMED.findall(PAGE.read_text("utf-8")))


def test_every_test_of_this_folder_about_a_threat_is_named() -> None:
    named = {path for path, _ in NAMED.findall(PAGE.read_text("utf-8"))}
    here = {str(file.relative_to(TREE)) for file in Path(__file__).parent.glob("test_*.py")}
    assert here - named == {str(Path(__file__).relative_to(TREE))}
