"""What is stored cannot act on the terminal of whoever looks at it, whichever command shows it."""

import asyncio
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from recollect import SQLiteSession
from recollect.cli import main
from recollect.memory.store import MemoryStore
from recollect.server.access.keys import KeyStore
from recollect.sessions.protocol import SessionMetadata

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J\x1b[1;1H"
IN_ONE = "\x9b31m"
TURNED = "\u202egnp.exe"
HOSTILE = f"I live in Lisbon {TITLE}{CLEAR}{IN_ONE}{TURNED}\rover\x08\x7f."
ACTING = {"Cc", "Cf", "Cs"}
USER, AGENT = f"ada{CLEAR}", f"assistant{TITLE}"
OWNER = ("--user", USER, "--agent", AGENT)


async def fill(database: Path) -> dict[str, str]:
    """Put it wherever there is room; the ids that commands are asked about."""
    async with SQLiteSession(f"session{CLEAR}", database) as session:
        call = {"type": "function_call", "call_id": "c", "name": f"tool{TITLE}", "arguments": HOSTILE}
        output = {"type": "function_call_output", "call_id": "c", "output": HOSTILE}
        await session.add_items([{"role": "user", "content": HOSTILE}, call, output])
        await session.set_metadata(SessionMetadata(USER, AGENT, HOSTILE, {"note": HOSTILE}))
    async with KeyStore(database) as keys:
        await keys.create(f"tenant{TITLE}", "read", name=f"name{CLEAR}")
    async with MemoryStore(database, workers=1, embedder=None) as store:
        await store.record_conversation(AGENT, USER, [{"role": "user", "content": HOSTILE}])
        await store.drain(60)
        entry = await store.add_entry(AGENT, USER, "profile", HOSTILE)
        (run,) = await store.list_runs(limit=1)
        return {"entry": entry.content_id, "run": run.run_id}


def commands(ids: dict[str, str]) -> list[Sequence[str]]:
    return [
        ("sessions", "list"),
        ("sessions", "show", f"session{CLEAR}", "--unfold"),
        ("sessions", "show", HOSTILE),
        ("memory", "list"),
        ("memory", "show", *OWNER),
        ("memory", "history", ids["entry"]),
        ("memory", "why", ids["entry"]),
        ("memory", "why", HOSTILE),
        ("recall", "Lisbon", *OWNER, "--explain"),
        ("remember", HOSTILE, *OWNER),
        ("runs", "list"),
        ("runs", "show", ids["run"]),
        ("runs", "show", HOSTILE),
        ("keys", "list"),
        ("doctor",),
        ("export", "--user", USER),
        ("memory", "show", *OWNER, "--json"),
        ("memory", "list", "--url", f"postgresql://{TITLE}@127.0.0.1:9/x"),
        ("forget", HOSTILE),
        ("import", HOSTILE),
        ("erase", *OWNER, "--yes"),
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_URL", str(tmp_path / "recollect.db"))
    monkeypatch.setenv("RECOLLECT_MEMORY__EMBEDDER", "none")
    return tmp_path / "recollect.db"


def test_nothing_that_is_stored_or_given_acts_on_a_terminal(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = asyncio.run(fill(here))
    shown = ""
    for command in commands(ids):
        try:
            main(command)
        except SystemExit:
            assert command[0] in ("forget", "import"), command
        said = capsys.readouterr()
        acting = {
            each for each in said.out + said.err if unicodedata.category(each) in ACTING and each != "\n"
        }
        assert acting == set(), command
        shown += said.out
    assert "\\x1b[2J" in shown, "it is there, and is shown as what it is"
