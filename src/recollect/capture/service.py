"""What the daemon does with an event: answers from memory, and records in the background."""

import asyncio
import getpass
import hashlib
import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from ..memory.store import MemoryStore
from ..moving.kinds import ReadOptions
from .events import Event, parse_event
from .importing import PROGRAMS, Program, TranscriptImporter, place_of
from .masking import mask_text
from .projects import agent_of, is_within
from .readers.noted import NotedReader
from .settings import CaptureSettings
from .state import CaptureState
from .transcript import own_text
from .work import render_work

_logger = logging.getLogger(__name__)
_PAGE_TOKENS = 800
_RECALL_TOKENS = 600
_LEAST_PROMPT = 8  # characters of a prompt that is worth a search
_MOST_TRIES = 3


class HookService:
    """Answers and records the events of one user. `folder` is the folder of capture."""

    def __init__(
        self,
        store: MemoryStore,
        settings: CaptureSettings,
        state: CaptureState,
        folder: Path,
        answer_seconds: float,
    ) -> None:
        self._answer_seconds = answer_seconds
        self._store = store
        self._settings = settings
        self._state = state
        self._folder = folder
        self._user = settings.user or getpass.getuser()
        self._late: set[asyncio.Task[str]] = set()
        self._failed: dict[str, int] = {}
        self._read: dict[Path, Program] = {}

    async def warm_up(self) -> None:
        """Load what the first answer needs."""
        await self._store.recall("anything", self._settings.agent, self._user, budget=_RECALL_TOKENS)

    async def answer(self, event: Event) -> bytes:
        """What the hook of an event prints. A search that is late goes on, so the next finds its data."""
        if is_within(event.cwd, self._settings.excluded) or event.meaning not in ("start", "prompt"):
            return b""
        asking = asyncio.create_task(
            self._pages(event) if event.meaning == "start" else self._recalled(event)
        )
        self._late.add(asking)
        asking.add_done_callback(self._late.discard)
        done, _ = await asyncio.wait([asking], timeout=self._answer_seconds)
        if not done:
            return b""
        if _gives_work(event):
            self._state.note_given(event.session_id)
        return event.reply(asking.result())

    async def _pages(self, event: Event) -> str:
        """The pages of the user and of the project, and the state of the work after a compaction."""
        texts = [
            (await self._store.page(agent, self._user, budget=_PAGE_TOKENS)).prompt
            for agent in self._agents(event)
        ]
        return "\n\n".join([*filter(None, texts), *self._work(event)])

    async def _recalled(self, event: Event) -> str:
        """What the memories of the user and of the project have about a prompt, if anything."""
        texts = list(self._work(event))
        prompt = own_text(event.prompt)
        for agent in self._agents(event) if len(prompt) >= _LEAST_PROMPT else ():
            found = await self._store.recall(prompt[:2000], agent, self._user, budget=_RECALL_TOKENS)
            texts += [found.text] if found.is_found else []
        return "\n\n".join(texts)

    def _agents(self, event: Event) -> tuple[str, str]:
        return self._settings.agent, agent_of(event.cwd)

    def _work(self, event: Event) -> list[str]:
        """The state of the work that was noted before a compaction: at the first answer after it."""
        state = self._state.find_work(event.session_id) if _gives_work(event) else None
        return [render_work(state)] if state else []

    # --- recording ---

    def records(self, event: Event) -> bool:
        """Whether an event is to be recorded. Where there are no transcripts to read, prompts are."""
        if is_within(event.cwd, self._settings.excluded):
            return False
        if event.hooks.program is None:
            return bool(event.prompt or event.answer)
        return event.meaning in ("record", "compact") and event.transcript is not None

    async def deliver_spool(self) -> None:
        """Record the events in the spool, the oldest first. One that fails again and again is put aside."""
        spool = self._folder / "spool"
        for path in sorted((each for each in spool.glob("[!.]*") if each.is_file()), key=_order):
            try:
                event = parse_event(path.read_bytes())
                if self.records(event):
                    await self._record(event)
                path.unlink(missing_ok=True)
            except Exception as error:  # noqa: BLE001 - one event must not stop the others
                _logger.warning("an event was not recorded (%s)", type(error).__name__)
                self._put_aside(path, isinstance(error, ValueError))

    def _put_aside(self, path: Path, is_final: bool) -> None:
        self._failed[path.name] = self._failed.get(path.name, 0) + 1
        if is_final or self._failed[path.name] >= _MOST_TRIES:
            aside = path.parent / "failed"
            aside.mkdir(mode=0o700, exist_ok=True)
            path.rename(aside / path.name)

    async def _record(self, event: Event) -> None:
        if event.hooks.program is None:
            path = self._note(event)
            program = Program(event.agent, None, "", "", "", lambda _: NotedReader(event.agent))
        else:
            path, program = Path(event.transcript or ""), PROGRAMS[event.hooks.program]
        if not path.is_file():
            return
        self._read[path] = program
        subagents = path.with_suffix("") / "subagents"
        if subagents.is_dir():
            await self._importer().import_all(program, subagents)
        if event.meaning == "compact":
            transcript = await self._importer().import_file(program, path)
            self._state.store_work(event.session_id, transcript.work.to_dict())
        else:
            await self._importer().import_all(program, path)

    async def finish(self) -> None:
        """Read once more what was added to transcripts after their last event."""
        for path, program in self._read.items():
            if path.is_file():
                await self._importer().import_all(program, path)

    def _importer(self) -> TranscriptImporter:
        options = ReadOptions(self._settings.tenant, None, self._user)
        place = place_of(self._settings.url or "")
        return TranscriptImporter(self._store, options, self._state, place, excluded=self._settings.excluded)

    def _note(self, event: Event) -> Path:
        """Add an event to the transcript that we keep of a session, without secrets."""
        folder = self._folder / "noted"
        folder.mkdir(mode=0o700, exist_ok=True)
        name = hashlib.sha256(event.session_id.encode()).hexdigest()[:32]
        role, text = ("user", event.prompt) if event.prompt else ("assistant", event.answer)
        record = {
            "id": event.event_id,
            "session": event.session_id,
            "cwd": event.cwd,
            "role": role,
            "text": mask_text(text),
            "time": datetime.now(UTC).isoformat(),
        }
        path = folder / f"{event.agent}-{name}.jsonl"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, json.dumps(record).encode() + b"\n")
        finally:
            os.close(file)
        return path


def _gives_work(event: Event) -> bool:
    """Whether the agent gets back the state of its work here, if one was noted before a compaction."""
    is_told = event.meaning == "prompt" and event.hooks.is_told_at_prompt
    return is_told or event.is_after_compaction


def _order(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:  # it was delivered meanwhile
        return 0, path.name
