"""Wrong usage says what would be right; every command has help, examples and a place in the reference."""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.cli import COMMANDS, _parser, main
from recollect.cli.arguments import option_names, subcommands_of, walk
from recollect.cli.reference import page

from .conftest import Run

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
OF_THE_SPECIFICATION = (
    "serve demo sessions memory remember recall forget import export erase migrate backup keys runs worker"
    " bench doctor mcp"
)
ALL = _parser()
PARSERS = {path: parser for path, parser in walk(ALL) if path}
LEAVES = {path: parser for path, parser in PARSERS.items() if not subcommands_of(parser)}
WITHOUT_DATA = {"demo", "serve", "mcp", "completion"}  # they print nothing that a program would read


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ("sesions list", "unknown value 'sesions'; did you mean sessions?"),
        ("sessions lst", "unknown value 'lst'; did you mean list?"),
        ("sessions list --jsno", "unknown option '--jsno'; did you mean --json?"),
        ("sessions list --jso=1", "unknown option '--jso'; did you mean --json?"),
        ("memory show --type evnt", "unknown value 'evnt'; did you mean event?"),
        ("memory show --type xyz", "use one of profile, event, mind"),
        ("recall where is she", "'is' is an unexpected argument; quote text that contains spaces"),
        ("runs list --limit 0", "must be a whole number of at least 1"),
        ("runs list --limit many", "must be a whole number of at least 1"),
        ("runs retry", "pass a run id, or --failed"),
        ("runs retry abc --failed", "pass a run id, or --failed"),
        ("recall something", "no user given: pass --user"),
        ("erase", "no user given: pass --user"),
        ("sessions list --js", "unknown option '--js'"),
        ("completion tcsh", "use one of bash, zsh, fish"),
        ("memory list --url :memory:", "must be a file or a server"),
    ],
)
def test_wrong_usage_says_what_would_be_right(run: Run, arguments: str, hint: str) -> None:
    ended = run(*arguments.split())
    assert (ended.code, ended.out) == (2, "")
    assert hint in ended.told


def test_a_wrong_word_cannot_act_on_the_terminal(run: Run) -> None:
    ended = run("sessions", "list", "--\x1b[31mred")
    assert ended.code == 2
    assert "\x1b" not in ended.told


def test_all_commands_of_the_specification_are_there() -> None:
    assert set(OF_THE_SPECIFICATION.split()) <= set(COMMANDS)


def test_what_the_help_of_all_says_is_what_each_says_of_itself() -> None:
    assert ALL.format_help() == _parser("none of them").format_help()


@pytest.mark.parametrize("path", [path for path in PARSERS if path != ("completion",)], ids=" ".join)
def test_the_help_of_each_command_has_examples_that_it_takes(path: tuple[str, ...]) -> None:
    assert PARSERS[path].description
    examples = (PARSERS[path].epilog or "").removeprefix("examples:\n").splitlines()
    told = [line.strip().partition("  ")[0].partition(" > ")[0] for line in examples]
    commands = [shlex.split(line)[1:] for line in told if line.startswith("recollect ")]
    assert commands
    for words in commands:
        assert tuple(words[: len(path)]) == path
        ALL.parse_args(words)


@pytest.mark.parametrize("path", [path for path in LEAVES if path[0] not in WITHOUT_DATA], ids=" ".join)
def test_each_command_that_tells_something_can_tell_it_as_json(path: tuple[str, ...]) -> None:
    assert "--json" in option_names(LEAVES[path])


def test_every_command_and_option_stands_in_the_reference() -> None:
    sections = PAGE.read_text("utf-8").split("\n#")
    for path, parser in PARSERS.items():
        heading = f" `recollect {' '.join(path)}`"
        found = [each for each in sections if each.splitlines()[0].endswith(heading)]
        assert len(found) == 1, path
        told = [name for name in option_names(parser) if name != "--help"]
        assert [name for name in told if f"| `{name}" not in found[0]] == []


def test_the_reference_is_as_the_parser_makes_it() -> None:
    assert PAGE.read_text("utf-8") == page(), "make it again: python -m recollect.cli.reference"


def test_help_loads_no_more_than_it_needs() -> None:
    script = (
        "import sys; from recollect.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(ended.stderr.split()) & {"asyncio", "sqlite3", "numpy", "pydantic", "json", "pathlib"}


def test_a_parser_of_others_takes_our_commands() -> None:
    from recollect.cli.services import add_worker_parser

    parser = argparse.ArgumentParser()
    add_worker_parser(parser.add_subparsers())
    assert parser.parse_args(["worker", "--until-idle"]).until_idle


def test_bench_without_the_benchmarks_names_the_source_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in an installed wheel, which does not contain the benchmarks."""
    for name in [each for each in sys.modules if each.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    elsewhere = [each for each in sys.path if not (Path(each or ".") / "benchmarks").is_dir()]
    monkeypatch.setattr("sys.path", elsewhere)
    monkeypatch.setattr("recollect.cli.bench._SOURCES", tmp_path)
    assert main(["bench", "vectors"]) == 1
    assert "Run this command from a source checkout" in capsys.readouterr().err
