"""The words of a message where sessions and logs hold them too: blanked, so that the history stays sound."""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...items import Item, decode_item, encode_items, fingerprint, role_of, text_of
from ...sessions.events import queries as event_queries
from ...sessions.events.schema import EVENTS
from ...sql.columns import text_from_column, text_to_column
from ...sql.scripts import Row, Script, Statement
from .personal_data import SessionTables
from .same_words import Told, find_told, saying_of

ERASED = "[erased]"
_NOTES = "_notes"
_WORDS = ("text", "refusal", "transcript")
_ABOUT_WORDS = ("annotations", "logprobs")  # lists which quote them
_SAID_EVENTS = (
    f"SELECT sequence_number, position, fingerprint, role, text FROM {EVENTS}"
    " WHERE conversation_id = ?1 AND text IS NOT NULL ORDER BY sequence_number"
)
_BLANK_EVENT = (
    f"UPDATE {EVENTS} SET text = NULL, fingerprint = ?3 WHERE conversation_id = ?1 AND sequence_number = ?2"
)


class Blanked(NamedTuple):
    """An item that has lost its words: where it stands, and what it is known by, before and now."""

    position: int
    before: str
    now: str


class _Stored(NamedTuple):
    position: int
    item: Item


class _Said(NamedTuple):
    """An event with words."""

    sequence_number: int
    position: int | None
    fingerprint: str
    role: str | None
    text: str


# --- in sessions ---


def blank_items(tables: SessionTables, session_ids: Sequence[str], told: Told) -> Script[list[Blanked]]:
    """Blank the items that are a message, and forget what was noted of their history: it may quote them.

    The sessions must be held, or who rewrites one writes back what it has read before.
    """
    blanked: list[Blanked] = []
    for session_id in session_ids if tables.messages is not None else ():
        items = f'SELECT id, message_data FROM "{tables.messages}" WHERE session_id = ?1 ORDER BY id'
        stored = _messages_in((yield Statement(items, (session_id,))))
        sayings = [saying_of(role_of(each.item), text_of(each.item)) for each in stored]
        for place in find_told(told, sayings):
            blanked += [(yield from _blank_item(tables, stored[place]))]
        for table in tables.others:
            if table.endswith(_NOTES):
                yield Statement(f'DELETE FROM "{table}" WHERE session_id = ?1', (session_id,))
    return blanked


def _messages_in(rows: Sequence[Row]) -> list[_Stored]:
    items = ((position, decode_item(stored)) for position, stored in rows)
    return [_Stored(position, item) for position, item in items if item is not None and role_of(item)]


def _blank_item(tables: SessionTables, stored: _Stored) -> Script[Blanked]:
    item = without_words(stored.item)
    blank = f'UPDATE "{tables.messages}" SET message_data = ?2 WHERE id = ?1'
    yield Statement(blank, (stored.position, encode_items([item])[0]))
    return Blanked(stored.position, fingerprint(stored.item), fingerprint(item))


def without_words(item: Item) -> Item:
    """A message in which nothing is said any more."""
    content: Any = item.get("content")
    if isinstance(content, list):
        return {**item, "content": [_part_without_words(part) for part in content]}
    return {**item, "content": ERASED}


def _part_without_words(part: Any) -> Any:
    if not isinstance(part, dict):
        return ERASED if isinstance(part, str) else part
    blank: dict[str, Any] = {name: ERASED for name in _WORDS if isinstance(part.get(name), str)}
    blank |= {name: [] for name in _ABOUT_WORDS if blank and part.get(name)}
    return {**part, **blank}


# --- in the log ---


def blank_events(key: str, told: Told, items: Sequence[Blanked]) -> Script[int]:
    """Blank the events of a message; what its item is known by now is theirs too, so that none comes anew."""
    # The head first: whoever is about to add to the log, from what was read before, begins again.
    yield Statement(event_queries.ADVANCE_HEAD, (key, uuid.uuid4().hex, 0))
    said = _said_in((yield Statement(_SAID_EVENTS, (key,))))
    names = {item.before: item.now for item in items}
    found = _events_of(told, said, items)
    for event in found:
        name = names.get(event.fingerprint, event.fingerprint)
        yield Statement(_BLANK_EVENT, (key, event.sequence_number, text_to_column(name)))
    return len(found)


def _said_in(rows: Sequence[Row]) -> list[_Said]:
    return [
        _Said(number, position, text_from_column(name), role, text_from_column(text))
        for number, position, name, role, text in rows
    ]


def _events_of(told: Told, said: Sequence[_Said], items: Sequence[Blanked]) -> list[_Said]:
    """The events of the items that were blanked, and else those that say the same."""
    places = {(item.position, item.before) for item in items}
    known = [event for event in said if (event.position, event.fingerprint) in places]
    found = [said[place] for place in find_told(told, [saying_of(event.role, event.text) for event in said])]
    return found if len(found) > 1 or not known else known
