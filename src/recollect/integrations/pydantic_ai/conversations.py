"""A conversation store for Pydantic AI.

A conversation is one session: its entries, and behind them the record that says where its history ends. A
fork has copies of the entries it starts from, so that each conversation can be erased without the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import pydantic
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter

from ...items import Item
from ...items.originals import Original
from ..framework import Framework, FrameworkSessions
from .parts import item_of

_RECORD = pydantic.TypeAdapter(ConversationRecord)
_MOST_PLACES = 10_000
Entries = Mapping[str, Original]


def _items_of(stored: Original) -> list[Item]:
    message = stored.get("entry", {}).get("message", {})
    return [item for part in message.get("parts", ()) if (item := item_of(part)) is not None]


_PYDANTIC_AI = Framework("pydantic-ai", _items_of)


class Conversations(ConversationStore):
    """The conversations of one user. For the options see `FrameworkSessions`.

    A save is one transaction: the new messages and the record are stored, or neither. `delete` erases the
    messages, and with a memory also what was recorded and learned from the conversation.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        agent_id: str = "pydantic-ai",
        user_id: str | None = None,
        **options: Any,
    ) -> None:
        self._sessions = FrameworkSessions(
            _PYDANTIC_AI, url_or_path, agent_id=agent_id, user_id=user_id, **options
        )
        self._place_of: dict[str, str] = {}  # the conversations of entries that records have named

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation; `None` if there is no such conversation."""
        record = _record_in(await self._load(conversation_id))
        if record is not None:
            self._note_entries(record)
        return record

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records of all conversations, or of those with a scope, the newest first."""
        found = [await self.read_record(stored.key[0]) for stored in await self._sessions.list()]
        mine = [each for each in found if each is not None and scope in (None, each.scope)]
        return sorted(mine, key=lambda each: each.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store new entries and the record, if the stored record has the expected revision."""
        added = [{"entry": _dump(entry)} for entry in new_entries]
        shared = await self._shared_entries(record)
        has_conflict = True

        def with_record(stored: list[Original]) -> list[Original]:
            nonlocal has_conflict
            entries = [each for each in stored if "entry" in each]
            known = {each["entry"]["id"] for each in entries}
            entries += [each for each in shared if each["entry"]["id"] not in known] + added
            before = _record_in(stored)
            is_current = (before.revision if before else None) == expected_revision
            has_conflict = not is_current or not (record.head_id is None or record.head_id in _by_id(entries))
            return (
                stored if has_conflict else [*entries, {"record": _RECORD.dump_python(record, mode="json")}]
            )

        async with self._sessions.open(record.conversation_id) as log:
            await log.change(with_record)
        if has_conflict:
            raise ConversationConflict(record.conversation_id)
        self._note_entries(record)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation and its messages, if the stored record has the expected revision."""
        is_current = False

        def emptied(stored: list[Original]) -> list[Original]:
            nonlocal is_current
            record = _record_in(stored)
            is_current = record is not None and record.revision == expected_revision
            return [] if is_current else stored

        async with self._sessions.open(conversation_id) as log:
            await log.change(emptied)
            if not is_current:
                raise ConversationConflict(conversation_id)
            await log.erase()

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """An entry of any conversation of the user. Raises `LookupError` if there is none."""
        return _parse((await self._entries_with(entry_id))[entry_id])

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to this one, or only the last of them."""
        if head_id is None or limit == 0:
            return []
        line = _line(await self._entries_with(head_id), head_id)
        return [_parse(entry) for entry in (line if limit is None else line[-limit:])]

    async def aclose(self) -> None:
        """Release the database. May be called more than once."""
        await self._sessions.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def _load(self, conversation_id: str) -> list[Original]:
        async with self._sessions.open(conversation_id) as log:
            return await log.load()

    def _note_entries(self, record: ConversationRecord) -> None:
        if len(self._place_of) > _MOST_PLACES:
            self._place_of.clear()
        for entry_id in (record.head_id, *record.branches):
            if entry_id is not None:
                self._place_of[entry_id] = record.conversation_id

    async def _entries_with(self, entry_id: str) -> Entries:
        """The entries of the conversation that has this one. The interface does not say which that is."""
        noted = self._place_of.get(entry_id)
        if noted is not None and entry_id in (entries := _by_id(await self._load(noted))):
            return entries
        for stored in await self._sessions.list():
            if entry_id in (entries := _by_id(await self._load(stored.key[0]))):
                return entries
        raise LookupError("there is no entry with this id")

    async def _shared_entries(self, record: ConversationRecord) -> list[Original]:
        """The entries that a fork starts with."""
        if record.forked_from is None or record.forked_at is None:
            return []
        source = _by_id(await self._load(record.forked_from))
        return (
            [{"entry": each} for each in _line(source, record.forked_at)]
            if record.forked_at in source
            else []
        )


def _record_in(stored: Iterable[Original]) -> ConversationRecord | None:
    found = [each["record"] for each in stored if "record" in each]
    return _RECORD.validate_python(found[-1]) if found else None


def _by_id(stored: Iterable[Original]) -> Entries:
    return {each["entry"]["id"]: each["entry"] for each in stored if "entry" in each}


def _line(entries: Entries, head_id: str | None) -> list[Original]:
    """The entries from the first one to this one."""
    line = []
    while head_id is not None:
        line.append(entries[head_id])
        head_id = line[-1]["parent_id"]
    return line[::-1]


def _dump(entry: ConversationEntry) -> Original:
    (message,) = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")
    return {"id": entry.id, "parent_id": entry.parent_id, "kind": entry.kind, "message": message}


def _parse(entry: Original) -> ConversationEntry:
    (message,) = ModelMessagesTypeAdapter.validate_python([entry["message"]])
    return ConversationEntry(**{**entry, "message": message})
