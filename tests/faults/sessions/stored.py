"""What is stored in the end: read as users read it, and looked at beneath."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from recollect.sessions.sql.tables import tables_named

from .calls import read_forwards
from .items import codes_of
from .model import MAIN, History
from .places import Place

Query: TypeAlias = Callable[[str], list[Any]]
_AT_ONCE = 8
_PAGE = 50


async def read_histories(place: Place, url: str, names: Iterable[str]) -> dict[str, History]:
    """What these sessions hold, told by somebody who was not there before."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read(name: str) -> tuple[str, History]:
        async with turns, place.open(url, name) as session:
            return name, await _history_of(session, place.advanced)

    return dict(await asyncio.gather(*map(read, names)))


async def _history_of(session: Any, advanced: bool) -> History:
    title = (await session.get_metadata()).title
    whole = tuple(codes_of(await session.get_items()))
    paged = tuple(await read_forwards(session, _PAGE))
    if whole != paged:
        whole = (f"[whole it reads otherwise than page by page: {whole} and {paged}]",)
    if not advanced:
        return History({MAIN: whole}, title=title)
    listed = await session.list_branches()
    branches = {
        branch["branch_id"]: tuple(codes_of(await session.get_items(branch_id=branch["branch_id"])))
        for branch in listed
    }
    current = next((branch["branch_id"] for branch in listed if branch["is_current"]), MAIN)
    return History({**branches, current: whole}, current, title)


# --- beneath: SQL ---


def check_tables(query: Query, advanced: bool, found: Mapping[str, History]) -> list[str]:
    """What does not fit together in the tables, in words."""
    tables = tables_named("agent_sessions", "agent_messages", advanced)
    beside = (tables.metadata, tables.batches, tables.notes)
    of_branches = (tables.structure, tables.branches, tables.usage, tables.runs) if advanced else ()
    wrong = []
    for table in (tables.messages, *beside, *of_branches):
        orphans = _count(
            query,
            f"FROM {table} t WHERE NOT EXISTS"
            f" (SELECT 1 FROM {tables.sessions} s WHERE s.session_id = t.session_id)",
        )
        wrong += [f"{orphans} rows of {table} belong to no session"] if orphans else []
    stored = {row[0] for row in query(f"SELECT session_id FROM {tables.sessions}")}
    wrong += [f"there is a session {name} that nobody made" for name in stored - found.keys()]
    wrong += _check_branches(query) if advanced else []
    shown = sum(len(items) for history in found.values() for items in history.branches.values())
    rows = _count(query, f"FROM {tables.structure if advanced else tables.messages}")
    return wrong + ([f"{rows} rows are stored, and {shown} items are shown"] if rows != shown else [])


_BRANCHES = {
    "places without an item": "FROM message_structure p WHERE NOT EXISTS (SELECT 1 FROM agent_messages m"
    " WHERE m.id = p.message_id AND m.session_id = p.session_id)",
    "items that no branch shows": "FROM agent_messages m WHERE NOT EXISTS (SELECT 1 FROM message_structure p"
    " WHERE p.message_id = m.id)",
    "items shown twice in a branch": "FROM (SELECT 1 FROM message_structure"
    " GROUP BY session_id, branch_id, message_id HAVING count(*) > 1) AS twice",
    "places in a branch that is not there": "FROM message_structure p WHERE branch_id <> 'main'"
    " AND NOT EXISTS (SELECT 1 FROM recollect_agent_sessions_branches b"
    " WHERE b.session_id = p.session_id AND b.branch_id = p.branch_id)",
    "sessions with two current branches": "FROM (SELECT 1 FROM recollect_agent_sessions_branches"
    " WHERE is_current = 1 GROUP BY session_id HAVING count(*) > 1) AS several",
    "places whose order is not that of the items": "FROM message_structure a JOIN message_structure b"
    " ON a.session_id = b.session_id AND a.branch_id = b.branch_id AND a.message_id < b.message_id"
    " AND a.sequence_number >= b.sequence_number",
}


def _check_branches(query: Query) -> list[str]:
    counts = {what: _count(query, sql) for what, sql in _BRANCHES.items()}
    return [f"{count} {what}" for what, count in counts.items() if count]


def _count(query: Query, sql: str) -> int:
    return int(query(f"SELECT count(*) {sql}")[0][0])


def check_file(path: Path, advanced: bool, found: Mapping[str, History]) -> list[str]:
    """What is wrong with a SQLite file, in words."""
    connection = sqlite3.connect(path)
    try:

        def query(sql: str) -> list[Any]:
            return connection.execute(sql).fetchall()

        wrong = [f"SQLite says: {row[0]}" for row in query("PRAGMA integrity_check") if row[0] != "ok"]
        wrong += [f"a row of {row[0]} points to nothing" for row in query("PRAGMA foreign_key_check")]
        return wrong + check_tables(query, advanced, found)
    finally:
        connection.close()


_BY_INDEX = "SET enable_seqscan = off"
_BY_TABLE = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off;"
_BY_TABLE += " SET enable_bitmapscan = off"


def check_postgres(url: str, advanced: bool, found: Mapping[str, History]) -> list[str]:
    """What is wrong in a PostgreSQL, in words."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:

        def query(sql: str) -> list[Any]:
            return connection.execute(sql.encode()).fetchall()

        wrong = check_tables(query, advanced, found)
        sums = []
        for how in (_BY_INDEX, _BY_TABLE):
            connection.execute(how.encode())
            sums += query("SELECT count(*), sum(id) FROM agent_messages WHERE session_id >= ''")
        return wrong + (["the index and the table of the items differ"] if sums[0] != sums[1] else [])


# --- beneath: Redis ---


def check_redis(command: Callable[..., Any], found: Mapping[str, History]) -> list[str]:
    """What is wrong with the keys of a Redis, in words; `command` is that of a `RedisServer`."""
    prefix = "agents:session:"
    keys = set(map(str, command("KEYS", f"{prefix}*")))
    wrong = []
    for key in keys:
        name = key.removeprefix(prefix).removesuffix(":messages").partition("\0")[0]
        if name not in found:
            wrong.append(f"there is a key {key!r} that nobody made")
        elif f"{prefix}{name}" not in keys:
            wrong.append(f"the key {key!r} belongs to no session")
    for name, history in found.items():
        stored = int(command("LLEN", f"{prefix}{name}:messages"))
        if stored != len(history.items):
            wrong.append(f"{name} has {stored} entries, and shows {len(history.items)} items")
    return wrong
