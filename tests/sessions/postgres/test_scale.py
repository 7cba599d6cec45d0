"""The tables can be divided by session: every statement names one, and touches no other partition."""

import re

import psycopg
import pytest

from recollect import SessionManager, SessionMetadata
from recollect.sessions.sql.dialects import PostgresQueries
from recollect.sessions.sql.tables import Tables
from recollect.sessions.sqlalchemy import SQLAlchemySession
from recollect.testing.contract import in_event_loop, message

from .database import sql
from .partitions import make_partitioned

OF_ALL_SESSIONS = {"list_sessions", "delete_idle_sessions"}


def statements(tables: Tables) -> dict[str, str]:
    """Every text of SQL by its name."""
    queries = PostgresQueries(tables)
    reads = {f"history.{name}": text for name, text in vars(queries.history).items()}
    return reads | {name: text for name, text in vars(queries).items() if isinstance(text, str)}


NAMES = sorted(statements(Tables()).keys() - OF_ALL_SESSIONS)


@pytest.fixture(scope="module")
def divided(postgres_url: str) -> dict[str, str]:
    return make_partitioned(postgres_url)


def test_these_are_all_statements() -> None:
    assert vars(PostgresQueries(Tables())).keys() - NAMES - OF_ALL_SESSIONS == {"tables", "schema", "history"}
    assert {
        "history.all",
        "history.joined",
        "pop_item",
        "touch_session",
        "_append",
        "_append_described",
    } <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_names_the_session(name: str) -> None:
    text = statements(Tables())[name]
    assert "session_id = ?1" in text or "(session_id" in text.split(" VALUES (?1")[0] != text


def partitions_in_plan(url: str, tables: dict[str, str], name: str) -> list[str]:
    """The tables that a statement reads or changes by its plan, one name for each partition."""
    items = "'{item}'" if name.startswith("_append") else "'1'"
    values = {"?1": "'the session'", "?2": items, "?3": "'1'", "?4": "''", "?5": "'1'", "?6": "''"}
    text = statements(Tables(**{key.removesuffix("_table"): table for key, table in tables.items()}))[name]
    if name in OF_ALL_SESSIONS:
        values["?1"] = "'1'"
    for number, value in values.items():
        text = text.replace(number, value)
    with psycopg.connect(url) as connection:
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {text}".encode()))
    return [table for table, _ in set(re.findall(r" on (\w+)_(\d+)\b", plan))]


@pytest.mark.parametrize("name", NAMES)
def test_a_statement_touches_one_partition_of_a_table(
    postgres_url: str, divided: dict[str, str], name: str
) -> None:
    touched = partitions_in_plan(postgres_url, divided, name)
    assert len(touched) == len(set(touched))


def test_that_is_seen_in_the_plan(postgres_url: str, divided: dict[str, str]) -> None:
    assert len(partitions_in_plan(postgres_url, divided, "history.all")) == 1
    assert len(partitions_in_plan(postgres_url, divided, "delete_idle_sessions")) > 15


@in_event_loop
async def test_sessions_of_all_partitions_are_listed_and_cleaned_up(
    postgres_url: str, divided: dict[str, str]
) -> None:
    manager = SessionManager(postgres_url, **divided)
    for n in range(30):
        await manager.get_session(f"user-{n}").add_items([message(n)])
    page = await manager.list_sessions(limit=20)
    rest = await manager.list_sessions(limit=20, cursor=page.next_cursor)
    listed = [info.session_id for info in (*page.sessions, *rest.sessions)]
    assert sorted(listed) == sorted(f"user-{n}_default" for n in range(30))
    old = f"UPDATE {divided['sessions_table']} SET updated_at = updated_at - INTERVAL '40 days'"
    sql(postgres_url, f"{old} WHERE session_id < 'user-2'")
    assert await manager.cleanup_old_sessions(days=30) == 12
    assert len((await manager.list_sessions()).sessions) == 18
    manager.close()


@in_event_loop
async def test_a_session_that_comes_back_to_life_is_not_cleaned_up(
    postgres_url: str, divided: dict[str, str]
) -> None:
    """It looks idle to others until who uses it has committed."""
    manager = SessionManager(postgres_url, **divided)
    async with SQLAlchemySession.from_url("idle", url=postgres_url, **divided) as session:
        await session.set_metadata(SessionMetadata(title="kept"))
        await session.add_items([message("long ago")])
        table = divided["sessions_table"]
        sql(postgres_url, f"UPDATE {table} SET updated_at = '2020-01-01' WHERE session_id = 'idle'")
        with psycopg.connect(postgres_url) as user:
            user.execute(f"UPDATE {table} SET updated_at = now() WHERE session_id = 'idle'".encode())
            assert await manager.cleanup_old_sessions(days=30) == 0
        assert await session.get_items() == [message("long ago")]
        assert (await session.get_metadata()).title == "kept"
    manager.close()
