"""The session store of the Claude Agent SDK on the databases of Recollect."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, cast

from claude_agent_sdk import fold_session_summary
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from ...items.originals import Original, originals_in
from ...sessions.protocol import Noted, Positioned, require_ability
from ..framework import Framework, FrameworkSession, FrameworkSessions, StoredKey
from .entries import items_of

_CLAUDE = Framework("claude-agent-sdk", items_of)
_SUMMARY = "claude_summary"  # the note with a summary, and the position up to which it was made


class TranscriptStore(SessionStore):
    """A `session_store` for `ClaudeAgentOptions`: the transcripts of one user, exactly.

    The transcripts of subagents are stored with the session they belong to, and are erased with it. An entry
    with a `uuid` that the transcript has already is left out. For the options see `FrameworkSessions`.
    """

    def __init__(
        self, url_or_path: str | Path, *, agent_id: str = "claude", user_id: str | None = None, **options: Any
    ) -> None:
        self._sessions = FrameworkSessions(
            _CLAUDE, url_or_path, agent_id=agent_id, user_id=user_id, **options
        )

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries: all or none. Repeating the call adds nothing, if an entry has a `uuid`."""
        subpath = key.get("subpath")
        records: list[Original] = [{"entry": dict(entry), "subpath": subpath} for entry in entries]
        async with self._open(key) as log:
            await log.append(records, _batch_id(records))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The entries of a transcript; `None` if it was never written."""
        async with self._open(key) as log:
            return _entries(await log.load(), key.get("subpath")) or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, with the times of their last change in milliseconds."""
        return [
            {"session_id": stored.key[1], "mtime": _milliseconds(stored)}
            for stored in await self._sessions.list(project_key)
            if await self._has_main(stored)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The summaries of a project. Entries that were added since the last call are folded in."""
        summaries = []
        for stored in await self._sessions.list(project_key):
            if await self._has_main(stored):
                summary = await self._summarize({"project_key": project_key, "session_id": stored.key[1]})
                summaries.append(cast(SessionSummaryEntry, {**summary, "mtime": _milliseconds(stored)}))
        return summaries

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its subagents, what was recorded and what was learned; or one subagent."""
        subpath = key.get("subpath")
        async with self._open(key) as log:
            if subpath is None:
                await log.erase()
            elif await log.load():
                await log.change(lambda records: [each for each in records if each["subpath"] != subpath])

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subagents of a session that have a transcript."""
        async with self._open(cast(SessionKey, key)) as log:
            subpaths = [record["subpath"] for record in await log.load()]
        return [subpath for subpath in dict.fromkeys(subpaths) if subpath is not None]

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def _open(self, key: SessionKey) -> FrameworkSession:
        return self._sessions.open(key["project_key"], key["session_id"])

    async def _has_main(self, stored: StoredKey) -> bool:
        """Whether a session has more than transcripts of subagents. Its first entry nearly always says so."""
        async with self._sessions.open(*stored.key) as log:
            first = await require_ability(log.session, Positioned).read_after(0, 1)
            records = originals_in([row.item for row in first])
            return bool(records and records[0]["subpath"] is None) or bool(_entries(await log.load(), None))

    async def _summarize(self, key: SessionKey) -> SessionSummaryEntry:
        async with self._open(key) as log:
            notes = require_ability(log.session, Noted)
            note = await notes.get_note(_SUMMARY)
            known: dict[str, Any] = dict(note.data) if note else {"position": 0, "summary": None}
            rows = await require_ability(log.session, Positioned).read_after(known["position"])
            new = _entries(originals_in([row.item for row in rows]), None)
            summary = known["summary"]
            if new or summary is None:
                summary = fold_session_summary(summary, key, new)
            if rows:
                now = {"position": rows[-1].position, "summary": summary}
                await notes.set_note(_SUMMARY, now, note.version if note else 0)
        return cast(SessionSummaryEntry, summary)


def _batch_id(records: list[Original]) -> str | None:
    """An id of a batch that may be repeated. Entries without a `uuid` are appended each time."""
    if not any("uuid" in record["entry"] for record in records):
        return None
    return hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()


def _entries(records: Iterable[Original], subpath: str | None) -> list[SessionStoreEntry]:
    """The entries of one transcript, each `uuid` once."""
    found: dict[Any, SessionStoreEntry] = {}
    for number, record in enumerate(records):
        if record["subpath"] == subpath:
            found.setdefault(record["entry"].get("uuid", number), record["entry"])
    return list(found.values())


def _milliseconds(stored: StoredKey) -> int:
    return 0 if stored.updated_at is None else int(stored.updated_at.timestamp() * 1000)
