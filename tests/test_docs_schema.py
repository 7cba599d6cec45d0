"""The DDL on the page about scale describes the same tables as the schema that Recollect creates."""

import asyncio
import re

from recollect import SQLAlchemySession

from .sessions.postgres.database import new_tables, sql
from .sessions.postgres.partitions import make_partitioned

KINDS = ("sessions", "messages", "metadata", "batches", "leases", "notes")
COLUMNS = (
    "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns"
    " WHERE table_name = %s"
)
INDEXES = "SELECT indexdef FROM pg_indexes WHERE tablename = %s"
REFERENCES = (
    "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' AND conparentid = 0"
    " AND conrelid = to_regclass(%s)"
)


def names_of(tables: dict[str, str]) -> dict[str, str]:
    """The tables of sessions, by the kind of rows they have."""
    sessions, messages = tables["sessions_table"], tables["messages_table"]
    beside = {kind: f"recollect_{sessions}_{kind}" for kind in ("metadata", "leases", "notes")}
    return {
        "sessions": sessions,
        "messages": messages,
        "batches": f"recollect_{messages}_batches",
        **beside,
    }


def described(url: str, tables: dict[str, str]) -> dict[str, dict[str, set[object]]]:
    """Columns, indexes and foreign keys of each table, with the names of the tables made equal."""
    names = names_of(tables)

    def neutral(text: object) -> object:
        if not isinstance(text, str):
            return text
        for kind in ("metadata", "batches", "leases", "notes", "sessions", "messages"):
            text = text.replace(names[kind], kind)
        return re.sub(r" INDEX \S+ ON (ONLY )?", " INDEX ON ", text)

    def found(query: str, kind: str) -> set[object]:
        rows = sql(url, query, names[kind])
        return {tuple(map(neutral, row)) for row in rows}

    return {
        kind: {
            "columns": found(COLUMNS, kind),
            "indexes": found(INDEXES, kind),
            "references": found(REFERENCES, kind),
        }
        for kind in KINDS
    }


async def create_tables(url: str) -> dict[str, str]:
    tables = new_tables()
    async with SQLAlchemySession.from_url("any", url=url, create_tables=True, **tables) as session:
        await session.add_items([{"role": "user", "content": "hello"}])
    return tables


def test_the_partitioned_tables_of_the_page_are_those_of_the_schema(postgres_url: str) -> None:
    page = described(postgres_url, make_partitioned(postgres_url))
    schema = described(postgres_url, asyncio.run(create_tables(postgres_url)))
    # The one difference: a partitioned table needs the session in its primary key.
    assert page["messages"].pop("indexes") == {
        ("CREATE UNIQUE INDEX ON public.messages USING btree (session_id, id)",)
    }
    assert schema["messages"].pop("indexes") == {
        ("CREATE UNIQUE INDEX ON public.messages USING btree (id)",),
        ("CREATE INDEX ON public.messages USING btree (session_id, id)",),
    }
    assert page == schema
