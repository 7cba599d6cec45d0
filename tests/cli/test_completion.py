"""`recollect completion`, tried with a real bash; zsh and fish, which not all have, were tried by hand."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def script(run: Run, folder: Path) -> Path:
    path = folder / "completion.bash"
    path.write_text(run("completion", "bash").out, "utf-8")
    return path


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    line = " ".join(f"'{word}'" for word in words)
    ask = (
        f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _recollect;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    bash = shutil.which("bash")
    assert bash is not None
    ended = subprocess.run([bash, "-uc", ask], capture_output=True, text=True, check=True)
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("recollect se", ["serve", "sessions"]),
        ("recollect sessions ", ["list", "show", "delete", "--help"]),
        ("recollect sessions show --un", ["--unfold"]),
        ("recollect sessions show x --un", ["--unfold"]),
        ("recollect memory show --type ", ["profile", "event", "mind", "instruction"]),
        ("recollect memory show --type e", ["event"]),
        ("recollect completion ", ["bash", "zsh", "fish", "--help"]),
        ("recollect export --output ", []),
        ("recollect nonsense --x", []),
    ],
)
def test_bash_is_offered_what_fits(script: Path, words: str, offered: list[str]) -> None:
    assert completed(script, *words.split(" ")) == offered


def test_bash_is_told_to_use_it(script: Path) -> None:
    ended = subprocess.run(
        ["bash", "-c", f"source {script}; complete -p recollect"], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "complete -o default -F _recollect recollect\n"


def test_zsh_completes_as_bash_does(run: Run, script: Path) -> None:
    said = run("completion", "zsh").out
    assert said.startswith("#compdef recollect\n")
    assert "bashcompinit" in said
    assert said.endswith(script.read_text("utf-8").partition("\n")[2])


def test_zsh_keeps_its_own_names_and_gets_numbers_for_offsets(run: Run) -> None:
    """What it calls `path` is where commands are found, and what is no number after a colon is a modifier."""
    said = run("completion", "zsh").out
    (declared,) = re.findall(r"^ +local (.+)$", said, re.MULTILINE)
    names = {word.partition("=")[0] for word in declared.split()}
    assert names & {"path", "words", "status", "argv", "prompt", "options", "commands"} == set()
    assert set(re.findall(r"(\w+)=", said)) - {"COMPREPLY"} <= names
    assert re.findall(r"\[@\]:\w*[A-Za-z]|\[@\]:\d+:[A-Za-z]", said) == []


def test_fish_is_told_of_commands_options_and_values(run: Run) -> None:
    lines = run("completion", "fish").out.splitlines()
    assert any(line.endswith("-a sessions") for line in lines)
    (kinds,) = [line for line in lines if "from memory" in line and "-l type" in line and "from show" in line]
    assert "-a 'profile event mind instruction'" in kinds
    assert any("from completion" in line and line.endswith("-a 'bash zsh fish'") for line in lines)
    assert any("from export" in line and "-l output -r -d" in line for line in lines)
