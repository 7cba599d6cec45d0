"""Folders of their own for each test: the home folder, the folder of capture, and transcripts."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.capture.importing import PROGRAMS, TranscriptImporter, place_of
from recollect.capture.state import CaptureState
from recollect.memory.store import MemoryStore
from recollect.moving.kinds import ReadOptions

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder, without settings of whoever runs the tests."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "RECOLLECT_CAPTURE_HOME", "RECOLLECT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("RECOLLECT_USER", "ada")
    return folder


@pytest.fixture
def state(home: Path) -> Iterator[CaptureState]:
    """The notes of capture."""
    found = CaptureState(home / ".recollect/capture")
    yield found
    found.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MemoryStore]:
    """A store that learns by rule."""
    opened = MemoryStore(tmp_path / "memory.db", embedder=None)
    yield opened
    asyncio.run(opened.aclose())


@pytest.fixture
def importer(store: MemoryStore, state: CaptureState, tmp_path: Path) -> TranscriptImporter:
    """An importer into the store."""
    place = place_of(str(tmp_path / "memory.db"))
    return TranscriptImporter(store, ReadOptions("default", None, "ada"), state, place)


class Writer:
    """Writes a transcript of Claude Code, record by record."""

    def __init__(self, path: Path, cwd: str = "/home/ada/shop", session: str = "s1") -> None:
        self.path = path
        self._shared = {"sessionId": session, "cwd": cwd, "gitBranch": "main", "version": "2.1.0"}
        self._count = 0
        path.parent.mkdir(parents=True, exist_ok=True)

    def raw(self, text: str) -> "Writer":
        """Add bytes as they are."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)
        return self

    def record(self, kind: str, content: Any, **more: Any) -> "Writer":
        """Add a record."""
        self._count += 1
        time = f"2026-10-01T10:{self._count // 60:02d}:{self._count % 60:02d}.000Z"
        about = {**self._shared, "uuid": f"{self._shared['sessionId']}-{self._count}", "timestamp": time}
        message = {"role": kind, "content": content, "id": f"m{self._count}"}
        return self.raw(json.dumps({"type": kind, "message": message, **about, **more}) + "\n")

    def user(self, text: str, **more: Any) -> "Writer":
        """Add words of the user."""
        return self.record("user", text, **more)

    def agent(self, text: str, **more: Any) -> "Writer":
        """Add words of the agent."""
        return self.record("assistant", [{"type": "text", "text": text}], **more)

    def call(self, name: str, given: dict[str, Any], output: str, *, is_error: bool = False) -> "Writer":
        """Add a call of a tool with its result."""
        id_ = f"{self._shared['sessionId']}-call-{self._count}"
        self.record("assistant", [{"type": "tool_use", "id": id_, "name": name, "input": given}])
        result = {"type": "tool_result", "tool_use_id": id_, "content": output, "is_error": is_error}
        return self.record("user", [result])


@pytest.fixture
def writer(home: Path) -> Writer:
    """A transcript in the folder of Claude Code."""
    return Writer(home / ".claude/projects/-home-ada-shop/s1.jsonl")


CLAUDE = PROGRAMS["claude-code"]
