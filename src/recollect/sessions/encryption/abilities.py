"""The abilities of the wrapped session, through its encryption.

`Through` and `Handed` are attributes of an encrypted session that exist only if the wrapped session has them.
Each function below has the name of a method of the wrapped session. It does with items what that method does
with envelopes.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...cancellation import finish_despite_cancellation
from ...errors import WrongKeyError
from ...items import Item
from ..advanced.branches import BranchDiff
from ..advanced.turns import UserTurn, describe_turns, matching_turns
from ..protocol import Items, Note, PositionedItem, own_method
from ..settings import check_limit
from . import changes
from .reader import LOCKED, PLAIN, Reader, earliest, why_left_out


class Handed:
    """A method of the wrapped session, as it is."""

    _name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, session: Any, owner: type | None = None) -> Any:
        return self if session is None else self._method_for(session)

    def _method_for(self, session: Any) -> Callable[..., Any]:
        return _method_of(session, self._name)


class Through(Handed):
    """An ability of the wrapped session, while the encrypted session is open.

    `function` does with items what the wrapped session does with envelopes, and takes the reader first.
    Without it the method neither takes nor gives contents. `needs` is the method that the wrapped
    session must have, if it is not the one of the same name.
    """

    def __init__(self, function: Callable[..., Any] | None = None, needs: str | None = None) -> None:
        self._function = function
        self._needs = needs

    def _method_for(self, session: Any) -> Callable[..., Any]:
        wrapped = _method_of(session, self._needs or self._name)
        method = wrapped if self._function is None else partial(self._function, session._reader)

        async def call(*args: Any, **kwargs: Any) -> Any:
            session._check_open()
            return await method(*args, **kwargs)

        return call


def _method_of(session: Any, name: str) -> Callable[..., Any]:
    method = own_method(session.wrapped, name)
    if method is None:
        raise AttributeError(f"{type(session.wrapped).__name__!r} object has no method {name!r} of its own")
    return method


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


async def pop_checked(reader: Reader, accept: Callable[[Item], bool]) -> Any:
    """Remove the newest item that `accept` takes, and those after it; nothing at all where it raises."""
    wrapped: Any = reader.wrapped
    taken: Item | None = None

    def accept_stored(stored: Item) -> bool:
        nonlocal taken
        taken = _item_in(reader, stored)
        return taken is not None and accept(taken)

    return None if await wrapped.pop_checked(accept_stored) is None else taken


async def pop_item(reader: Reader, **context: Any) -> Any:
    """Remove the newest item and return it; expired ones on the way go too."""
    if own_method(reader.wrapped, "pop_checked") is not None:
        return await pop_checked(reader, lambda _: True)
    while newest := await reader.wrapped.get_items(1, **context):
        _item_in(reader, newest[0])
        stored = await reader.wrapped.pop_item(**context)
        item = None if stored is None else await _take_or_put_back(reader, stored, context)
        if stored is None or item is not None:
            return item
    return None


async def _take_or_put_back(reader: Reader, stored: Item, context: dict[str, Any]) -> Item | None:
    """What is in an item that was popped: since the look at the newest, another may have been added."""
    try:
        return _item_in(reader, stored)
    except WrongKeyError:
        await finish_despite_cancellation(_put_back(reader, stored, context))
        raise


async def _put_back(reader: Reader, stored: Item, context: dict[str, Any]) -> None:
    await reader.wrapped.add_items([stored], **context)


def _item_in(reader: Reader, stored: Item) -> Item | None:
    """The item in an envelope, `None` if it has expired or is none; where that cannot be told, an error."""
    opened = reader.vault.open([stored])
    reason = why_left_out(opened, 0, earliest(reader.ttl))
    if reason == PLAIN:
        raise reader.wrong_key("its newest item is not encrypted")
    if reason == LOCKED and opened.ciphers[0] is None:
        raise reader.wrong_key("no key opens its newest item")
    return opened.items[0] if reason is None else None


async def read_turns(reader: Reader, branch_id: str | None = None) -> list[UserTurn]:
    """The user turns of a branch, by default the current one, as far as they can be read."""
    wrapped: Any = reader.wrapped
    turns: list[UserTurn] = await wrapped.read_turns(branch_id)
    readout = await reader.open([turn.item for turn in turns])
    await reader.check(readout)
    pairs = zip(turns, readout.items, strict=True)
    return [turn._replace(item=item) for turn, item in pairs if item is not None]


async def get_conversation_turns(reader: Reader, branch_id: str | None = None) -> list[dict[str, Any]]:
    """Each user turn as a dict: `turn, content` (shortened), `full_content, timestamp, can_branch`."""
    return describe_turns(await read_turns(reader, branch_id))


async def find_turns_by_content(
    reader: Reader, search_term: str, branch_id: str | None = None
) -> list[dict[str, Any]]:
    """The user turns that contain a text, whatever its case, as dicts."""
    matching_turns([], search_term)  # a bad one is refused before anything is read
    return matching_turns(await read_turns(reader, branch_id), search_term)


async def create_branch_from_content(reader: Reader, search_term: str, branch_name: str | None = None) -> str:
    """Make a branch from the first user turn that contains a text, and make it current."""
    wrapped: Any = reader.wrapped
    turns = await find_turns_by_content(reader, search_term)
    if not turns:
        raise ValueError("no user turn contains that text")
    branch: str = await wrapped.create_branch_from_turn(turns[0]["turn"], branch_name)
    return branch


async def diff_branches(reader: Reader, first: str, second: str | None = None) -> BranchDiff:
    """What two branches share, and what each has after that, as far as it can be read."""
    wrapped: Any = reader.wrapped
    diff: BranchDiff = await wrapped.diff_branches(first, second)
    return replace(
        diff,
        only_in_first=await _readable(reader, diff.only_in_first),
        only_in_second=await _readable(reader, diff.only_in_second),
    )


async def _readable(reader: Reader, stored: Items) -> Items:
    readout = await reader.open(stored)
    await reader.check(readout)
    return readout.readable()
