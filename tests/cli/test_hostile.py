"""Whatever is stored, and whoever stored it: no command lets it act on a terminal."""

import asyncio
import unicodedata
from pathlib import Path

import pytest

from recollect import SessionMetadata, SQLiteSession
from recollect.memory.store import MemoryStore
from recollect.server.access.keys import KeyStore

from .conftest import Run

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2066\r\x08\u2028evil"


@pytest.fixture
def everything_evil(folder: Path) -> dict[str, str]:
    """A database in which all that others may name or say is hostile; the ids of some of it."""
    path = folder / "recollect.db"

    async def fill() -> dict[str, str]:
        async with SQLiteSession(EVIL, path) as session:
            call = {"type": "function_call", "call_id": EVIL, "name": EVIL, "arguments": EVIL}
            output = {"type": "function_call_output", "call_id": EVIL, "output": EVIL}
            await session.add_items([{"role": "user", "content": EVIL}, call, output, {"type": EVIL}])
            await session.set_metadata(SessionMetadata(EVIL, EVIL, EVIL, {EVIL: EVIL}))
        async with MemoryStore(path, workers=1, embedder=None) as store:
            said = [{"role": "user", "content": f"I live in {EVIL}. I love {EVIL}."}]
            await store.record_conversation(EVIL, EVIL, said)
            await store.drain(60)
            entry = await store.add_entry(EVIL, EVIL, "profile", f"The user lives in {EVIL}.")
            (run, *_) = await store.list_runs()
        async with KeyStore(path) as keys:
            await keys.create("acme", "read", name=EVIL)
        return {"ENTRY": entry.content_id, "RUN": run.run_id}

    return asyncio.run(fill())


COMMANDS = """
sessions list
sessions show EVIL --unfold
sessions show EVILEVIL
memory list
memory show --user EVIL --agent EVIL
memory history ENTRY
memory why ENTRY
recall lives --user EVIL --agent EVIL --explain
remember EVIL --user EVIL --agent EVIL
runs list
runs show RUN
keys list
export --user EVIL
export --user EVIL --json
import EVIL
doctor --url EVIL
backup EVIL
forget ENTRY
sessions delete EVIL --yes
erase --user EVIL --yes
EVIL list
"""


def test_no_command_lets_it_act(run: Run, everything_evil: dict[str, str]) -> None:
    ids = {"EVIL": EVIL, "EVILEVIL": EVIL * 2, **everything_evil}
    for command in COMMANDS.strip().splitlines():
        ended = run(*(ids.get(word, word) for word in command.split()))
        said = ended.out + ended.told
        assert said, command
        acting = {each for each in said if unicodedata.category(each) in ("Cc", "Cf", "Zl")} - {"\n"}
        assert acting == set(), command
