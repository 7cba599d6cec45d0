"""Conversations of the OpenAI API. The API lists none, so the source is their ids."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError
from ...extras import require_extra
from ...items import text_of
from ..chats import time_of
from ..kinds import ReadOptions
from ..records import Record, Skipped, stable_id

_PAGE = 100  # items, the most that the API returns
_ROLES = ("user", "assistant")


def open_source(source: str, options: ReadOptions) -> AsyncIterator[Record | Skipped]:
    """Read conversations: `conv_…` ids with commas between them, or a file with one id on each line."""
    path = Path(source)
    given = path.read_text("utf-8").split() if path.is_file() else source.split(",")
    ids = [each.strip() for each in given if each.strip()]
    if not ids:
        raise ImportFormatError("give the ids of conversations, or a file with one id on each line")
    return _read(ids, options)


async def _read(ids: list[str], options: ReadOptions) -> AsyncIterator[Record | Skipped]:
    require_extra("openai", "openai", "conversations of the OpenAI API")
    from openai import AsyncOpenAI, NotFoundError, OpenAIError

    if not options.api_key:
        raise ImportFormatError("set OPENAI_API_KEY to read conversations of the OpenAI API")
    async with AsyncOpenAI(api_key=options.api_key, base_url=options.base_url) as client:
        for conversation_id in ids:
            where = f"conversation {conversation_id[:80]!r}"
            try:
                conversation = await client.conversations.retrieve(conversation_id)
                items = await _items(client, conversation_id)
            except NotFoundError:
                yield Skipped(where, "the API has no such conversation")
                continue
            except OpenAIError as error:
                yield Skipped(where, f"the API did not return it ({type(error).__name__}): import it again")
                continue
            for record in _records(conversation_id, conversation.created_at, items, options, where):
                yield record


async def _items(client: Any, conversation_id: str) -> list[dict[str, Any]]:
    pages = client.conversations.items.list(conversation_id, order="asc", limit=_PAGE)
    return [item.model_dump(exclude_unset=True, mode="json") async for item in pages]


def _records(
    source_id: str, created: int, items: list[dict[str, Any]], options: ReadOptions, where: str
) -> list[Record]:
    """A session with all items, and a conversation with what was said."""
    session_id = stable_id(options.tenant, options.user_id, "openai-conversations", source_id)
    time = time_of(created)
    owner = {"user_id": options.user_id, "agent_id": options.agent_id}
    session = {
        "session_id": session_id,
        "created_at": time,
        **owner,
        "items": items,
        "times": [time] * len(items),
    }
    found = [Record("sessions", session, where)]
    said = [
        {"message_id": str(item.get("id") or "")[:255] or None, "role": item["role"], "content": text}
        for item in items
        if item.get("type") == "message" and item.get("role") in _ROLES and (text := text_of(item)).strip()
    ]
    if said:
        about = {"source": "openai-conversations", "source_id": source_id}
        heading = {"conversation_id": session_id, "session_id": session_id, "created_at": time, **owner}
        found.append(Record("conversations", {**heading, "metadata": about, "messages": said}, where))
    return found
