"""The measures of this suite, and how large and how often each is run."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from uuid import uuid4

from recollect.cli.copied_tables import create_tables
from recollect.migrations import migrate
from recollect.moving.copying import copy_database
from recollect.testing.servers.postgres import PostgresServer

from ..harness import Measure, Metric, Sample, Sampler, Suite
from .work import run_import, write_source

OURS, RAW = "recollect", "raw SQLite"
FIRST, AGAIN, BACK = "recollect", "second pass", "back to SQLite"
_RATES = (
    Metric("messages per second", "/s", more_is_better=True),
    Metric("messages per CPU second", "/s", more_is_better=True),
    Metric("peak memory", "B", has_ratio=False),
)
_ROWS = (
    Metric("rows per second", "/s", more_is_better=True),
    Metric("rows per CPU second", "/s", more_is_better=True),
)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory; PostgreSQL makes a folder of its own."""
    size, repeats = (5_000, 1) if quick else (100_000, 3)
    copied = 5_000 if quick else 50_000
    measures = [importing(directory, size, repeats), copying(directory, copied, repeats)]
    return Suite("moving", OURS, (OURS, RAW, AGAIN, BACK), (RAW,), measures)


def importing(directory: Path, size: int, repeats: int) -> Measure:
    """An import of so many messages, each time into a new file, in a process of its own."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        source = directory / f"{size}.jsonl"
        await asyncio.to_thread(write_source, source, size)
        yield {
            OURS: partial(_in_process, "import", directory, source),
            RAW: partial(_in_process, "raw", directory, source),
        }

    what = f"{size:,} messages of 200 characters from JSON Lines into SQLite, without learning"
    return Measure(f"import-{size}", what, _RATES, repeats, open_all, (RAW,), warm_up=False)


async def _in_process(what: str, directory: Path, source: Path) -> Sample:
    target = directory / f"{uuid4().hex}.db"
    command = [sys.executable, "-m", "benchmarks.moving.work", what, str(source), str(target)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    target.unlink()
    figures: dict[str, float] = json.loads(printed)
    return figures


def copying(directory: Path, size: int, repeats: int) -> Measure:
    """A copy to PostgreSQL and back, with all checks. Tables and vector indexes are made outside of it."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        lines, source = directory / "to-copy.jsonl", str(directory / f"{uuid4().hex}.db")
        await asyncio.to_thread(write_source, lines, size)
        await run_import(str(lines), source)
        with PostgresServer() as server:
            yield {
                FIRST: partial(_copy_to_new, source, server),
                AGAIN: partial(_copy_again, source, server),
                BACK: partial(_copy_back, server, directory),
            }

    what = f"a database with {size:,} messages to PostgreSQL, compared by checksums; then again; then back"
    return Measure(f"copy-{size}", what, _ROWS, repeats, open_all, (FIRST,), warm_up=False)


async def _copy_to_new(source: str, server: PostgresServer) -> Sample:
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    await migrate(server.url)
    return await _timed(source, server.url)


async def _copy_again(source: str, server: PostgresServer) -> Sample:
    await create_tables(source, server.url)
    return await _timed(source, server.url)


async def _copy_back(server: PostgresServer, directory: Path) -> Sample:
    target = str(directory / f"{uuid4().hex}.db")
    await create_tables(server.url, target)
    return await _timed(server.url, target)


async def _timed(source: str, target: str) -> Sample:
    started, worked = perf_counter(), process_time()
    report = await copy_database(source, target)
    return {
        "rows per second": report.rows / (perf_counter() - started),
        "rows per CPU second": report.rows / (process_time() - worked),
    }
