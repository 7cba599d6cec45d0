"""The soak of a service: users come, are recorded, searched, chatted with, exported and erased."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import psutil

from benchmarks.service.contenders import provider_settings
from benchmarks.service.lasting import mixed
from benchmarks.service.load import Outcome, load_ports
from recollect.memory.store import MemoryStore
from recollect.sql.sqlite.wal import LARGEST
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.service import ServiceServer

from ..account import Account
from .databases import Postgres, free_part_of, log_of, size_of, size_without_audit
from .looks import Look, held_by, what_did_not_hold
from .on_sessions import measures_of
from .readers import constant_readers

_STRETCHES = 40
_CONNECTIONS = 8
_LONGEST_STRETCH = 600.0  # seconds
_MOST_DEAD = 0.5  # of the rows, at the end
_UNTIL_VACUUMED = 30.0  # seconds; the server looks every second
_LARGEST_LOG = 2 * LARGEST


class Soak:
    """One service under traffic, stretch by stretch."""

    def __init__(self, account: Account, server: ServiceServer, calls: int) -> None:
        self._account = account
        self._port = int(server.url.rpartition(":")[2])
        self._processes = _services_of_ours()
        self._calls = calls
        self._requests: Iterator[bytes] = mixed()
        self.looks: list[Look] = []

    async def stretch(self, log: int, stored: int) -> None:
        """Send some requests; `log` and `stored` are what the database has before."""
        outcome = await self._send()
        self._account.operations["requests"] += len(outcome.latencies)
        self._account.findings += [f"{count} requests: {fault}" for fault, count in outcome.failures.items()]
        held = held_by(self._processes)
        done = self._account.operations["requests"]
        latency = outcome.percentile(50) if outcome.latencies else 0.0
        self.looks.append(Look(done, latency, held.memory, held.handles, held.threads, log, stored))

    async def _send(self) -> Outcome:
        some = islice(self._requests, self._calls)
        return await load_ports([self._port], some, connections=_CONNECTIONS, seconds=_LONGEST_STRETCH)


@asynccontextmanager
async def _under_traffic(
    account: Account, url: str, folder: Path, operations: int, stretches: int
) -> AsyncIterator[Soak]:
    async with provider_settings(folder) as told:
        chat = {name.removeprefix("chat."): value for name, value in told.items()}
        with ServiceServer(url, {"chat": chat, "database": {"create_tables": True}}) as server:
            yield Soak(account, server, max(operations // stretches, 1))


def _services_of_ours() -> list[psutil.Process]:
    """The services that this process has started, each with its learner below it."""
    return [each for each in psutil.Process().children() if "serve" in each.cmdline()]


async def soak_sqlite(account: Account, folder: Path, operations: int, stretches: int = _STRETCHES) -> None:
    """A service on a SQLite file, which others read all the time."""
    path = str(folder / "service.db")
    async with _under_traffic(account, path, folder, operations, stretches) as soak:
        with constant_readers(path):
            for _ in range(stretches):
                await soak.stretch(log_of(path), size_without_audit(path))
        before = size_of(path)
        await _retire(path)
        free = free_part_of(path)
        await soak.stretch(log_of(path), size_without_audit(path))
        if size_of(path) > 1.1 * before:
            account.findings.append(
                f"what retention freed was not used again: {before:,} -> {size_of(path):,}"
            )
    account.findings += what_did_not_hold(soak.looks, _LARGEST_LOG)
    account.measures |= measures_of(soak.looks) | {"free part after retention": free}


async def soak_postgresql(
    account: Account, folder: Path, operations: int, stretches: int = _STRETCHES
) -> None:
    """A service on a PostgreSQL, which vacuums by itself."""
    with PostgresServer() as server:
        async with _under_traffic(account, server.url, folder, operations, stretches) as soak:
            database = Postgres(server.url)
            for _ in range(stretches):
                await soak.stretch(0, database.size())
            await _retire(server.url)
            await soak.stretch(0, database.size())
            dead = database.dead_part_in_time(_MOST_DEAD, _UNTIL_VACUUMED)
            vacuumed = {"dead rows, part": dead, "vacuums": database.vacuums()}
            vacuumed["connections"] = database.connections()
            database.close()
    account.findings += what_did_not_hold(soak.looks, _LARGEST_LOG)
    if dead > _MOST_DEAD:
        account.findings.append(f"{dead:.0%} of the rows were deleted and not vacuumed")
    account.measures |= measures_of(soak.looks) | vacuumed


async def _retire(url: str) -> None:
    """Erase every conversation there is, as retention does with old ones, while the service runs."""
    async with MemoryStore(url, embedder=None, workers=0) as store:
        while await store.erase_conversations_before(datetime.now(UTC), limit=100):
            continue
