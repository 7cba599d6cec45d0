"""What the doctor finds out about database servers."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from ..database import told_url
from .database import Finding, guarded

_SOME_SKEW = 5.0  # seconds by which two clocks may differ
_LOSING_POLICIES = ("allkeys", "volatile")  # of a Redis that makes room by deleting what it was given


async def look_at_server(url: str) -> list[Finding]:
    """How a server is: reachable, migrated, at the same time as we are, and keeping what it is given."""
    if url.startswith("postgres"):
        found = await guarded("database", lambda: _migrated(url))
        return [found] if found.state == "wrong" else [found, await guarded("clocks", lambda: _clocks(url))]
    found = await guarded("database", lambda: _listed(url))
    if found.state == "wrong" or not url.startswith(("redis://", "rediss://", "unix://")):
        return [found]
    return [found, await guarded("persistence", lambda: _persistence(url))]


async def _migrated(url: str) -> Finding:
    from ...migrations import current_revision, known_revisions, newest_revision

    current, newest = await current_revision(url), newest_revision()
    where = told_url(url)
    if current == newest:
        return Finding("database", "ok", f"{where} is reachable, at revision {current}")
    if current is None:
        return Finding("database", "wrong", f"{where} has no tables yet", "run `recollect migrate`")
    told = f"{where} is at revision {current}, not {newest}"
    if current in known_revisions():
        return Finding("database", "wrong", told, "run `recollect migrate`")
    fix = "use the version of recollect that migrated it, or a newer one"
    return Finding("database", "wrong", f"{told}, which is the newest that this version knows", fix)


async def _listed(url: str) -> Finding:
    from ...sessions.manager import SessionManager

    with closing(SessionManager(url)) as manager:
        await manager.list_sessions(limit=1)
    return Finding("database", "ok", f"{told_url(url)} is reachable, for sessions")


# --- clocks ---


async def _clocks(url: str) -> Finding:
    from ...memory.database.access import MemoryDatabase

    async with MemoryDatabase(url) as database:
        await database.prepared()
        before = datetime.now(UTC)
        theirs: datetime = await database.fetch("SELECT clock_timestamp()", (), lambda rows: rows[0][0])
        after = datetime.now(UTC)
    return clocks_finding(before, theirs, after)


def clocks_finding(before: datetime, theirs: datetime, after: datetime) -> Finding:
    """How far the server's clock is from ours, which was looked at before it and after it."""
    apart = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if apart > _SOME_SKEW:
        told = f"the server's clock and ours are {apart:,.0f} seconds apart"
        return Finding("clocks", "warning", told, "set both by NTP: times of several machines are compared")
    return Finding("clocks", "ok", "the server's clock says the same as ours")


# --- Redis ---


async def _persistence(url: str) -> Finding:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    async with Redis.from_url(url) as client:
        try:
            told = await client.info()
        except RedisError:
            return Finding("persistence", "warning", "it does not tell how it keeps data", "allow INFO")
    return persistence_finding(told)


def persistence_finding(told: Mapping[str, Any]) -> Finding:
    """Whether a Redis keeps what it acknowledged, by what its `INFO` tells."""
    if str(told.get("maxmemory_policy", "")).startswith(_LOSING_POLICIES) and told.get("maxmemory"):
        fix = "set maxmemory-policy to noeviction"
        return Finding("persistence", "warning", "it deletes sessions when its memory is full", fix)
    if not told.get("aof_enabled"):
        fix = "set appendonly to yes, and appendfsync to always to lose nothing at all"
        return Finding("persistence", "warning", "what it acknowledged may be gone when it ends", fix)
    return Finding("persistence", "ok", "it keeps an append-only file")
