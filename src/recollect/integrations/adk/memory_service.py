"""Long-term memory for ADK."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai.types import Content, Part
from typing_extensions import override

from ...items.originals import Original
from ...memory.entry import Entry
from ...memory.store import MemoryStore
from ..fallback import check_budget, result_or_none
from ..framework import FrameworkSessions
from .events import ADK, record_of

_ENTRY, _MESSAGE = "entry", "message"  # kinds of ids


class MemoryService(BaseMemoryService):
    """What a `MemoryStore` knows: entries that were learned, and messages of earlier sessions.

    An app of ADK is an agent of Recollect. Sessions that are added are recorded and learned from, unless the
    session service of Recollect, with the same memory, records them already. If a search fails, that is
    logged, and nothing is found.
    """

    def __init__(
        self,
        memory: MemoryStore,
        url_or_path: str | Path,
        *,
        token_budget: int = 1000,
        learn: bool = True,
        **options: Any,
    ) -> None:
        check_budget(token_budget)
        self._memory = memory
        self._token_budget = token_budget
        # Each call names the app and the user; these are never used.
        self._sessions = FrameworkSessions(
            ADK, url_or_path, agent_id="adk", user_id="adk", memory=memory, learn=learn, **options
        )

    @override
    async def add_session_to_memory(self, session: Session) -> None:
        """Record the events of a session that are not recorded yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    @override
    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Record events that are not recorded yet. An event that was deleted from memory stays deleted."""
        sessions = self._sessions.of(app_name, user_id)
        name = session_id or "unknown"
        recorded = sessions.session_id_of("session", name)
        if await self._memory.get_conversation_outline(recorded) is not None:
            return  # by the session service
        given = {event.id: record_of(event) for event in events if event.content and event.content.parts}

        def add(records: list[Original]) -> list[Original]:
            known = {record.get("id") for record in records}
            return [*records, *(given[each] for each in given if each not in known)]

        if given:
            async with sessions.open("memory", name) as log:
                await log.change(add)

    @override
    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Store statements about the user, unless they are known. Each text is an entry of type `profile`."""
        for memory in memories:
            text = " ".join(part.text for part in memory.content.parts or () if part.text).strip()
            if text:
                metadata = {**(custom_metadata or {}), **memory.custom_metadata}
                await self._memory.add_entry_unless_known(
                    app_name, user_id, "profile", text, metadata=metadata or None, unless_rejected=True
                )

    @override
    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What is known about a question, within the token budget: wishes, entries, then messages."""
        if not query.strip():
            return SearchMemoryResponse()
        call = self._memory.recall(query, app_name, user_id, budget=self._token_budget)
        found = await result_or_none("recalling", call)
        if found is None:
            return SearchMemoryResponse()
        known = [*found.instructions, *(hit.entry for hit in found.entries)]
        entries = {entry.content_id: _of_entry(entry) for entry in known}
        turns = [
            _memory_of(
                f"{_MESSAGE}:{hit.conversation_id}:{hit.message.message_id}",
                hit.passage or hit.message.content,
                hit.message.role,
                hit.message.created_at,
            )
            for hit in found.turns
        ]
        return SearchMemoryResponse(memories=[*entries.values(), *turns])

    @override
    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Erase an entry or a message by the id that `search_memory` gave. An unknown id changes nothing."""
        kind, _, rest = (memory_id or "").partition(":")
        if kind == _ENTRY:
            entry = await self._memory.get_entry(rest)
            memory = None if entry is None else await self._memory.get_memory_outline(entry.memory_id)
            if memory is not None and (memory.agent_id, memory.user_id) == (app_name, user_id):
                await self._memory.delete_entry(rest)
        if kind == _MESSAGE:
            conversation_id, _, message_id = rest.rpartition(":")
            said = await self._memory.get_conversation(conversation_id) if conversation_id else None
            if said is not None and (said.agent_id, said.user_id) == (app_name, user_id):
                await self._memory.erase_message(conversation_id, message_id)

    async def aclose(self) -> None:
        """Release the database; the memory stays open. May be called more than once."""
        await self._sessions.aclose()


def _of_entry(entry: Entry) -> MemoryEntry:
    return _memory_of(f"{_ENTRY}:{entry.content_id}", entry.text, "user", entry.said_at or entry.learned_at)


def _memory_of(memory_id: str, text: str, author: str, at: datetime) -> MemoryEntry:
    role = "user" if author == "user" else "model"
    content = Content(role=role, parts=[Part(text=text)])
    return MemoryEntry(id=memory_id, content=content, author=author, timestamp=at.isoformat())
