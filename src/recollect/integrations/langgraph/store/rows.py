"""The statements of the store, and the conversion of its rows."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from langgraph.store.base import Item, PutOp

from ....errors import InvalidTypeError, InvalidValueError
from ....sql.columns import check_id, time_from_column, time_to_column
from ....sql.scripts import Row, Script, Statement, insert, run_all
from .namespaces import Namespace, from_bytes, to_bytes
from .schema import VECTORS

_LONGEST_KEY = 1000  # characters: an index limits its rows

_COLUMNS = "namespace, key, value, created_at, updated_at, ttl_minutes"
_ALIVE = "(expires_at IS NULL OR expires_at > ?1)"
GET = f"SELECT {_COLUMNS} FROM langgraph_store_items WHERE {_ALIVE} AND namespace = ?2 AND key = ?3"
LIST = (
    f"SELECT {_COLUMNS} FROM langgraph_store_items WHERE {_ALIVE} AND namespace >= ?2 AND namespace < ?3"
    " ORDER BY updated_at DESC, namespace, key"
)
PAGE = f"{LIST} LIMIT ?4 OFFSET ?5"
VECTORS_OF = (
    "SELECT namespace, key, text, vector FROM langgraph_store_vectors"
    " WHERE namespace >= ?1 AND namespace < ?2 AND embedder = ?3 ORDER BY namespace, key, number"
)
NAMESPACES = f"SELECT DISTINCT namespace FROM langgraph_store_items WHERE {_ALIVE}"
_PUT = (
    "INSERT INTO langgraph_store_items"
    " (namespace, key, value, created_at, updated_at, ttl_minutes, expires_at, user_id)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (namespace, key) DO UPDATE SET"
    " value = excluded.value, updated_at = excluded.updated_at, ttl_minutes = excluded.ttl_minutes,"
    " expires_at = excluded.expires_at, user_id = coalesce(excluded.user_id, langgraph_store_items.user_id)"
)
_DELETE = "DELETE FROM langgraph_store_items WHERE namespace = ?1 AND key = ?2"
_DELETE_VECTORS = "DELETE FROM langgraph_store_vectors WHERE namespace = ?1 AND key = ?2"
_REFRESH = "UPDATE langgraph_store_items SET expires_at = ?3 WHERE namespace = ?1 AND key = ?2"
_WITHOUT_OWNER = "SELECT DISTINCT namespace FROM langgraph_store_items WHERE user_id IS NULL"
_ASSIGN = "UPDATE langgraph_store_items SET user_id = ?2 WHERE namespace = ?1 AND user_id IS NULL RETURNING 1"
_EXPIRED = "DELETE FROM langgraph_store_items WHERE expires_at <= ?1 RETURNING namespace, key"


class NamespaceKey(NamedTuple):
    """A namespace and a key."""

    namespace: Namespace
    key: str


@dataclass(frozen=True)
class StoredItem:
    """An item, and its time to live in minutes, if it has one."""

    item: Item
    ttl: float | None

    @property
    def place(self) -> NamespaceKey:
        """Where it is."""
        return NamespaceKey(self.item.namespace, self.item.key)


class IndexedText(NamedTuple):
    """A text of an item, with its vector."""

    text: str
    vector: bytes


@dataclass(frozen=True)
class NewItem:
    """An item to store, as its columns; without a value, one to delete."""

    place: NamespaceKey
    value: str | None
    ttl: float | None
    texts: Sequence[IndexedText] = ()
    owner: str | None = None
    times: "Times | None" = None
    """When it was created and changed, if that was not now."""


class Times(NamedTuple):
    """When an item was created and changed, and when it expires."""

    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None


def new_item(op: PutOp) -> NewItem:
    """Check an item to store. Raises `InvalidTypeError` if its value is no JSON object."""
    to_bytes(op.namespace)
    place = NamespaceKey(op.namespace, check_key(op.key))
    if op.ttl is not None and not op.ttl > 0:
        raise InvalidValueError(f"ttl must be a positive number of minutes, not {op.ttl!r}")
    if op.value is None:
        return NewItem(place, None, None)
    if not isinstance(op.value, Mapping):
        raise InvalidTypeError(f"the value of an item must be a mapping, not {type(op.value).__name__}")
    try:
        return NewItem(place, json.dumps(dict(op.value)), op.ttl)
    except (TypeError, ValueError) as error:
        raise InvalidTypeError(f"the value of an item must be JSON: {error}") from error


def check_key(key: object) -> str:
    """A key: a text that fits into an index."""
    checked = check_id("key", key)
    if len(checked) > _LONGEST_KEY:
        raise InvalidValueError(f"key must have at most {_LONGEST_KEY} characters, not {len(checked)}")
    return checked


def put_items(items: Sequence[NewItem], embedder: str) -> Script[None]:
    """Store and delete items, and delete those that have expired."""
    now = datetime.now(UTC)
    for item in items:
        at = (to_bytes(item.place.namespace), item.place.key)
        yield Statement(_DELETE_VECTORS, at)
        if item.value is None:
            yield Statement(_DELETE, at)
            continue
        yield Statement(_PUT, (*at, item.value, *_times_of(item, now), item.owner))
        yield from run_all(insert(VECTORS, list(_vector_rows(at, item, embedder))))
    yield from delete_expired()


def _times_of(item: NewItem, now: datetime) -> tuple[Any, ...]:
    """The columns of the times, and of the time to live between them."""
    if item.times is None:
        return time_to_column(now), time_to_column(now), item.ttl, expiry(item.ttl, now)
    expires_at = None if item.times.expires_at is None else time_to_column(item.times.expires_at)
    return (*map(time_to_column, item.times[:2]), item.ttl, expires_at)


def assign_owners(find: Callable[[Namespace], str | None]) -> Script[int]:
    """Set the owner of items that have none, by their namespace. Returns how many have one now."""
    assigned = 0
    for (stored,) in (yield Statement(_WITHOUT_OWNER)):
        owner = find(from_bytes(stored))
        if owner is not None:
            assigned += len((yield Statement(_ASSIGN, (stored, owner))))
    return assigned


def _vector_rows(at: tuple[bytes, str], item: NewItem, embedder: str) -> Iterator[dict[str, Any]]:
    for number, (text, vector) in enumerate(item.texts):
        values = (*at, number, json.dumps(text), embedder, vector)
        yield dict(zip(VECTORS.column_names, values, strict=True))


def delete_expired() -> Script[int]:
    """Delete the items that have expired, and return how many."""
    gone = yield Statement(_EXPIRED, (time_to_column(datetime.now(UTC)),))
    for namespace, key in gone:
        yield Statement(_DELETE_VECTORS, (namespace, key))
    return len(gone)


def refresh(items: Sequence[StoredItem]) -> Script[None]:
    """Let items live as long again as when they were stored."""
    now = datetime.now(UTC)
    for stored in items:
        at = (to_bytes(stored.place.namespace), stored.place.key)
        yield Statement(_REFRESH, (*at, expiry(stored.ttl, now)))


def expiry(ttl: float | None, now: datetime) -> str | None:
    """When an item with this time to live expires."""
    return None if ttl is None else time_to_column(now + timedelta(minutes=ttl))


def items_from(rows: list[Row]) -> list[StoredItem]:
    """Convert the rows of items."""
    return [
        StoredItem(
            Item(
                value=json.loads(value),
                key=key,
                namespace=from_bytes(namespace),
                created_at=time_from_column(created_at),
                updated_at=time_from_column(updated_at),
            ),
            ttl,
        )
        for namespace, key, value, created_at, updated_at, ttl in rows
    ]


def texts_from(rows: list[Row]) -> dict[NamespaceKey, list[IndexedText]]:
    """Convert the rows of vectors."""
    found: dict[NamespaceKey, list[IndexedText]] = {}
    for namespace, key, text, vector in rows:
        place = NamespaceKey(from_bytes(namespace), key)
        found.setdefault(place, []).append(IndexedText(json.loads(text), vector))
    return found


def namespaces_from(rows: list[Row]) -> list[Namespace]:
    """Convert the rows of namespaces."""
    return [from_bytes(namespace) for (namespace,) in rows]
