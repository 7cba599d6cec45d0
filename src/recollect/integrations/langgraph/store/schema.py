"""The tables of the store.

A namespace is stored as bytes: its labels, each with an end mark. Bytes have one order in every database, so
the namespaces with a common beginning are one range of the index.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ....sql.description import (
    Column,
    PartialIndex,
    Table,
    add_columns_in_sqlite,
    create_in_sqlite,
    create_indexes_in_sqlite,
    describe,
)
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
_ADDED_LATER = {"user_id"}


def create_store() -> Script[None]:
    """Create the tables of the store."""
    yield from create_in_sqlite(TABLES)


def add_owner() -> Script[None]:
    """Add the owner to the items of an older file."""
    yield from add_columns_in_sqlite(
        ITEMS, [column for column in ITEMS.columns if column.name in _ADDED_LATER]
    )
    yield from create_indexes_in_sqlite(ITEMS)


@dataclass(frozen=True)
class StoreSchema(Schema):
    """The schema of the store of LangGraph."""

    @property
    def scope(self) -> str:
        """The name under which its steps are recorded: a database has one."""
        return "langgraph_store"

    def steps(self) -> Sequence[Step]:
        """The tables, then what was added to them."""
        return [Step("create_store", create_store), Step("add_owner", add_owner)]

    def columns(self) -> Mapping[str, Set[str]]:
        """The columns of every file: only Recollect creates these tables. Steps add the later ones."""
        return {table.name: set(table.column_names) - _ADDED_LATER for table in TABLES}

    def describe(self) -> Any:
        """The tables as SQLAlchemy's `MetaData`."""
        return describe(TABLES)
