"""`recollect page`."""

import asyncio
import stat
from pathlib import Path

import pytest

from recollect import MemoryStore

from .conftest import Run


def add(user: str, text: str, agent: str = "assistant") -> None:
    async def write() -> None:
        async with MemoryStore("recollect.db", embedder=None, workers=0) as store:
            await store.add_entry(agent, user, "profile", text)

    asyncio.run(write())


def test_a_page_is_printed_as_markdown_as_a_prompt_and_as_json(run: Run) -> None:
    add("ada", "The user lives in Lisbon.")
    shown = run("page", "--user", "ada")
    assert (shown.code, shown.told) == (0, "")
    assert shown.out == "# ada\n\n## Who they are\n\n- The user lives in Lisbon. [m1]\n"
    document = run("page", "--user", "ada", "--json").json
    assert (document["text"], document["user_id"], document["left_out"]) == (shown.out, "ada", 0)
    assert run("page", "--user", "ada", "--prompt").out == document["prompt"] + "\n"


def test_a_page_of_the_past_its_changes_and_its_versions(run: Run) -> None:
    add("ada", "The user lives in Lisbon.")
    past = run("page", "--user", "ada", "--as-of", "2020-01-01")
    assert (past.code, past.out) == (0, "")
    assert "nothing is known" in past.told
    assert run("page", "--user", "ada", "--since", "2020-01-01").out == "+ The user lives in Lisbon.\n"
    back = run("page", "--user", "ada", "--since", "2999-01-01", "--as-of", "2020-01-01")
    assert back.out == "- The user lives in Lisbon.\n"
    changes = run("page", "--user", "ada", "--since", "2020-01-01", "--json").json
    assert ([line["mark"] for line in changes["added"]], changes["removed"]) == (["m1"], [])
    assert "no changes" in run("page", "--user", "ada", "--since", "2999-01-01").told
    add("ada", "The user plays tennis.")
    versions = run("page", "--user", "ada", "--history", "--json").json
    assert [len(version["lines"]) for version in versions] == [2, 1]
    assert versions[0]["version"] in run("page", "--user", "ada", "--history").out


def test_entries_that_are_left_out_are_counted_on_standard_error(run: Run) -> None:
    for number in range(30):
        add("ada", f"The user knows number {number}.")
    short = run("page", "--user", "ada", "--budget", "120")
    lines = short.out.count("\n- ")
    assert 0 < lines < 30
    assert f"{30 - lines} entries left out" in short.told


def test_each_user_gets_a_private_file_with_a_safe_name(run: Run, folder: Path) -> None:
    for user in ("ada", "Ada", "../../etc/passwd", "a/b", "a\\b", "用户", ".", "nul\x1b[31m"):
        add(user, f"The user is called {user}.")
    add("ada", "The user likes tea.", agent="support")
    written = run("page", "--all", "--output", "people")
    assert (written.code, written.out) == (0, "")
    files = sorted((folder / "people").iterdir())
    assert len(files) == 8
    assert "wrote 8 files" in written.told
    assert len({file.name.lower() for file in files}) == 8
    assert all(file.name.isascii() and file.suffix == ".md" for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert not (folder.parent.parent / "etc").exists()
    both = (folder / "people" / "ada.md").read_text("utf-8")
    assert both.startswith("# ada, with the agent assistant\n")
    assert "# ada, with the agent support\n\n## Who they are\n\n- The user likes tea. [m1]\n" in both
    run("page", "--all", "--output", "of-support", "--agent", "support")
    assert [file.name for file in (folder / "of-support").iterdir()] == ["ada.md"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--all"],
        ["--user", "ada", "--output", "people"],
        ["--all", "--output", "people", "--user", "ada"],
        ["--all", "--output", "people", "--json"],
        ["--user", "ada", "--history", "--as-of", "2026-01-01"],
        ["--user", "ada", "--prompt", "--history"],
        ["--user", "ada", "--budget", "0"],
    ],
    ids=" ".join,
)
def test_arguments_that_do_not_fit_together_are_wrong_usage(run: Run, arguments: list[str]) -> None:
    add("ada", "The user lives in Lisbon.")
    assert run("page", *arguments).code == 2


def test_a_planted_text_reaches_the_terminal_escaped(run: Run) -> None:
    add("ada", "x\x1b[2J\u202e<script>alert(1)</script>\n# Heading")
    out = run("page", "--user", "ada").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\<script\\>" in out
    assert out.count("\n- ") == 1
