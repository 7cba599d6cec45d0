"""What is known about a user, as Markdown for people: entries with their times, evidence and history."""

from collections.abc import AsyncIterator
from datetime import datetime

from ..memory.database.access import MemoryDatabase
from ..memory.entry import CONTENT_TYPES, Entry
from ..memory.rights.why import Quote, quotes_of
from ..memory.store import MemoryStore
from ..strategies.summaries.escaping import escape_markdown

_PAGE = 200
_TITLES = {
    "profile": "About the user",
    "event": "Events",
    "mind": "Views and feelings",
    "instruction": "Instructions",
}


async def describe_user(store: MemoryStore, user_id: str, agent_id: str | None = None) -> AsyncIterator[str]:
    """A text about a user, in parts: a section for each agent and kind of entry."""
    yield f"# {escape_markdown(user_id)}\n"
    after = None
    found = False
    while page := await store.list_memories(agent_id, user_id, after=after, limit=_PAGE):
        for memory in page:
            found = True
            async for part in _describe_memory(store, memory.agent_id, user_id):
                yield part
        after = page[-1].memory_id
    if not found:
        yield "\nNothing is stored about this user.\n"


async def _describe_memory(store: MemoryStore, agent_id: str, user_id: str) -> AsyncIterator[str]:
    yield f"\n## With the agent {escape_markdown(agent_id)}\n"
    entries = await store.list_entries(agent_id, user_id, include_retired=True)
    for kind in CONTENT_TYPES:
        current = [entry for entry in entries if entry.content_type == kind and entry.retired_at is None]
        if current:
            yield f"\n### {_TITLES[kind]}\n\n"
        for entry in current:
            yield await _describe_entry(store.memory_database, store.tenant, entry)
    former = [entry for entry in entries if entry.retired_at is not None]
    if former:
        yield "\n### No longer current\n\n"
    for entry in former:
        yield await _describe_entry(store.memory_database, store.tenant, entry)


async def _describe_entry(database: MemoryDatabase, tenant: str, entry: Entry) -> str:
    lines = [f"- {escape_markdown(entry.text)}", f"  - {_times(entry)}"]
    quotes = await quotes_of(database, tenant, entry.content_id)
    lines += dict.fromkeys(f"  - {_quote(quote)}" for quote in quotes)
    return "\n".join(lines) + "\n"


def _times(entry: Entry) -> str:
    parts = [f"learned {_day(entry.learned_at)}"]
    if entry.said_at:
        parts.append(f"said {_day(entry.said_at)}")
    if entry.valid_from:
        parts.append(f"true from {entry.valid_from}")
    if entry.valid_to:
        parts.append(f"true until {entry.valid_to}")
    if entry.retired_at:
        parts.append(f"superseded {_day(entry.retired_at)}")
    return ", ".join(parts)


def _quote(quote: Quote) -> str:
    return f"{_day(quote.created_at)}, {escape_markdown(quote.speaker)}: “{escape_markdown(quote.content)}”"


def _day(time: datetime) -> str:
    return f"{time:%Y-%m-%d}"
