"""The words of a message where sessions hold them too: blanked, so that the history stays sound."""

from collections.abc import Sequence
from typing import Any

from ...items import Item, decode_item, encode_items, role_of, text_of
from ...sessions.sql.scripts import Script, Statement
from ..conversation import Message
from .session_tables import SessionTables

ERASED = "[erased]"
_NOTES = "_notes"


def blank_items(tables: SessionTables, session_ids: Sequence[str], message: Message) -> Script[int]:
    """Blank the items that are a message, and forget what was noted of their history: it may quote them."""
    count = 0
    for session_id in session_ids if tables.messages is not None else ():
        items = f'SELECT id, message_data FROM "{tables.messages}" WHERE session_id = ?1'
        for row_id, stored in (yield Statement(items, (session_id,))):
            text = blanked(stored, message)
            if text is not None:
                blank = f'UPDATE "{tables.messages}" SET message_data = ?2 WHERE id = ?1'
                yield Statement(blank, (row_id, text))
                count += 1
        for table in tables.others:
            if table.endswith(_NOTES):
                yield Statement(f'DELETE FROM "{table}" WHERE session_id = ?1', (session_id,))
    return count


def blanked(stored: str, message: Message) -> str | None:
    """An item without its words, as it is stored, if it is this message; else `None`."""
    item = decode_item(stored)
    if item is None or role_of(item) != message.role:
        return None
    # Halves of characters are replaced when a message is put into a session.
    said = (message.content, message.content.encode("utf-8", "replace").decode())
    return encode_items([_without_words(item)])[0] if text_of(item) in said else None


def _without_words(item: Item) -> Item:
    content: Any = item.get("content")
    if isinstance(content, list):
        content = [{**part, "text": ERASED} if "text" in part else part for part in content]
        return {**item, "content": content}
    return {**item, "content": ERASED}
