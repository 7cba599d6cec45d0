"""Checks of database servers."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from ..database import hide_credentials
from .database import Finding, run_check

_SOME_SKEW = 5.0  # seconds by which two clocks may differ
_EVICTION_POLICIES = (
    "allkeys",
    "volatile",
)  # eviction policies with which Redis deletes data when memory is full


async def check_server(url: str) -> list[Finding]:
    """Check that a server is reachable, migrated and durable, and that its clock agrees with ours."""
    if url.startswith("postgres"):
        found = await run_check("database", lambda: _migrated(url))
        return [found] if found.state == "wrong" else [found, await run_check("clocks", lambda: _clocks(url))]
    found = await run_check("database", lambda: _listed(url))
    if found.state == "wrong" or not url.startswith(("redis://", "rediss://", "unix://")):
        return [found]
    return [found, await run_check("persistence", lambda: _persistence(url))]


async def _migrated(url: str) -> Finding:
    from ...sql.schema import VERSIONS
    from ...sql.sqlalchemy.revisions import current_revision, has_pgvector, in_transaction

    current, newest = await current_revision(url), VERSIONS[-1]
    where = hide_credentials(url)
    if current == newest:
        return Finding("database", "ok", f"{where} is reachable, at revision {current}")
    if current is None and not await in_transaction(url, has_pgvector):
        fix = "install pgvector on the server, then run `recollect migrate`; sessions need neither"
        return Finding("database", "wrong", f"{where} has no tables yet, and no extension pgvector", fix)
    if current is None:
        return Finding("database", "wrong", f"{where} has no tables yet", "run `recollect migrate`")
    reported = f"{where} is at revision {current}, not {newest}"
    if current in VERSIONS:
        return Finding("database", "wrong", reported, "run `recollect migrate`")
    fix = "use the version of recollect that migrated it or a newer one"
    return Finding("database", "wrong", f"{reported}, the newest that this version knows", fix)


async def _listed(url: str) -> Finding:
    from ...sessions.manager import SessionManager

    with closing(SessionManager(url)) as manager:
        await manager.list_sessions(limit=1)
    return Finding("database", "ok", f"{hide_credentials(url)} is reachable, for sessions")


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
    """Compare the server's clock with ours, which was read before and after."""
    apart = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    if apart > _SOME_SKEW:
        reported = f"the server's clock and the local clock differ by {apart:,.0f} seconds"
        return Finding(
            "clocks",
            "warning",
            reported,
            "synchronize both with NTP: Recollect compares times of several machines",
        )
    return Finding("clocks", "ok", "the server's clock agrees with the local clock")


# --- Redis ---


async def _persistence(url: str) -> Finding:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    async with Redis.from_url(url) as client:
        try:
            reported = await client.info()
        except RedisError:
            return Finding(
                "persistence",
                "warning",
                "the server does not report its persistence settings",
                "allow the INFO command",
            )
    return persistence_finding(reported)


def persistence_finding(reported: Mapping[str, Any]) -> Finding:
    """Judge from `INFO` whether Redis keeps acknowledged writes."""
    if str(reported.get("maxmemory_policy", "")).startswith(_EVICTION_POLICIES) and reported.get("maxmemory"):
        fix = "set maxmemory-policy to noeviction"
        return Finding("persistence", "warning", "Redis deletes sessions when its memory is full", fix)
    if not reported.get("aof_enabled"):
        fix = "set appendonly to yes; set appendfsync to always to lose no write"
        return Finding("persistence", "warning", "acknowledged writes can be lost when Redis stops", fix)
    return Finding("persistence", "ok", "Redis writes an append-only file")
