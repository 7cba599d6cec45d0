"""Imports transcripts: all of a program, or one that a hook names; again only those that have changed."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from ..memory.store import MemoryStore
from ..moving.importer import Importer
from ..moving.kinds import ReadOptions
from ..moving.records import ImportReport, Record, Skipped, stable_id
from ..sql.urls import sqlite_path
from .learner import is_of_learner
from .projects import agent_of, is_within
from .readers.claude_code import ClaudeCodeReader
from .readers.codex import CodexReader
from .readers.gemini import GeminiReader
from .records import Recorder
from .state import CaptureState
from .transcript import About, Reader, Step
from .work import WorkState, sentence_of

LONGEST_LINE = 32_000_000
"""The most bytes of one record. A longer one is counted, and not read."""
_CHUNK = 1 << 20
_MOST_PROBLEMS = 10_000  # damaged lines, after which the rest of a file is not read
_UNFINISHED = "unfinished last lines, left for the next time"


@dataclass(frozen=True)
class Program:
    """A coding agent whose transcripts are read."""

    name: str
    variable: str | None
    """A variable with another folder than the usual one."""
    folder: str
    """Below the home folder."""
    inside: str
    """The folder of the transcripts in that folder."""
    pattern: str
    reader: Callable[[Path], Reader]

    def root(self) -> Path:
        """The folder of the transcripts of the user."""
        given = os.environ.get(self.variable) if self.variable else None
        return (Path(given) if given else Path.home() / self.folder) / self.inside

    def files(self, root: Path) -> list[tuple[Path, tuple[int, int]]]:
        """The transcripts with their stamps, the oldest first."""
        paths = [root] if root.is_file() else root.glob(self.pattern)
        found = [(path, stamp) for path in paths if (stamp := _stamp(path))]
        return sorted(found, key=lambda each: (each[1][1], each[0]))


def _claude(path: Path) -> Reader:
    return ClaudeCodeReader(is_subagent=path.name.startswith("agent-"))


def _gemini(path: Path) -> Reader:
    root = path.parent.parent / ".project_root"
    return GeminiReader(root.read_text("utf-8").strip() if root.is_file() else None)


PROGRAMS = {
    each.name: each
    for each in (
        Program("claude-code", "CLAUDE_CONFIG_DIR", ".claude", "projects", "**/*.jsonl", _claude),
        Program("codex", "CODEX_HOME", ".codex", "sessions", "**/rollout-*.jsonl", lambda _: CodexReader()),
        Program("gemini", None, ".gemini", "tmp", "*/chats/session-*.jsonl", _gemini),
    )
}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:  # it was removed meanwhile
        return None
    return found.st_size, found.st_mtime_ns


@dataclass
class Transcript:
    """One file while it is read: its steps, what it says about itself, and the state of its work."""

    path: Path
    reader: Reader
    problems: list[Skipped] = field(default_factory=list)
    work: WorkState = field(default_factory=WorkState)
    has_side: bool = False

    @property
    def about(self) -> About:
        """What it says about itself, as far as it is read."""
        return self.reader.about

    def steps(self, *, is_side: bool = False) -> Iterator[Step]:
        """Its steps: those of the agent, or those of subagents in the same file."""
        for where, record in self._records():
            try:
                for step in self.reader.read(record):
                    self.has_side = self.has_side or step.is_side
                    if step.is_side == is_side:
                        yield self.work.add(step)
            except (KeyError, TypeError, ValueError) as error:
                words = f"its {error} is missing" if isinstance(error, KeyError) else str(error)
                self.problems.append(Skipped(where, words))

    def _records(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for number, line in enumerate(read_lines(self.path), 1):
            where = f"{self.path.name}, line {number}"
            if len(self.problems) >= _MOST_PROBLEMS:
                self.problems.append(Skipped(where, "too many damaged lines: the rest is not read"))
                return
            if line is None:
                self.problems.append(Skipped(where, f"it is longer than {LONGEST_LINE:,} bytes"))
            elif not line.endswith(b"\n") and not _is_object(line):
                self.problems.append(Skipped(where, _UNFINISHED, is_lost=False))
            elif record := _is_object(line):
                yield where, record
            elif line.strip():
                self.problems.append(Skipped(where, "it is not a JSON object"))


def _is_object(line: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_lines(path: Path) -> Iterator[bytes | None]:
    """The lines of a file; `None` in place of one that is too long. No more than one is in memory."""
    with path.open("rb", buffering=_CHUNK) as file:
        while line := file.readline(LONGEST_LINE):
            if len(line) < LONGEST_LINE or line.endswith(b"\n"):
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = file.readline(_CHUNK)
            yield None


class TranscriptImporter:
    """Imports transcripts into a store. Twice is once: ids are stable, and what is stored is skipped."""

    def __init__(
        self,
        store: MemoryStore,
        options: ReadOptions,
        state: CaptureState,
        place: str,
        *,
        learn: bool = True,
        excluded: Iterable[str] = (),
    ) -> None:
        self.report = ImportReport()
        self._store = store
        self._options = options
        self._state = state
        self._learn = learn
        self._excluded = list(excluded)
        self._place = place

    async def import_all(self, program: Program, root: Path, *, again: bool = False) -> int:
        """Import the transcripts of a program that changed since they were read, and count them."""
        changed = 0
        for path, stamp in program.files(root):
            if again or not self._state.is_read(self._place, path, stamp):
                await self._import_if_readable(program, path)
                changed += 1
        return changed

    async def _import_if_readable(self, program: Program, path: Path) -> None:
        try:
            await self.import_file(program, path)
        except OSError as error:
            self.report.skip(Skipped(path.name, f"it cannot be read ({type(error).__name__})"))

    async def import_file(self, program: Program, path: Path) -> Transcript:
        """Import one transcript, and remember commands that worked in two sessions."""
        stamp = _stamp(path)
        transcript = Transcript(path, program.reader(path))
        importer = Importer(self._store, learn=self._learn)
        await importer.run(self._records(transcript))
        if transcript.has_side:
            side = Transcript(path, program.reader(path))
            recorder = Recorder(side.about, self._options, str(path.name), is_side=True)
            await importer.run(recorder.record(side.steps(is_side=True)))
        await self._remember_commands(importer, transcript)
        self.report.merge(importer.report)
        if stamp:
            self._state.note_read(self._place, path, stamp)
        return transcript

    def _records(self, transcript: Transcript) -> Iterator[Record | Skipped]:
        recorder = Recorder(transcript.about, self._options, transcript.path.name)
        records = recorder.record(transcript.steps())
        first = [*islice(records, 2)]  # the session, and its first items
        if reason := self._refuse(transcript.about, first):
            transcript.work, transcript.has_side = WorkState(), False
            yield Skipped(transcript.path.name, reason, is_lost=False)
            return
        yield from chain(first, records)
        yield from transcript.problems
        for kind, count in transcript.about.unknown.items():
            reason = f"records of the unknown type {kind!r}"
            yield from [Skipped(transcript.path.name, reason, is_lost=False)] * count

    def _refuse(self, about: About, first: Iterable[Record | Skipped]) -> str | None:
        """Why a transcript is not imported, by its first records; `None` if it is."""
        if is_within(about.cwd, self._excluded):
            return "transcripts of excluded projects"
        records = (each for each in first if isinstance(each, Record) and each.kind == "items")
        if any(is_of_learner(each.data["items"]) for each in records):
            return "runs of our own learner"
        return None

    async def _remember_commands(self, importer: Importer, transcript: Transcript) -> None:
        about = transcript.about
        project = self._options.agent_id or agent_of(about.cwd, about.remote)
        session = about.parent or about.session_id or transcript.path.name
        owner = f"{self._place} {self._options.tenant} {self._options.user_id} {project}"
        found = self._state.note_commands(owner, session, transcript.work.commands)
        await importer.run([self._entry(project, command) for command in found])
        self._state.note_told(owner, found)

    def _entry(self, project: str, command: str) -> Record:
        tenant, user = self._options.tenant, self._options.user_id
        text = sentence_of(command)
        data = {
            "content_id": stable_id(tenant, user, project, "command", command),
            "user_id": user,
            "agent_id": project,
            "text": text,
            "type": "profile",
            "data": {"source": "capture", "command": command},
        }
        return Record("entries", data, "a command")


def place_of(url: str) -> str:
    """A name for a database: another file at the same path has another name."""
    path = sqlite_path(url)
    inode = os.stat(path).st_ino if path and os.path.exists(path) else 0
    return f"{stable_id(url)}/{inode}"


async def follow(
    importer: TranscriptImporter, program: Program, root: Path, pause: Callable[[], Any]
) -> None:
    """Import what changes, until cancelled. `pause` waits between two looks."""
    while True:
        await pause()
        await importer.import_all(program, root)
