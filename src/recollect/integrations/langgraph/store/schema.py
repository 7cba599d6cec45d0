"""The tables of the store.

A namespace is stored as bytes: its labels, each with an end mark. Bytes have one order in every database, so
the namespaces with a common beginning are one range of the index.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ....sql.description import Column, PartialIndex, Table
from ....sql.schema import Schema

ITEMS = Table(
    "langgraph_store_items",
    (
        Column("namespace", "bytes"),
        Column("key", "identifier"),
        Column("value", "long_text"),
        Column("created_at", "time"),
        Column("updated_at", "time"),
        Column("ttl_minutes", "real", required=False),
        Column("expires_at", "time", required=False),
        Column("user_id", required=False),  # whose data it is, as far as that is known
    ),
    key=("namespace", "key"),
    partial=(
        PartialIndex("expiring", ("expires_at",), "expires_at IS NOT NULL"),
        PartialIndex("by_user", ("user_id",), "user_id IS NOT NULL"),
    ),
)

VECTORS = Table(
    "langgraph_store_vectors",
    (
        Column("namespace", "bytes"),
        Column("key", "identifier"),
        Column("number", "integer"),
        Column("text", "long_text"),
        Column("embedder", "identifier"),
        Column("vector", "bytes"),
    ),
    key=("namespace", "key", "number"),
)

TABLES = (ITEMS, VECTORS)


@dataclass(frozen=True)
class StoreSchema(Schema):
    """The schema of the store of LangGraph."""

    @property
    def scope(self) -> str:
        """The name under which its steps are recorded: a database has one."""
        return "langgraph_store"

    def described(self) -> Sequence[Table]:
        """The tables."""
        return TABLES
