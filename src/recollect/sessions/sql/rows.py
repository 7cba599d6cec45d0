"""Rows of the tables of sessions, decoded to items, metadata and notes."""

import json
import logging
from typing import Any

from ...items import decode_item, decode_joined, encode_items
from ...sql.scripts import Row
from ..protocol import Items, Note, PositionedItem, SessionMetadata, check_metadata

logger = logging.getLogger(__name__)


def items_from_joined(rows: list[Row]) -> tuple[int, Items | None]:
    """The size of a joined text and its items, oldest first. `None` if any part of it is invalid."""
    size, values = _joined_values(rows)
    return size, None if values is None else values[::-2]


def positioned_from_joined(rows: list[Row]) -> tuple[int, list[PositionedItem] | None]:
    """The same with positions. Databases join in either order: the result is oldest first."""
    size, values = _joined_values(rows)
    if values is None:
        return size, None
    found = list(map(PositionedItem, values[::2], values[1::2]))
    is_reversed = bool(found) and found[0].position > found[-1].position
    return size, found[::-1] if is_reversed else found


def _joined_values(rows: list[Row]) -> tuple[int, list[Any] | None]:
    count, joined = rows[0]
    if count == 0:
        return 0, []
    values = decode_joined(joined)
    if values is None or len(values) != 2 * count:
        return len(joined), None
    is_valid = all(type(item) is dict for item in values[1::2]) and all(
        type(position) is int for position in values[::2]
    )
    return len(joined), values if is_valid else None


def items_from_rows(rows: list[Row]) -> Items:
    """The items of rows. Corrupt rows are logged and left out."""
    items = [decode_item(stored) for _, stored in rows]
    if None in items:
        return [row.item for row in positioned_from_rows(rows)[1]]
    return items


def positioned_from_rows(rows: list[Row]) -> tuple[int, list[PositionedItem]]:
    """The number of rows, and their items. Corrupt rows are logged and left out."""
    found = []
    for position, stored in rows:
        item = decode_item(stored)
        if item is None:
            report_corrupt(position)
        else:
            found.append(PositionedItem(position, item))
    return len(rows), found


def report_corrupt(row_id: int) -> None:
    """Log that the row of an item could not be decoded."""
    logger.warning("row %d is corrupt and was left out", row_id)


def metadata_to_columns(metadata: SessionMetadata) -> tuple[Any, ...]:
    """The columns of metadata. Raises an error if it is invalid."""
    check_metadata(metadata)
    (data,) = encode_items([dict(metadata.data)])
    return metadata.user_id, metadata.agent_id, metadata.title, data


def metadata_from_rows(rows: list[Row]) -> SessionMetadata:
    """The metadata of a session; empty if it has no row."""
    if not rows:
        return SessionMetadata()
    user_id, agent_id, title, data = rows[0]
    return SessionMetadata(user_id, agent_id, title, json.loads(data))


def note_from_rows(rows: list[Row]) -> Note | None:
    """The note of a row; `None` without a row."""
    return Note(rows[0][0], decode_item(rows[0][1]) or {}) if rows else None
