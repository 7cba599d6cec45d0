"""The abilities of the wrapped session, through its encryption.

`DelegatedMethod` and `TranslatedMethod` are attributes of an encrypted session. They exist only if the
wrapped session has the method. Each function below has the name of a method of the wrapped session. It does
with items what that method does with envelopes.
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
from .reader import NO_KEY, NOT_ENCRYPTED, Reader, omission_reason, readable_since


class DelegatedMethod:
    """Delegates to the method of the wrapped session with the same name."""

    _name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, session: Any, owner: type | None = None) -> Any:
        return self if session is None else self._method_for(session)

    def _method_for(self, session: Any) -> Callable[..., Any]:
        return _method_of(session, self._name)


class TranslatedMethod(DelegatedMethod):
    """An ability of the wrapped session.

    It raises `SessionClosedError` after the encrypted session is closed.

    `function` does with items what the wrapped session does with envelopes. Its first argument is the reader.
    Without a `function`, the method of the wrapped session is called as it is: it neither takes nor returns
    contents. `needs` names the method that the wrapped session must have, by default the one of the same
    name.
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
    """Replace the readable items by the result of the pure function `change`, in one atomic step."""
    wrapped: Any = reader.wrapped

    def change_stored(stored: list[Item]) -> list[Item]:
        decrypted = reader.decrypt_all(stored)
        return changes.transform_history(reader.vault, decrypted, readable_since(reader.ttl), change)

    await wrapped.transform_items(change_stored)


async def replace_items(reader: Reader, items: Items) -> None:
    """Replace the history by these items. Items that no key decrypts stay."""
    wrapped: Any = reader.wrapped
    envelopes = await reader.encrypt(items)
    await wrapped.transform_items(
        lambda stored: changes.replace_history(reader.decrypt_all(stored), envelopes)
    )


async def revise_items(reader: Reader, change: Callable[[list[Item]], list[Item | None]]) -> None:
    """Change stored items in place. `None` removes an item. Items that no key decrypts stay unchanged."""
    wrapped: Any = reader.wrapped
    await wrapped.revise_items(
        lambda stored: changes.revise_history(reader.vault, reader.decrypt_all(stored), change)
    )


async def read_after(reader: Reader, position: int, limit: int | None = None) -> list[PositionedItem]:
    """Return the first `limit` readable items after a position (0: from the start), oldest first."""
    wrapped: Any = reader.wrapped
    rows = await _rows(reader, lambda width: wrapped.read_after(position, width), check_limit(limit))
    return rows[:limit]


async def read_before(reader: Reader, position: int | None, limit: int) -> list[PositionedItem]:
    """Return the last `limit` readable items before a position (`None`: from the end), oldest first."""
    wrapped: Any = reader.wrapped
    rows = await _rows(reader, lambda width: wrapped.read_before(position, width), check_limit(limit))
    return rows[-limit:] if limit else []


async def _rows(reader: Reader, read: Callable[[int | None], Any], limit: int | None) -> list[PositionedItem]:
    positions: list[int] = []

    async def read_stored(width: int | None) -> Items:
        rows: list[PositionedItem] = await read(width)
        positions[:] = [row.position for row in rows]
        return [row.item for row in rows]

    result = await reader.read_readable(read_stored, limit)
    pairs = zip(positions, result.items, strict=True)
    return [PositionedItem(position, item) for position, item in pairs if item is not None]


async def add_batch(reader: Reader, items: Items, batch_id: str) -> bool:
    """Append a batch unless one with this id was appended before."""
    wrapped: Any = reader.wrapped
    envelopes = await reader.encrypt(items)
    appended: bool = await wrapped.add_batch(envelopes, batch_id)
    return appended


async def get_note(reader: Reader, key: str) -> Note | None:
    """Return the note with this key, or `None` if there is no readable one."""
    wrapped: Any = reader.wrapped
    note: Note | None = await wrapped.get_note(key)
    (data,) = (await reader.decrypt([dict(note.data)])).items if note else [None]
    return None if note is None or data is None else Note(note.version, data)


async def set_note(reader: Reader, key: str, data: Mapping[str, Any], version: int) -> bool:
    """Set a note if it still has this version. A note that cannot be decrypted counts as missing."""
    wrapped: Any = reader.wrapped
    (envelope,) = await reader.encrypt([dict(data)])
    if await wrapped.set_note(key, envelope, version):
        return True
    if version == 0 and await get_note(reader, key) is None:
        unreadable = await wrapped.get_note(key)
        return unreadable is not None and await wrapped.set_note(key, envelope, unreadable.version)
    return False


async def pop_checked(reader: Reader, accept: Callable[[Item], bool]) -> Any:
    """Remove the newest item that `accept` accepts, and all items after it. If it raises, remove nothing."""
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
    """Decrypt an item that was popped, or put it back: it may not be the item that was checked before."""
    try:
        return _item_in(reader, stored)
    except WrongKeyError:
        await finish_despite_cancellation(_put_back(reader, stored, context))
        raise


async def _put_back(reader: Reader, stored: Item, context: dict[str, Any]) -> None:
    await reader.wrapped.add_items([stored], **context)


def _item_in(reader: Reader, stored: Item) -> Item | None:
    """Return the item in an envelope, or `None` if it has expired or is no item. Raise if no key fits."""
    decrypted = reader.vault.decrypt([stored])
    reason = omission_reason(decrypted, 0, readable_since(reader.ttl))
    if reason == NOT_ENCRYPTED:
        raise reader.wrong_key("its newest item is not encrypted")
    if reason == NO_KEY and decrypted.ciphers[0] is None:
        raise reader.wrong_key("no key decrypts its newest item")
    return decrypted.items[0] if reason is None else None


async def read_turns(reader: Reader, branch_id: str | None = None) -> list[UserTurn]:
    """Return the readable user turns of a branch, by default the current one."""
    wrapped: Any = reader.wrapped
    turns: list[UserTurn] = await wrapped.read_turns(branch_id)
    result = await reader.decrypt([turn.item for turn in turns])
    await reader.check(result)
    pairs = zip(turns, result.items, strict=True)
    return [turn._replace(item=item) for turn, item in pairs if item is not None]


async def get_conversation_turns(reader: Reader, branch_id: str | None = None) -> list[dict[str, Any]]:
    """Return each user turn as a dict: `turn, content` (shortened), `full_content, timestamp, can_branch`."""
    return describe_turns(await read_turns(reader, branch_id))


async def find_turns_by_content(
    reader: Reader, search_term: str, branch_id: str | None = None
) -> list[dict[str, Any]]:
    """Return the user turns that contain a text, ignoring case, as dicts."""
    matching_turns([], search_term)  # raises for an invalid search term before anything is read
    return matching_turns(await read_turns(reader, branch_id), search_term)


async def create_branch_from_content(reader: Reader, search_term: str, branch_name: str | None = None) -> str:
    """Create a branch from the first user turn that contains a text, and make it current."""
    wrapped: Any = reader.wrapped
    turns = await find_turns_by_content(reader, search_term)
    if not turns:
        raise ValueError("no user turn contains that text")
    branch: str = await wrapped.create_branch_from_turn(turns[0]["turn"], branch_name)
    return branch


async def diff_branches(reader: Reader, first: str, second: str | None = None) -> BranchDiff:
    """Compare two branches: how much they share, and the readable items that only one of them has."""
    wrapped: Any = reader.wrapped
    diff: BranchDiff = await wrapped.diff_branches(first, second)
    return replace(
        diff,
        only_in_first=await _readable(reader, diff.only_in_first),
        only_in_second=await _readable(reader, diff.only_in_second),
    )


async def _readable(reader: Reader, stored: Items) -> Items:
    result = await reader.decrypt(stored)
    await reader.check(result)
    return result.readable()
