"""Sessions of the Agents SDK: SQLite files, PostgreSQL databases and Redis, with branches, usage and times.

Encrypted sessions need no key: their items are taken over as they are, under the same session ids, and the
same key opens them.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ImportFormatError, RecollectError
from ...extras import require_extra
from ...items import decode_item
from ...sql.urls import sqlite_path
from ..copying.ends import TableInfo, open_end
from ..kinds import ReadOptions
from ..records import Record, Skipped

_SESSIONS, _MESSAGES = "agent_sessions", "agent_messages"
_STRUCTURE, _USAGE, _METADATA = "message_structure", "turn_usage", "recollect_agent_sessions_metadata"
_PAGE = 1000  # items
_ITEMS = (
    f'SELECT id, message_data, created_at FROM "{_MESSAGES}"'
    f" WHERE session_id = ?1 AND id > ?2 ORDER BY id LIMIT {_PAGE}"
)
_SCHEMES = ("redis://", "rediss://", "unix://")
_PREFIX = "agents:session"
_DETAILS = ("input_tokens_details", "output_tokens_details")


def open_source(source: str, _: ReadOptions) -> AsyncIterator[Record | Skipped]:
    """Read all sessions of a database."""
    if source.startswith(_SCHEMES):
        return _read_redis(source)
    path = sqlite_path(source)
    if path is not None and not Path(path).is_file():
        raise FileNotFoundError(2, "No such file or directory", path)
    return _read_sql(source)


# --- SQL ---


async def _read_sql(source: str) -> AsyncIterator[Record | Skipped]:
    try:
        async with open_end(source, to_write=False) as end:
            tables = await end.tables()
            if _SESSIONS not in tables or _MESSAGES not in tables:
                raise ImportFormatError(
                    f"there are no sessions of the Agents SDK: no tables {_SESSIONS} and {_MESSAGES}"
                )
            last = None
            while page := await end.page(tables[_SESSIONS], last, _PAGE):
                for row in page:
                    session = dict(zip(tables[_SESSIONS].columns, row, strict=True))
                    async for record in _session(end, tables, session):
                        yield record
                last = (dict(zip(tables[_SESSIONS].columns, page[-1], strict=True))["session_id"],)
    except RecollectError:
        raise
    except Exception as error:  # drivers raise errors of their own for a damaged file
        if type(error).__module__ in ("sqlite3",):
            raise ImportFormatError(
                f"not a file of the Agents SDK that can be read ({type(error).__name__})"
            ) from error
        raise


async def _session(
    end: Any, tables: Mapping[str, TableInfo], session: Mapping[str, Any]
) -> AsyncIterator[Record | Skipped]:
    session_id = session["session_id"]
    where = f"session {str(session_id)[:80]!r}"
    if not isinstance(session_id, str) or not session_id:
        yield Skipped("a session", "its id is not a text")
        return
    heading: dict[str, Any] = {
        "session_id": session_id,
        "created_at": _utc(session.get("created_at")),
        "updated_at": _utc(session.get("updated_at")),
        "usage": [_usage(row) for row in await _rows(end, tables, _USAGE, session_id, "user_turn_number")],
        **await _owner(end, tables, session_id),
    }
    structure = await _rows(end, tables, _STRUCTURE, session_id, "id")
    names = {row["branch_id"]: row["created_at"] for row in reversed(structure) if row["branch_id"] != "main"}
    heading["branches"] = [
        {"branch_id": name, "created_at": _utc(created)} for name, created in sorted(names.items())
    ]
    places: dict[Any, list[dict[str, Any]]] = {}
    for row in structure:
        row["item_id"], row["created_at"] = row.pop("message_id"), _utc(row["created_at"])
        places.setdefault(row["item_id"], []).append(row)
    last, is_first = 0, True
    while True:
        page = await end.query(_ITEMS, (session_id, last))
        if not page and not is_first:
            return
        data: dict[str, Any] = {"items": [], "ids": [], "times": [], "structure": []}
        for row_id, stored, created in page:
            item = decode_item(stored)
            if item is None:
                yield Skipped(f"{where}, item {row_id}", "it is not a JSON object")
                continue
            data["items"].append(item)
            data["ids"].append(row_id)
            data["times"].append(_utc(created))
            data["structure"] += places.get(row_id, ())
        yield Record(
            "sessions" if is_first else "items",
            {"session_id": session_id, **(heading if is_first else {}), **data},
            where,
        )
        if len(page) < _PAGE:
            return
        last, is_first = page[-1][0], False


async def _rows(
    end: Any, tables: Mapping[str, TableInfo], name: str, session_id: str, order: str
) -> list[dict[str, Any]]:
    if name not in tables:
        return []
    columns = [column for column in tables[name].columns if column not in ("id", "session_id")]
    sql = f'SELECT {", ".join(columns)} FROM "{name}" WHERE session_id = ?1 ORDER BY {order}'
    return [dict(zip(columns, row, strict=True)) for row in await end.query(sql, (session_id,))]


async def _owner(end: Any, tables: Mapping[str, TableInfo], session_id: str) -> dict[str, Any]:
    """The owner of a session that Recollect wrote beside the tables of the SDK."""
    rows = await _rows(end, tables, _METADATA, session_id, "session_id")
    if not rows:
        return {}
    data = rows[0].get("data")
    return {**rows[0], "data": json.loads(data) if isinstance(data, str) else data or {}}


def _usage(row: dict[str, Any]) -> dict[str, Any]:
    details = {
        name: json.loads(row[name]) if isinstance(row.get(name), str) else row.get(name) for name in _DETAILS
    }
    counts = {
        name: value or 0
        for name, value in row.items()
        if name in ("requests", "input_tokens", "output_tokens", "total_tokens", "user_turn_number")
    }
    return {"branch_id": row["branch_id"], **counts, **details, "created_at": _utc(row.get("created_at"))}


def _utc(stored: Any) -> str | None:
    """A time of the SDK: in UTC without a zone."""
    return None if stored is None else f"{str(stored).replace(' ', 'T')}+00:00"


# --- Redis ---


async def _read_redis(source: str) -> AsyncIterator[Record | Skipped]:
    require_extra("redis", "redis.asyncio", "sessions on Redis")
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    client: Any = Redis.from_url(source)
    try:
        async for key in client.scan_iter(match=f"{_PREFIX}:*:messages", count=500):
            session_id = key.decode("utf-8", "replace").removeprefix(f"{_PREFIX}:").removesuffix(":messages")
            async for record in _redis_session(client, session_id, key):
                yield record
    except RedisError as error:
        raise ImportFormatError(f"Redis cannot be read ({type(error).__name__})") from error
    finally:
        await client.aclose()


async def _redis_session(client: Any, session_id: str, key: bytes) -> AsyncIterator[Record | Skipped]:
    where = f"session {session_id[:80]!r}"
    about = {
        name.decode(): value.decode("utf-8", "replace")
        for name, value in (await client.hgetall(f"{_PREFIX}:{session_id}")).items()
    }
    heading = {name: _seconds(about.get(name)) for name in ("created_at", "updated_at")}
    start, is_first = 0, True
    while stored := await client.lrange(key, start, start + _PAGE - 1):
        items: list[Any] = []
        for place, text in enumerate(stored, start):
            item = decode_item(text)
            if item is None:
                yield Skipped(f"{where}, item {place}", "it is not a JSON object")
            else:
                items.append(item)
        times: Sequence[Any] = [heading["created_at"]] * len(items)
        data = {"session_id": session_id, "items": items, "times": times}
        yield Record("sessions" if is_first else "items", {**(heading if is_first else {}), **data}, where)
        start, is_first = start + _PAGE, False


def _seconds(stored: str | None) -> str | None:
    """A time of Redis sessions: seconds since 1970, as a text."""
    from ..chats import time_of

    try:
        return None if stored is None else time_of(float(stored))
    except ValueError:
        return None
