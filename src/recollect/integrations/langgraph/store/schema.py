"""The tables of the store.

A namespace is stored as bytes: its labels, each with an end mark. Bytes have one order in every database, so
the namespaces with a common beginning are one range of the index.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ....sql.description import Column, PartialIndex, Table, create_in_sqlite, describe
from ....sql.schema import Schema, Step
from ....sql.scripts import Script

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
    ),
    key=("namespace", "key"),
    partial=(PartialIndex("expiring", ("expires_at",), "expires_at IS NOT NULL"),),
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


def create_store() -> Script[None]:
    """Create the tables of the store."""
    yield from create_in_sqlite(TABLES)


@dataclass(frozen=True)
class StoreSchema(Schema):
    """The schema of the store of LangGraph."""

    @property
    def scope(self) -> str:
        """The name under which its steps are recorded: a database has one."""
        return "langgraph_store"

    def steps(self) -> Sequence[Step]:
        """One step: the tables."""
        return [Step("create_store", create_store)]

    def columns(self) -> Mapping[str, Set[str]]:
        """All columns: only Recollect creates these tables."""
        return {table.name: set(table.column_names) for table in TABLES}

    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
        return describe(TABLES)
