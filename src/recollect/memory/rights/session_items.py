"""Copies of a message in sessions and event logs: erasing a message blanks them, so the history stays valid.

`message_items` says which session item is a copy of which message. Items that were mirrored by an earlier
release, or added by another program, have no row there. Their copies are found by role and exact words, in
the conversation's own sessions only. Where the same words were said several times and it is not certain which
copy is meant, all such copies are blanked: no erased words stay behind.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...ids import new_hex
from ...items import Item, decode_item, encode_items, fingerprint, role_of, text_of
from ...items.originals import ERASED, blank_original, says_nothing, split_records
from ...sessions.events import queries as event_queries
from ...sessions.events.schema import EVENTS
from ...sql.columns import text_from_column, text_to_column
from ...sql.scripts import Row, Script, Statement
from ..conversation import Message
from .personal_data import SessionTables

_TEXT_FIELDS = ("text", "refusal", "transcript")
_QUOTING_FIELDS = ("annotations", "logprobs")
_READ_EVENTS = (
    f"SELECT sequence_number, position, fingerprint, role, text FROM {EVENTS}"
    " WHERE conversation_id = ?1 AND text IS NOT NULL ORDER BY sequence_number"
)
_BLANK_EVENT = (
    f"UPDATE {EVENTS} SET text = NULL, fingerprint = ?3 WHERE conversation_id = ?1 AND sequence_number = ?2"
)

Links = Mapping[int, str]
"""The ids of messages, by the ids of the items that are their copies."""


class Wording(NamedTuple):
    """The role and the words of a message or of an item."""

    role: str | None
    words: str


def wording_of(role: str | None, text: str) -> Wording:
    """The wording, normalized: the same for a text and for its parts joined by line breaks."""
    # Lone surrogates are replaced when a message is mirrored into a session.
    return Wording(role, text.replace("\n", "").encode("utf-8", "replace").decode())


@dataclass(frozen=True)
class ErasedMessage:
    """A message that is erased, and the messages of its conversation that say the same."""

    message_id: str
    wording: Wording | None = field(repr=False)
    """`None` if the row of the message is corrupt: then only linked copies are found."""
    equal_ids: tuple[str, ...]
    """The ids of the messages with the same wording, in order; its own is among them."""


def erased_message(messages: Sequence[Message], message_id: str) -> ErasedMessage:
    """A message to erase, given all readable messages of its conversation."""
    wordings = {each.message_id: wording_of(each.role, each.content) for each in messages}
    wording = wordings.get(message_id)
    equal = tuple(each for each, other in wordings.items() if other == wording)
    return ErasedMessage(message_id, wording, equal)


class Copy(NamedTuple):
    """An item or an event that may be a copy of a message."""

    item_id: int | None
    wording: Wording


def find_copies(message: ErasedMessage, among: Sequence[Copy], links: Links) -> list[int]:
    """The places of a message's copies. Where links do not decide, the words do (see the module)."""
    linked = [place for place, each in enumerate(among) if links.get(each.item_id or 0) == message.message_id]
    unlinked = [
        place
        for place, each in enumerate(among)
        if each.wording == message.wording and (each.item_id or 0) not in links
    ]
    if len(message.equal_ids) < 2:
        return sorted(linked + unlinked)
    if linked:
        return linked
    known = set(links.values()) - {message.message_id}
    equal_ids = [each for each in message.equal_ids if each not in known]
    if len(unlinked) == len(equal_ids):
        return [unlinked[equal_ids.index(message.message_id)]]
    return unlinked


# --- in sessions ---


class BlankedItem(NamedTuple):
    """An item that has lost its words: its id, and its fingerprint before and after."""

    item_id: int
    before: str
    after: str


class _StoredItem(NamedTuple):
    item_id: int
    item: Item


def blank_items(
    tables: SessionTables, session_ids: Sequence[str], message: ErasedMessage, links: Links
) -> Script[list[BlankedItem]]:
    """Blank the copies of a message, and delete the notes of these sessions: a note may quote them.

    The sessions must be locked. Otherwise a concurrent rewrite could write back the items it read before.
    """
    blanked: list[BlankedItem] = []
    for session_id in session_ids:
        select = f'SELECT id, message_data FROM "{tables.messages}" WHERE session_id = ?1 ORDER BY id'
        everything = _items_from((yield Statement(select, (session_id,))))
        stored = [each for each in everything if role_of(each.item)]
        copies = [Copy(each.item_id, wording_of(role_of(each.item), text_of(each.item))) for each in stored]
        ids = {stored[place].item_id for place in find_copies(message, copies, links)}
        words = [each.item for each in stored if each.item_id in ids]
        for record in _records_of(everything):
            blanked += yield from _blank_record(tables, record, ids, words)
        if tables.notes is not None:
            yield Statement(f'DELETE FROM "{tables.notes}" WHERE session_id = ?1', (session_id,))
    return blanked


def _items_from(rows: Sequence[Row]) -> list[_StoredItem]:
    items = ((item_id, decode_item(stored)) for item_id, stored in rows)
    return [_StoredItem(item_id, item) for item_id, item in items if item is not None]


def _blank_record(
    tables: SessionTables, record: Sequence[_StoredItem], ids: Set[int], words: Sequence[Item]
) -> Script[list[BlankedItem]]:
    """Blank items of one record of a framework, and their words in the record that its first item carries.

    A record that is no message, such as a line with the last prompt, loses the words that others have said.
    """
    said = [each for each in record if each.item_id in ids]
    after = {each.item_id: without_words(each.item) for each in said}
    first_id, first = record[0]
    for item in words if says_nothing(first) else [each.item for each in said]:
        after[first_id] = blank_original(after.get(first_id, first), item)
    update = f'UPDATE "{tables.messages}" SET message_data = ?2 WHERE id = ?1'
    for item_id, item in after.items():
        if item is not first:
            yield Statement(update, (item_id, encode_items([item])[0]))
    return [
        BlankedItem(each.item_id, fingerprint(each.item), fingerprint(after[each.item_id])) for each in said
    ]


def _records_of(stored: Sequence[_StoredItem]) -> Iterator[Sequence[_StoredItem]]:
    """The items of each record; an item that did not come from a framework is alone."""
    start = 0
    for group in split_records([each.item for each in stored]):
        yield stored[start : start + len(group)]
        start += len(group)


def without_words(item: Item) -> Item:
    """A message item whose words are replaced by `[erased]`."""
    content: Any = item.get("content")
    if isinstance(content, list):
        return {**item, "content": [_part_without_words(part) for part in content]}
    return {**item, "content": ERASED}


def _part_without_words(part: Any) -> Any:
    if not isinstance(part, dict):
        return ERASED if isinstance(part, str) else part
    blank: dict[str, Any] = {name: ERASED for name in _TEXT_FIELDS if isinstance(part.get(name), str)}
    blank |= {name: [] for name in _QUOTING_FIELDS if blank and part.get(name)}
    return {**part, **blank}


# --- in the event log ---


class _TextEvent(NamedTuple):
    """An event with text."""

    sequence_number: int
    item_id: int | None
    fingerprint: str
    role: str | None
    text: str


def blank_events(key: str, message: ErasedMessage, links: Links, items: Sequence[BlankedItem]) -> Script[int]:
    """Blank the events of a message; returns how many.

    The event of a blanked item gets the new fingerprint of the item. Otherwise the next projection would take
    the blanked item for a new one.
    """
    # The head first: a writer that is about to append, from what it has read before, has to start again.
    yield Statement(event_queries.ADVANCE_HEAD, (key, new_hex(), 0))
    events = _events_from((yield Statement(_READ_EVENTS, (key,))))
    fingerprints = {item.before: item.after for item in items}
    links = {**links, **{item.item_id: message.message_id for item in items}}
    copies = [Copy(event.item_id, wording_of(event.role, event.text)) for event in events]
    found = [events[place] for place in find_copies(message, copies, links)]
    for event in found:
        new = fingerprints.get(event.fingerprint, event.fingerprint)
        yield Statement(_BLANK_EVENT, (key, event.sequence_number, text_to_column(new)))
    return len(found)


def _events_from(rows: Sequence[Row]) -> list[_TextEvent]:
    return [
        _TextEvent(number, item_id, text_from_column(name), role, text_from_column(text))
        for number, item_id, name, role, text in rows
    ]
