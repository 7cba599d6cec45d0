"""Copies items from other stores of LangGraph, and from the export of a user."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import BaseStore, InvalidNamespaceError, Item, PutOp, validate_op_namespace

from ....errors import ConflictError, ImportFormatError, InvalidTypeError
from ....memory.times import read_time
from ..migration import CopyReport
from .rows import Times, new_item
from .store import ItemCopy, Store

_PAGE = 100
_TIMES = ("created_at", "updated_at", "expires_at")


async def copy_items(source: BaseStore, target: Store) -> CopyReport:
    """Copy the items of a store, with the times when they were created and changed.

    The source may be any store with asynchronous methods. Items that the target has already are skipped, so
    a copy that was interrupted goes on. Each item is read back; a difference is a `ConflictError`. A time to
    live is not copied, as stores do not show it.
    """
    found = copied = offset = 0
    while namespaces := await source.alist_namespaces(limit=_PAGE, offset=offset):
        for namespace in namespaces:
            items = await _items_in(source, namespace)
            found += len(items)
            for start in range(0, len(items), _PAGE):
                copied += await _copy(target, items[start : start + _PAGE])
        offset += len(namespaces)
    return CopyReport(found, copied)


async def _items_in(source: BaseStore, namespace: tuple[str, ...]) -> list[Any]:
    """The items of one namespace, without those of namespaces inside it."""
    found: list[Any] = []
    while page := await source.asearch(namespace, limit=_PAGE, offset=len(found)):
        found += page
    return [item for item in found if tuple(item.namespace) == namespace]


async def _copy(target: Store, items: Sequence[Item]) -> int:
    copies = [
        ItemCopy(
            PutOp(tuple(item.namespace), item.key, item.value),
            Times(_in_utc(item.created_at), _in_utc(item.updated_at)),
        )
        for item in items
    ]
    missing = [copy for copy in copies if not _is_same(copy, await _read(target, copy))]
    if missing:
        await target.put_copies(missing)
    for copy in missing:
        if not _is_same(copy, await _read(target, copy)):
            raise ConflictError(f"an item in the namespace {copy.op.namespace!r} differs after it was copied")
    return len(missing)


async def _read(target: Store, copy: ItemCopy) -> Item | None:
    return await target.aget(copy.op.namespace, copy.op.key, refresh_ttl=False)


def _is_same(copy: ItemCopy, stored: Item | None) -> bool:
    return stored is not None and (stored.value, stored.updated_at) == (copy.op.value, copy.times.updated_at)


def _in_utc(time: datetime | str) -> datetime:
    """A time of a store: some have times without a zone, which are in UTC."""
    read = datetime.fromisoformat(time) if isinstance(time, str) else time
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)


async def import_items(exported: Mapping[str, Any], target: Store) -> int:
    """Import the items of a user's export, and return how many are new: all or none.

    Raises `ImportFormatError` if the export is not valid, and `ConflictError` if an item exists already with
    another value. Items that have expired since are left out.
    """
    given = exported.get("store_items", [])
    if not isinstance(given, list):
        raise ImportFormatError(f"store_items must be a list, not {type(given).__name__}")
    now = datetime.now(UTC)
    copies = [_parse(f"store_items[{number}]", each, exported) for number, each in enumerate(given)]
    new = []
    for copy in copies:
        if copy.times.expires_at is not None and copy.times.expires_at <= now:
            continue
        stored = await _read(target, copy)
        if stored is not None and stored.value != copy.op.value:
            raise ConflictError(f"the store has another item in {copy.op.namespace!r} under the same key")
        new += [] if stored is not None else [copy]
    if new:
        await target.put_copies(new)
    return len(new)


def _parse(where: str, record: object, exported: Mapping[str, Any]) -> ItemCopy:
    """An item of an export. The errors name the field."""
    if not isinstance(record, Mapping):
        raise ImportFormatError(f"{where} must be an object, not {type(record).__name__}")
    try:
        op = _read_item(record)
        created, updated, expires = (read_time(name, record.get(name)) for name in _TIMES)
    except (InvalidNamespaceError, TypeError, ValueError) as error:
        raise ImportFormatError(f"{where} is no item of a store: {error}") from error
    if created is None or updated is None:
        raise ImportFormatError(f"{where} must have created_at and updated_at")
    owner = record.get("user_id") or exported.get("user_id")
    return ItemCopy(op, Times(created, updated, expires), owner if isinstance(owner, str) else None)


def _read_item(record: Mapping[str, Any]) -> PutOp:
    namespace, ttl = record.get("namespace"), record.get("ttl_minutes")
    if not isinstance(namespace, list) or not all(isinstance(label, str) for label in namespace):
        raise InvalidTypeError("namespace must be a list of texts")
    if not isinstance(record.get("value"), Mapping):
        raise InvalidTypeError("value must be an object")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float | None):
        raise InvalidTypeError("ttl_minutes must be a number")
    op = PutOp(tuple(namespace), record.get("key", ""), dict(record["value"]), ttl=ttl)
    validate_op_namespace(op)
    new_item(op)
    return op
