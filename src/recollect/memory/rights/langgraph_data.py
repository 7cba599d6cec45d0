"""The data of LangGraph that belongs to a user: threads, and items of the store.

A thread belongs to the user that its config names as `user_id`. An item of the store belongs to the user
whose id is a label of its namespace.
"""

from collections.abc import Collection
from urllib.parse import quote

from ...sql.scripts import Script, Statement

THREADS = "langgraph_threads"
STORE = "langgraph_store_items"
THREAD_TABLES = (THREADS, *(f"langgraph_{name}" for name in ("checkpoints", "values", "items", "writes")))
"""The rows of the others go with those of the first."""
STORE_TABLES = (STORE, "langgraph_store_vectors")

_END = b"\x1f"  # of a label in a stored namespace
_DELETE_THREADS = f"DELETE FROM {THREADS} WHERE user_id = ?1 RETURNING thread_id"
_NAMESPACES = f"SELECT DISTINCT namespace FROM {STORE}"
_DELETE_NAMESPACE = "DELETE FROM {} WHERE namespace = ?1 RETURNING 1"


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
    names = {text.encode("utf-8", "surrogatepass") for text in (user_id, label_of_user(user_id))}
    erased = 0
    for (namespace,) in (yield Statement(_NAMESPACES)):
        if names & set(bytes(namespace).split(_END)):
            for table in STORE_TABLES:
                rows = yield Statement(_DELETE_NAMESPACE.format(table), (namespace,))
                erased += len(rows) if table == STORE else 0
    return {"store_items": erased} if erased else {}
