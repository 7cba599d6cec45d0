"""Documentation that cannot drift: examples are run, public names and commands are documented."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

from .documentation import BLOCK, ELSEWHERE, PAGES, ROOT, install_line, run_blocks
from .test_architecture import LAYERS, SOURCE

RUN_HERE = [page for page in PAGES if page not in ELSEWHERE]


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(
    page: Path, page_variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in page_variables.items():
        monkeypatch.setenv(name, value)
    run_blocks(page)


def test_there_are_examples() -> None:
    assert sum(len(BLOCK.findall(page.read_text())) for page in PAGES) > 15


def test_nothing_names_the_distribution_of_another_project() -> None:
    """On the package index `recollect` is not ours. `recollect-memory` is, and its import is `recollect`."""
    wrong = re.compile(
        r"""(?:pip|uv|pipx|uvx)\ [^`\n]*(?<![\w./-])recollect(?![\w./-])   # pip install recollect
          | (?<![\w./-])recollect\[                                          # recollect[agents]
          | \b(?:version|distribution|metadata)\(['"]recollect['"]\)         # version("recollect")
        """,
        re.VERBOSE,
    )
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    found = []
    for name in listed.stdout.split("\0"):
        file = ROOT / name
        is_ours = name not in ("", "CHANGELOG.md", "tests/test_docs.py") and "/vendor/" not in name
        if is_ours and file.is_file() and file.suffix not in (".png", ".gz", ".zip"):
            lines = file.read_text("utf-8", errors="replace").splitlines()
            found += [f"{name}:{number}" for number, line in enumerate(lines, 1) if wrong.search(line)]
    assert found == []


def test_the_readme_says_how_to_install() -> None:
    assert install_line(ROOT / "README.md").startswith("recollect-memory[")


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "reference" / "api.md").read_text()
    documented = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", reference))))
    assert set(recollect.__all__) - documented == set()


def test_every_command_is_in_the_reference() -> None:
    usage = subprocess.run(
        [sys.executable, "-m", "recollect", "--help"], capture_output=True, text=True, check=True
    ).stdout
    commands = re.findall(r"^    (\w+) ", usage, re.MULTILINE)
    reference = (ROOT / "docs" / "reference" / "command-line.md").read_text()
    assert commands
    assert all(f"`recollect {command}`" in reference for command in commands)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_list_of_pages_and_in_the_site() -> None:
    listed = (ROOT / "docs" / "README.md").read_text()
    site = (ROOT / "mkdocs.yml").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in PAGES[1:] if page.name != "README.md"]
    assert [page for page in pages if f"]({page})" not in listed] == []
    assert [page for page in pages if f": {page}\n" not in site] == []


def test_the_tree_of_the_architecture_page_exists_and_has_the_order_of_the_layers() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    tree = page.partition("src/recollect/\n")[2].partition("```")[0]
    parts: list[str] = []
    for line in tree.splitlines():
        names = re.findall(r"[\w.]+(?:/|\.py)(?=,|\s)", re.split(r" {2,}", line.strip())[0] + " ")
        is_top = line.startswith("  ") and not line.startswith("   ")
        parts += [name.removesuffix(".py").rstrip("/") for name in names] if is_top else []
        folder = SOURCE if is_top else SOURCE / parts[-1]
        assert names, line
        assert [name for name in names if not (folder / name).exists()] == []
    assert [*parts, "__main__"] == list(LAYERS)


def test_what_a_promise_is_tested_by_is_there() -> None:
    page = (ROOT / "docs" / "explanation" / "guarantees.md").read_text()
    named = re.findall(r"`(tests/\S+?\.py|)(?:::(\w+))?`", page)
    assert len(named) > 25
    file = ""
    for path, test in named:
        file = path or file  # a test alone is in the file that was named before it
        assert f"def {test}(" in (ROOT / file).read_text() if test else (ROOT / file).exists(), (file, test)


@pytest.mark.proof
def test_the_example_backend_fails_the_contract_where_the_page_says(tmp_path: Path) -> None:
    """The page on writing a backend says what its naive example gets wrong."""
    page = (ROOT / "docs" / "how-to" / "write-a-backend.md").read_text()
    (tmp_path / "test_example.py").write_text("\n".join(BLOCK.findall(page)))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    failed = {name.split("[")[0] for name in re.findall(r"^FAILED \S+::(\S+)", run.stdout, re.MULTILINE)}
    assert failed == {
        "test_gives_the_newest_within_a_limit_oldest_first",
        "test_nobody_shares_an_item_with_the_store",
        "test_what_is_not_a_list_is_refused",
        "test_what_is_not_json_is_refused_and_nothing_is_written",
    }, run.stdout


def test_the_demo_remembers_across_processes_and_says_what_to_try_next() -> None:
    demo = subprocess.run(
        [sys.executable, "-m", "recollect", "demo"], capture_output=True, text=True, check=True
    )
    assert "Process 2 starts; the session holds 6 items" in demo.stdout
    assert "you are Ada, and you live in Lisbon" in demo.stdout
    learned = demo.stdout.split("Learned about the user", 1)[1]
    assert "profile  The user lives in Lisbon." in learned
    assert 'because they said: "Hello! My name is Ada and I live in Lisbon."' in learned
    found = learned.split("an agent is given these lines", 1)[1]
    assert 'user: "I started a pottery class yesterday, and I love it."' in found.splitlines()[1]
    assert "What to try next" in found
    assert found.endswith("then open http://127.0.0.1:8765/\n")
    assert demo.stderr == ""
