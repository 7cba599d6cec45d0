"""The measures of this suite, and how large and how often each is run."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from ..harness import Measure, Metric, Overhead, Sample, Sampler, Suite
from ..service.client import Connection, encode
from ..service.lasting import growth, slope, watch_memory
from ..service.load import load_ports
from ..service.processes import Running
from .calls import DIRECT, PROXIED, calls
from .servers import Servers, servers

OURS = "proxy, user named"
NOBODY = "proxy, nobody named"
PROVIDER = "no proxy"
_RATE = 50.0  # a second
_CONNECTIONS = 32
_MEGABYTE = 1024 * 1024
_LATENCY = (
    Metric("p50"),
    Metric("p99"),
    Overhead("added p50", of="p50", over=PROVIDER),
    Overhead("added p99", of="p99", over=PROVIDER),
    Metric("processor for each", has_ratio=False),
    Metric("without memories", "%", has_ratio=False),
)
_MEMORY = (
    Metric("growth", "MB", has_ratio=False),
    Metric("slope", "MB/1000", has_ratio=False),
    Metric("held after the start", "MB", has_ratio=False),
    Metric("held at the end", "MB", has_ratio=False),
    Metric("requests", "", has_ratio=False),
    Metric("refused or broken", "", has_ratio=False),
)
_seeds = count(10)


@dataclass(frozen=True)
class Scale:
    """Lengths in seconds, and how often things are repeated."""

    seconds: float
    repeats: int
    requests: int
    start: int
    """Requests in which memory may grow: caches fill."""


FULL = Scale(seconds=20, repeats=5, requests=12_000, start=2_000)
QUICK = Scale(seconds=4, repeats=2, requests=400, start=100)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    scale = QUICK if quick else FULL
    measures = [
        _latency("whole", directory, scale, stream=False),
        _latency("streamed", directory, scale, stream=True),
        _lasting(directory, scale),
    ]
    return Suite("proxy", OURS, (OURS, NOBODY, PROVIDER), (PROVIDER,), measures)


def _latency(name: str, folder: Path, scale: Scale, *, stream: bool) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with servers(folder) as both:
            sample = partial(_sample, both, scale.seconds, stream)
            yield {
                PROVIDER: partial(sample, both.provider, DIRECT, named=False),
                NOBODY: partial(sample, both.proxy, PROXIED, named=False),
                OURS: partial(sample, both.proxy, PROXIED, named=True),
            }

    what = f"{name} chat completions of a provider on loopback at {_RATE:.0f} a second"
    return Measure(f"latency-{name}", what, _LATENCY, scale.repeats, open_all, (PROVIDER,))


async def _sample(
    both: Servers, seconds: float, stream: bool, target: Running, path: str, *, named: bool
) -> Sample:
    requests = calls(path, next(_seeds), named=named, stream=stream)
    states, worked = await _memory_states(both.proxy), both.proxy.processor_seconds()
    outcome = await load_ports([target.port], requests, connections=_CONNECTIONS, seconds=seconds, rate=_RATE)
    outcome.check()
    changed = await _memory_states(both.proxy) - states
    count = len(outcome.latencies)
    return {
        "p50": outcome.percentile(50),
        "p99": outcome.percentile(99),
        "processor for each": (both.proxy.processor_seconds() - worked) / count,
        "without memories": 100 * (changed["slow"] + changed["failed"]) / count,
    }


async def _memory_states(proxy: Running) -> Counter[str]:
    """How many calls had which memories so far, as the metrics of the service tell."""
    connection = await Connection.open(proxy.port)
    answer = await connection.ask(encode("GET", "/metrics"))
    connection.close()
    lines = (
        line.split() for line in answer.body.decode().splitlines() if "recollect_proxy_calls_total{" in line
    )
    return Counter({line[0].split('"')[1]: int(float(line[1])) for line in lines})


def _lasting(folder: Path, scale: Scale) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with servers(folder) as both:
            yield {OURS: partial(_last, both, scale)}

    what = f"memory of the service over {scale.requests:,} calls at {_RATE:.0f} a second"
    return Measure("lasting", what, _MEMORY, 1, open_all, (OURS,), warm_up=False)


async def _last(both: Servers, scale: Scale) -> Sample:
    seconds, start = scale.requests / _RATE, scale.start / _RATE
    watching = asyncio.create_task(watch_memory(both.proxy, seconds, 1.0))
    outcome = await load_ports(
        [both.proxy.port], _mixed(), connections=_CONNECTIONS, seconds=seconds, rate=_RATE
    )
    held = [each for each in await watching if each.at >= start]
    return {
        "growth": growth(held) / _MEGABYTE,
        "slope": slope(held) / _RATE * 1000 / _MEGABYTE,
        "held after the start": held[0].size / _MEGABYTE,
        "held at the end": held[-1].size / _MEGABYTE,
        "requests": float(len(outcome.latencies)),
        "refused or broken": float(outcome.failures.total() + outcome.unsent),
    }


def _mixed() -> Iterator[bytes]:
    """Calls with and without a user, whole and streamed, in turn."""
    kinds = [
        calls(PROXIED, next(_seeds), named=named, stream=stream)
        for named in (True, False)
        for stream in (True, False)
    ]
    while True:
        for kind in kinds:
            yield next(kind)
