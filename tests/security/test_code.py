"""What our code never does: run what it reads, or have a shell run anything."""

import ast
from functools import cache
from pathlib import Path

import recollect

CODE = Path(recollect.__file__).parent
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "xml", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "compile", ".load_extension", ".enable_load_extension"}
BAD = "import pickle\nfrom yaml import load\nexec('x')\nconnection.load_extension('x')\nrun('ls', shell=True)"


def used_in(text: str) -> set[str]:
    """The modules that a text imports, what it calls, and by which keywords."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Call):
            found.add(
                node.func.id if isinstance(node.func, ast.Name) else f".{getattr(node.func, 'attr', '')}"
            )
            found |= {f"{keyword.arg}=" for keyword in node.keywords}
    return found


@cache
def used() -> dict[str, set[str]]:
    """The same of every file of ours."""
    return {str(file.relative_to(CODE)): used_in(file.read_text("utf-8")) for file in CODE.rglob("*.py")}


def files_with(names: set[str]) -> list[str]:
    return [file for file, found in used().items() if found & names]


def test_nothing_is_read_by_a_format_that_can_run_code() -> None:
    assert set(files_with(UNSAFE_MODULES)) == {
        # Knows one class, which is ours; `test_a_pickle_that_is_no_point_is_not_run` tries another.
        "moving/readers/mem0.py",
        # Only writes, to compare.
        "integrations/langgraph/known.py",
    }
    assert not {".load", ".loads"} & used()["integrations/langgraph/known.py"]


def test_no_text_is_run_as_code() -> None:
    assert files_with(UNSAFE_CALLS) == []


def test_no_shell_is_asked() -> None:
    assert "cli/maintenance.py" in files_with({"subprocess"})
    assert files_with({"shell=", ".system", ".popen"}) == []


def test_these_checks_see_what_they_look_for() -> None:
    assert used_in(BAD) >= {"pickle", "yaml", "exec", ".load_extension", "shell="}
