"""What the doctor finds out about what works on a database: keys, learning and vectors."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Set
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..database import file_of
from ..output import describe_partial, plural
from .database import Finding, existing, guarded, known_steps, steps_in

if TYPE_CHECKING:
    from ...memory.search.embedders import Embedder
    from ...server.settings import Settings

_LONG_WAIT = 600.0  # seconds that something to learn from may wait before somebody should look
_LOOK_FOR_CORRUPT = 10.0  # seconds: a large database is not read to its end
_OPEN = "none: the service is open to this machine"


async def look_at_memory(url: str, settings: "Settings | None", embedder: "Embedder | None") -> list[Finding]:
    """How memory is. Of a file, only tables that are there are looked at: nothing is made by looking."""
    try:
        taken = _steps(url)
    except sqlite3.Error as error:
        return [Finding("learning", "wrong", f"cannot be looked at: {error}", "ask again")]
    findings = [_not_looked_at("keys")]
    if not _is_behind(taken, "service"):
        findings = [await guarded("keys", lambda: _keys(url, settings, "service" in taken))]
    if "memory" not in taken:
        return [*findings, Finding("learning", "off", "there is nothing to learn from")]
    if _is_behind(taken, "memory"):
        return [*findings, _not_looked_at("learning")]
    findings.append(await guarded("learning", lambda: _learning(url)))
    findings.append(await guarded("rows", lambda: _rows(url), 2 * _LOOK_FOR_CORRUPT))
    if embedder is not None:
        findings.append(await guarded("vectors", lambda: _vectors(url, embedder)))
    return findings


def _steps(url: str) -> Mapping[str, Set[str]]:
    path = file_of(url)
    if path is None:
        return {scope: set(steps) for scope, steps in known_steps().items()}  # migrations take all of them
    if not path.exists():
        return {}
    with closing(existing(path)) as held:
        return steps_in(held)


def _is_behind(taken: Mapping[str, Set[str]], scope: str) -> bool:
    """Whether tables are of an older version: whoever opens them brings them up to this one."""
    return scope in taken and not taken[scope] >= set(known_steps()[scope])


def _not_looked_at(name: str) -> Finding:
    told = "not looked at: that would change the tables, which are of an older version"
    return Finding(name, "off", told, "they are brought up to this one when it is next opened")


async def _keys(url: str, settings: "Settings | None", is_there: bool) -> Finding:
    from ...server.access.keys import KeyStore
    from ...server.transport.listener import is_loopback

    valid = 0
    if is_there:
        async with KeyStore(url) as keys:
            valid = sum(key.is_valid(datetime.now(UTC)) for key in await keys.list())
    if valid:
        return Finding("keys", "ok", f"{plural(valid, 'valid key')}")
    host = "127.0.0.1" if settings is None else settings.server.host
    if is_loopback(host):
        return Finding("keys", "off", _OPEN)
    fix = "make one: recollect keys create --tenant NAME --scope admin"
    return Finding("keys", "wrong", f"none, and the service is to listen on {host}", fix)


async def _learning(url: str) -> Finding:
    from ...memory.store import MemoryStore

    async with MemoryStore(url, workers=0, embedder=None, all_tenants=True) as store:
        now = await store.coverage()
        waited = await store.monitor.seconds_behind()
    remembered = plural(now.remembered, "conversation")
    partial = describe_partial(now.partial)
    told = f"{remembered} remembered, {now.pending:,} pending, {now.failed:,} failed{partial}"
    return learning_finding(told, now.failed, waited)


def learning_finding(told: str, failed: int, waited: float) -> Finding:
    """How learning goes: what failed, and how many seconds the oldest of the rest has waited for a worker."""
    if waited > _LONG_WAIT:
        told += f"; the oldest has waited for {waited / 60:,.0f} minutes"
        return Finding(
            "learning", "warning", told, "nobody learns: start recollect serve or recollect worker"
        )
    if failed:
        return Finding("learning", "warning", told, "see why: recollect runs list --status failed")
    return Finding("learning", "ok", told)


async def _rows(url: str) -> Finding:
    """How many rows of memory are corrupt, as far as can be found in a few seconds."""
    from ...memory.database.access import MemoryDatabase
    from ...memory.database.repair import find_corrupt_rows

    counts: Counter[str] = Counter()
    is_whole = True
    async with MemoryDatabase(url) as database:
        try:
            async with asyncio.timeout(_LOOK_FOR_CORRUPT):
                async for row in find_corrupt_rows(database):
                    counts[row.table] += 1
        except TimeoutError:
            is_whole = False
    return rows_finding(counts, is_whole)


def rows_finding(counts: Mapping[str, int], is_whole: bool) -> Finding:
    """How many corrupt rows there are, by their tables; not whole if there was no time to read all rows."""
    looked = "" if is_whole else "; there was no time to look at all rows"
    if not counts:
        return Finding("rows", "ok", f"no corrupt rows of memory{looked}")
    told = ", ".join(f"{count:,} in {table}" for table, count in sorted(counts.items()))
    fix = "list them: recollect repair --dry-run; repair them: recollect repair"
    return Finding("rows", "warning", f"{plural(sum(counts.values()), 'corrupt row')}: {told}{looked}", fix)


async def _vectors(url: str, embedder: "Embedder") -> Finding:
    """Whether what is stored has vectors of the embedder that is configured, in all tenants."""
    from ...memory.database.access import MemoryDatabase
    from ...memory.database.schema import EMBEDDERS
    from ...memory.database.vectors import Vectors, model_of

    model = model_of(embedder)
    async with MemoryDatabase(url) as database:
        others = await database.fetch(
            f"SELECT DISTINCT vector_model FROM {EMBEDDERS.name} WHERE vector_model <> ?1",
            (model,),
            lambda rows: sorted(str(name) for (name,) in rows),
        )
        vectors = Vectors(database)
        tenants = await vectors.tenants_pending(model)
        missing = sum([await vectors.of(tenant).count_pending(model) for tenant in tenants])
    return vectors_finding(model, others, missing)


def vectors_finding(model: str, others: Collection[str], missing: int) -> Finding:
    """How many texts have no vector of a model, and which other models theirs may be of."""
    if not missing:
        return Finding("vectors", "ok", f"all texts have one of {model}")
    told = f"{plural(missing, 'text')} without one of {model}"
    if others:
        told += f"; there are some of {', '.join(others)}, which are not compared with it"
    fix = "recollect serve or recollect worker make them; until then these are found by words"
    return Finding("vectors", "warning", told, fix)
