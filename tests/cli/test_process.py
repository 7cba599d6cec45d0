"""Commands as processes: pipes, terminals, signals and what is written where."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from recollect import SessionMetadata, SQLiteSession
from recollect.cli.output import display_width

from .conftest import run_process

COMMAND = [sys.executable, "-m", "recollect"]


@pytest.fixture
def sessions(folder: Path) -> None:
    async def fill() -> None:
        for number in range(3):
            async with SQLiteSession(f"session {number}", folder / "recollect.db") as session:
                await session.add_items([{"role": "user", "content": "hi"}])
                await session.set_metadata(SessionMetadata(title="长 title \x1b[31m" * 20))

    asyncio.run(fill())


def on_terminal(*arguments: str, answer: str = "", **variables: str) -> tuple[int, str]:
    """Run a command whose input, output and errors are a terminal; returns its code and what was seen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80", "NO_COLOR": ""} | variables,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    seen = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # so Linux tells of the end
            break
        if not some:
            break
        seen += some
    os.close(ours)
    return process.wait(), seen.decode()


@pytest.mark.usefixtures("sessions")
def test_a_terminal_gets_colours_and_lines_that_fit() -> None:
    code, seen = on_terminal("sessions", "list")
    assert code == 0
    assert seen.startswith("\x1b[1mSESSION")
    _, plain = on_terminal("sessions", "list", NO_COLOR="1")
    assert "\x1b" not in plain
    assert all(75 < display_width(line) <= 80 for line in plain.splitlines()[1:])


@pytest.mark.usefixtures("sessions")
def test_a_person_is_asked_and_sees_progress() -> None:
    code, seen = on_terminal("erase", "--user", "ada", answer="n\n")
    assert (code, "permanently? [y/N]" in seen, "nothing changed" in seen) == (1, True, True)
    code, seen = on_terminal("erase", "--user", "ada", answer="y\n")
    assert (code, "erasing …" in seen) == (0, True)


@pytest.mark.usefixtures("sessions")
def test_a_pipe_gets_no_colours_and_no_progress(folder: Path) -> None:
    listed = run_process("sessions", "list", "--limit", "3", TERM="xterm")
    assert (listed.code, listed.told) == (0, "")
    assert "\x1b" not in listed.out
    assert "…" not in listed.out
    backed_up = run_process("backup", "copy.db")
    assert (backed_up.code, backed_up.told) == (0, "")
    assert (folder / "copy.db").exists()


@pytest.mark.usefixtures("sessions")
def test_a_reader_who_goes_away_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as nobody:
        ended = subprocess.run(
            [*COMMAND, "sessions", "list", "--json"], stdout=nobody, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.usefixtures("sessions")
def test_exit_codes_mean_something() -> None:
    codes = [
        run_process(*arguments).code
        for arguments in (
            ("sessions", "list", "--json"),
            ("import", "missing.json"),
            ("sessions", "lst"),
            ("sessions", "show", "nobody's"),
        )
    ]
    assert codes == [0, 1, 2, 3]


def test_texts_go_through_any_encoding(folder: Path) -> None:
    items = [{"role": "user", "content": "我喜欢茶 \x1b"}]

    async def fill() -> None:
        async with SQLiteSession("tea", folder / "recollect.db") as session:
            await session.add_items(items)

    asyncio.run(fill())
    told = run_process("sessions", "show", "tea", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(told.out)["items"] == items
    shown = run_process("sessions", "show", "tea", PYTHONIOENCODING="ascii")
    assert (shown.code, shown.told) == (0, "")
    assert "\\u6211\\u559c" in shown.out
