"""The data of LangGraph that belongs to a user: threads, and items of the store.

A thread belongs to the user that its config names as `user_id`. An item of the store has its owner in
`user_id`, which the store sets.
"""

import json
from collections.abc import AsyncIterator, Collection
from typing import Any
from urllib.parse import quote

from ...sql.columns import time_from_column
from ...sql.scripts import Row, Script, Statement
from ..database.access import MemoryDatabase
from ..times import format_time

THREADS = "langgraph_threads"
STORE = "langgraph_store_items"
THREAD_TABLES = (THREADS, *(f"langgraph_{name}" for name in ("checkpoints", "values", "items", "writes")))
"""The rows of the others go with those of the first."""
STORE_TABLES = (STORE, "langgraph_store_vectors")

_END = b"\x1f"  # of a label in a stored namespace
_DELETE_THREADS = f"DELETE FROM {THREADS} WHERE user_id = ?1 RETURNING thread_id"
_DELETE_VECTORS = (
    "DELETE FROM langgraph_store_vectors WHERE (namespace, key) IN"
    f" (SELECT namespace, key FROM {STORE} WHERE user_id = ?1)"
)
_DELETE_ITEMS = f"DELETE FROM {STORE} WHERE user_id = ?1 RETURNING 1"
_PAGE_SIZE = 200  # rows
_READ_ITEMS = (
    "SELECT namespace, key, user_id, value, created_at, updated_at, ttl_minutes, expires_at"
    f" FROM {STORE} WHERE (namespace, key) > (?1, ?2) {{}} ORDER BY namespace, key LIMIT ?3"
)


def label_of_user(user_id: str) -> str:
    """A user id as a label. LangGraph allows no periods in labels, so these are percent-encoded."""
    return quote(user_id, safe="@ ").replace(".", "%2E")


def erase_threads(existing: Collection[str], user_id: str) -> Script[dict[str, int]]:
    """Delete the threads of a user, and count them. The database may not have the table."""
    if THREADS not in existing:
        return {}
    rows = yield Statement(_DELETE_THREADS, (user_id,))
    return {"threads": len({thread_id for (thread_id,) in rows})} if rows else {}


def erase_store_items(existing: Collection[str], user_id: str) -> Script[dict[str, int]]:
    """Delete the items of a user, and count them. The database may not have the table."""
    if STORE not in existing:
        return {}
    yield Statement(_DELETE_VECTORS, (user_id,))
    rows = yield Statement(_DELETE_ITEMS, (user_id,))
    return {"store_items": len(rows)} if rows else {}


async def export_store_items(
    database: MemoryDatabase, existing: Collection[str], user_id: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """The items of a user, or all, also those of nobody; a page at a time."""
    if STORE not in existing:
        return
    condition, whose = ("", ()) if user_id is None else ("AND user_id = ?4", (user_id,))
    query = _READ_ITEMS.format(condition)
    after: tuple[bytes, str] = (b"", "")
    while page := await database.fetch(query, (*after, _PAGE_SIZE, *whose), list[Row]):
        for row in page:
            yield _to_record(row)
        after = (page[-1][0], page[-1][1])


def _to_record(row: Row) -> dict[str, Any]:
    namespace, key, user_id, value, created_at, updated_at, ttl, expires_at = row
    labels = bytes(namespace).split(_END)[:-1]
    return {
        "user_id": user_id,
        "namespace": [label.decode("utf-8", "surrogatepass") for label in labels],
        "key": key,
        "value": json.loads(value),
        "created_at": format_time(time_from_column(created_at)),
        "updated_at": format_time(time_from_column(updated_at)),
        "ttl_minutes": ttl,
        "expires_at": None if expires_at is None else format_time(time_from_column(expires_at)),
    }
