"""Checks of the tables of memory and of the service: API keys, learning, corrupt rows, vectors."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Set
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..database import sqlite_file
from ..output import describe_partial, plural
from .database import Finding, connect_existing, known_steps, read_applied_steps, run_check

if TYPE_CHECKING:
    from ...memory.search.embedders import Embedder
    from ...server.settings import Settings

_LONG_WAIT = 600.0  # seconds a run may wait for a worker before the doctor warns
_CORRUPT_ROWS_TIMEOUT = 10.0  # seconds; a large database is not read completely
_OPEN = "none; every process on this machine can read and write"


async def check_memory(url: str, settings: "Settings | None", embedder: "Embedder | None") -> list[Finding]:
    """Check the tables. Missing tables of a file are skipped: a check creates nothing."""
    try:
        applied = _steps(url)
    except sqlite3.Error as error:
        return [Finding("learning", "wrong", f"cannot be read: {error}", "run the doctor again")]
    findings = [_not_checked("keys")]
    if not _is_behind(applied, "service"):
        findings = [await run_check("keys", lambda: _keys(url, settings, "service" in applied))]
    if "memory" not in applied:
        return [*findings, Finding("learning", "off", "no conversations yet")]
    if _is_behind(applied, "memory"):
        return [*findings, _not_checked("learning")]
    findings.append(await run_check("learning", lambda: _learning(url)))
    findings.append(await run_check("rows", lambda: _rows(url), 2 * _CORRUPT_ROWS_TIMEOUT))
    if embedder is not None:
        findings.append(await run_check("vectors", lambda: _vectors(url, embedder)))
    return findings


def _steps(url: str) -> Mapping[str, Set[str]]:
    path = sqlite_file(url)
    if path is None:
        return {
            scope: set(steps) for scope, steps in known_steps().items()
        }  # a migrated server has all steps
    if not path.exists():
        return {}
    with closing(connect_existing(path)) as connection:
        return read_applied_steps(connection)


def _is_behind(applied: Mapping[str, Set[str]], scope: str) -> bool:
    """Whether the tables have an older version. Opening them would migrate them."""
    return scope in applied and not applied[scope] >= set(known_steps()[scope])


def _not_checked(name: str) -> Finding:
    text = "not checked: the tables have an older version, and opening them would migrate them"
    return Finding(name, "off", text, "they migrate when the database is next opened")


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
    fix = "create one: recollect keys create --tenant NAME --scope admin"
    return Finding("keys", "wrong", f"none, but the service is configured to listen on {host}", fix)


async def _learning(url: str) -> Finding:
    from ...memory.store import MemoryStore

    async with MemoryStore(url, workers=0, embedder=None, all_tenants=True) as store:
        now = await store.coverage()
        waited = await store.monitor.seconds_behind()
    remembered = plural(now.remembered, "conversation")
    partial = describe_partial(now.partial)
    text = f"{remembered} remembered, {now.pending:,} pending, {now.failed:,} failed{partial}"
    return learning_finding(text, now.failed, waited)


def learning_finding(text: str, failed: int, waited: float) -> Finding:
    """Judge learning by the failed runs and the seconds that the oldest pending run has waited."""
    if 1 <= waited <= _LONG_WAIT:
        text += f", {waited:,.0f} s behind"
    if waited > _LONG_WAIT:
        text += f"; the oldest has waited {waited / 60:,.0f} minutes"
        return Finding(
            "learning", "warning", text, "no worker is running: start recollect serve or recollect worker"
        )
    if failed:
        return Finding("learning", "warning", text, "see why: recollect runs list --status failed")
    return Finding("learning", "ok", text)


async def _rows(url: str) -> Finding:
    """Count corrupt rows of memory, within a few seconds."""
    from ...memory.database.access import MemoryDatabase
    from ...memory.database.repair import find_corrupt_rows

    counts: Counter[str] = Counter()
    is_whole = True
    async with MemoryDatabase(url) as database:
        try:
            async with asyncio.timeout(_CORRUPT_ROWS_TIMEOUT):
                async for row in find_corrupt_rows(database):
                    counts[row.table] += 1
        except TimeoutError:
            is_whole = False
    return rows_finding(counts, is_whole)


def rows_finding(counts: Mapping[str, int], is_whole: bool) -> Finding:
    """Report corrupt rows by table. `is_whole` says whether all rows were read."""
    incomplete = "" if is_whole else "; not all rows were checked, for lack of time"
    if not counts:
        return Finding("rows", "ok", f"no corrupt rows{incomplete}")
    text = ", ".join(f"{count:,} in {table}" for table, count in sorted(counts.items()))
    fix = "list them: recollect repair --dry-run; repair them: recollect repair"
    return Finding(
        "rows", "warning", f"{plural(sum(counts.values()), 'corrupt row')}: {text}{incomplete}", fix
    )


async def _vectors(url: str, embedder: "Embedder") -> Finding:
    """Count texts of all tenants without a vector of the configured embedder."""
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
    """Report texts without a vector of a model, and the other models that have vectors."""
    if not missing:
        return Finding("vectors", "ok", f"all texts have a vector of {model}")
    text = f"{plural(missing, 'text')} without a vector of {model}"
    if others:
        text += f"; vectors of {', '.join(others)} exist, but cannot be compared with it"
    fix = (
        "recollect serve or recollect worker creates them; until then, search finds these texts by words only"
    )
    return Finding("vectors", "warning", text, fix)
