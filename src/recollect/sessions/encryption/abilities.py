"""What a session can do beyond the contract, through its encryption.

Each function has the name of a method of the session that is wrapped, and does with items what that does with
envelopes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ...items import Item
from ..protocol import Items, Note, PositionedItem
from ..settings import check_limit
from . import changes
from .expiry import earliest
from .reading import Reader

# Of a wrapped session, as they are: they neither take nor give contents.
PASSED_THROUGH = frozenset(
    {
        "get_metadata",
        "set_metadata",
        "take_lease",
        "drop_lease",
        "ping",
        "current_branch",
        "create_branch_from_turn",
        "switch_to_branch",
        "delete_branch",
        "clear_branch",
        "list_branches",
        "get_conversation_by_turns",
        "get_tool_usage",
        "count_run",
        "store_run_usage",
        "get_session_usage",
        "get_turn_usage",
    }
)


async def transform_items(reader: Reader, change: Callable[[list[Item]], list[Item]]) -> None:
    """Replace what may be read by what the pure function `change` makes of it; nobody comes in between."""
    wrapped: Any = reader.wrapped

    def change_stored(stored: list[Item]) -> list[Item]:
        opened = reader.open_all(stored)
        return changes.transformed(reader.vault, opened, earliest(reader.ttl), change)

    await wrapped.transform_items(change_stored)


async def replace_items(reader: Reader, items: Items) -> None:
    """Replace the history by these items. What no key opens stays."""
    wrapped: Any = reader.wrapped
    envelopes = await reader.seal(items)
    await wrapped.transform_items(lambda stored: changes.replaced(reader.open_all(stored), envelopes))


async def revise_items(reader: Reader, change: Callable[[list[Item]], list[Item | None]]) -> None:
    """Change stored items where they stand; `None` removes one. What no key opens stays as it is."""
    wrapped: Any = reader.wrapped
    await wrapped.revise_items(lambda stored: changes.revised(reader.vault, reader.open_all(stored), change))


async def read_after(reader: Reader, position: int, limit: int | None = None) -> list[PositionedItem]:
    """The first `limit` readable items after a position (0: from the start), oldest first."""
    wrapped: Any = reader.wrapped
    rows = await _rows(reader, lambda width: wrapped.read_after(position, width), check_limit(limit))
    return rows[:limit]


async def read_before(reader: Reader, position: int | None, limit: int) -> list[PositionedItem]:
    """The last `limit` readable items before a position (`None`: from the end), oldest first."""
    wrapped: Any = reader.wrapped
    rows = await _rows(reader, lambda width: wrapped.read_before(position, width), check_limit(limit))
    return rows[-limit:] if limit else []


async def _rows(reader: Reader, read: Callable[[int | None], Any], limit: int | None) -> list[PositionedItem]:
    positions: list[int] = []

    async def read_stored(width: int | None) -> Items:
        rows: list[PositionedItem] = await read(width)
        positions[:] = [row.position for row in rows]
        return [row.item for row in rows]

    readout = await reader.look(read_stored, limit)
    pairs = zip(positions, readout.items, strict=True)
    return [PositionedItem(position, item) for position, item in pairs if item is not None]


async def add_batch(reader: Reader, items: Items, batch_id: str) -> bool:
    """Append a batch unless one of this id was appended before."""
    wrapped: Any = reader.wrapped
    envelopes = await reader.seal(items)
    appended: bool = await wrapped.add_batch(envelopes, batch_id)
    return appended


async def get_note(reader: Reader, key: str) -> Note | None:
    """The note of this key, `None` where there is none that can be read."""
    wrapped: Any = reader.wrapped
    note: Note | None = await wrapped.get_note(key)
    (data,) = (await reader.open([dict(note.data)])).items if note else [None]
    return None if note is None or data is None else Note(note.version, data)


async def set_note(reader: Reader, key: str, data: Mapping[str, Any], version: int) -> bool:
    """Set a note that still has this version; one that cannot be read is as if it were not there."""
    wrapped: Any = reader.wrapped
    (envelope,) = await reader.seal([dict(data)])
    if await wrapped.set_note(key, envelope, version):
        return True
    if version == 0 and await get_note(reader, key) is None:
        unreadable = await wrapped.get_note(key)
        return unreadable is not None and await wrapped.set_note(key, envelope, unreadable.version)
    return False
