"""What one instance takes: memory, connections and processor time, with one server process and with two."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import asyncpg
import psutil

from ..harness import Measure, Metric, Sample, Sampler
from ..memory.databases import Databases, Kind, MakeDatabase
from .client import Connection, encode
from .contenders import TWO_PROCESSES, WITHOUT_WORKERS
from .load import load_ports
from .processes import serving
from .requests import bodies, listing

_CONNECTIONS = 32
_USERS = 1000
_MOST = 2000.0  # a second: more requests are not made in advance
_METRICS = (
    Metric("conversations", "/s", more_is_better=True),
    Metric("processor for each conversation"),
    Metric("lists", "/s", more_is_better=True),
    Metric("processor for each list"),
    Metric("resident, all processes", "KB", has_ratio=False),
    Metric("database connections", "", has_ratio=False),
)
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def take(databases: Databases, kind: Kind, folder: Path, seconds: float, repeats: int) -> Measure:
    """Save and list conversations, without learning, by 32 connections."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with databases.of_kind(kind) as make:
            processes = {WITHOUT_WORKERS: "0", TWO_PROCESSES: "2"}
            yield {
                name: partial(_sample, make, kind, folder, number, seconds)
                for name, number in processes.items()
            }

    what = "save and list conversations, 32 at once, without learning"
    return Measure(f"capacity-{kind}", what, _METRICS, repeats, open_all, (WITHOUT_WORKERS,), warm_up=False)


async def _sample(make: MakeDatabase, kind: Kind, folder: Path, processes: str, seconds: float) -> Sample:
    place = await make()
    settings = {"memory.workers": "0", "server.workers": processes}
    number = int(_MOST * seconds)
    saved = [encode("POST", "/v1/conversations", body) for body in islice(bodies(1, _USERS), number)]
    listed = [listing(f"user-1-{each % _USERS}") for each in range(number)]
    async with serving(place, folder, settings) as server:
        family = [server.process]
        await _wait_until_complete(server.port, server.process, int(processes), family)
        saving = await _load(server.port, saved, seconds, family)
        listing_ = await _load(server.port, listed, seconds, family)
        return {
            "conversations": saving[0],
            "processor for each conversation": saving[1],
            "lists": listing_[0],
            "processor for each list": listing_[1],
            "resident, all processes": sum(each.memory_info().rss for each in family) / 1000,
            "database connections": 0 if kind == "sqlite" else await _connections(place),
        }


async def _wait_until_complete(
    port: int, process: psutil.Process, processes: int, family: list[psutil.Process]
) -> None:
    """Wait until all server processes serve: the first one says where the service listens."""
    connection = await Connection.open(port)
    try:
        while processes:
            answer = await connection.ask(encode("GET", "/metrics"))
            if b'recollect_server_processes{process="supervisor"} %d' % processes in answer.body:
                break
    finally:
        connection.close()
    family += process.children(recursive=True)


async def _load(
    port: int, requests: list[bytes], seconds: float, family: list[psutil.Process]
) -> tuple[float, float]:
    """Requests a second, and the processor time of each."""
    before = _processor_seconds(family)
    outcome = (await load_ports([port], requests, connections=_CONNECTIONS, seconds=seconds)).check()
    return outcome.rate, (_processor_seconds(family) - before) / len(outcome.latencies)


def _processor_seconds(family: list[psutil.Process]) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in family)


async def _connections(place: str) -> int:
    connection = await asyncpg.connect(place)
    try:
        return int(await connection.fetchval(_OTHERS))
    finally:
        await connection.close()
