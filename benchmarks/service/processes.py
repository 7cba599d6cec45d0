"""Servers in processes of their own, as they are run: `recollect serve`, and what it is compared with."""

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import Popen, TimeoutExpired

import psutil

from recollect.testing.servers.processes import launch

from .client import Connection, encode

_ROOT = Path(__file__).resolve().parents[2]
_LISTENS = re.compile(r"listens on http://127\.0\.0\.1:(\d+)")
_LONGEST_BLOCK = re.compile(rb"^recollect_event_loop_longest_block_seconds(?:\{.*\})? (\S+)$", re.MULTILINE)
_TO_START, _TO_END = 240.0, 60.0  # seconds
_ENV = shutil.which("env") or "/usr/bin/env"
_numbers = count(1)


@dataclass(frozen=True)
class Running:
    """A server that listens."""

    port: int
    process: psutil.Process

    def resident_bytes(self) -> int:
        """How much memory it holds."""
        return int(self.process.memory_info().rss)

    def processor_seconds(self) -> float:
        """How long it has been at work on a processor."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    async def longest_block(self) -> float:
        """Seconds that its event loop has been late at most, as its own metrics tell."""
        connection = await Connection.open(self.port)
        try:
            answer = await connection.ask(encode("GET", "/metrics"))
        finally:
            connection.close()
        found = _LONGEST_BLOCK.findall(answer.body)
        if not found:
            raise AssertionError("the metrics do not tell how late the event loop was")
        return max(map(float, found))


@asynccontextmanager
async def serving(
    place: str, folder: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    """`recollect serve` on a database; settings are by their names, such as `memory.workers`."""
    given = {
        f"RECOLLECT_{name.upper().replace('.', '__')}": value for name, value in (settings or {}).items()
    }
    own = {"RECOLLECT_DATABASE__CREATE_TABLES": "true"}
    command = ["-m", "recollect", "serve", "--url", place, "--port", "0"]
    async with running(command, folder, own | given) as server:
        yield server


@asynccontextmanager
async def running(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    """A server in Python that says where it listens, with its log in a folder. It ends with us."""
    log = folder / f"server-{next(_numbers)}.log"
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(_ROOT))))
    given = [f"{name}={value}" for name, value in {"PYTHONPATH": path, **(environment or {})}.items()]
    command = [_ENV, *given, sys.executable, *arguments]
    process = launch(command, log, on_our_death=signal.SIGTERM)
    try:
        yield Running(await _port_of(process, log), psutil.Process(process.pid))
    finally:
        await _end(process)


async def _port_of(process: "Popen[bytes]", log: Path) -> int:
    async with asyncio.timeout(_TO_START):
        while (port := _port_in(log)) is None:
            if process.poll() is not None:
                raise RuntimeError(f"a server ended with code {process.returncode}: {_end_of(log)}")
            await asyncio.sleep(0.05)
    return port


def _port_in(log: Path) -> int | None:
    found = _LISTENS.search(log.read_text())
    return int(found[1]) if found else None


def _end_of(log: Path) -> str:
    return log.read_text()[-2000:]


async def _end(process: "Popen[bytes]") -> None:
    """Ask it to end, and else make it."""
    process.terminate()
    try:
        await asyncio.to_thread(process.wait, _TO_END)
    except TimeoutExpired:
        process.kill()
        await asyncio.to_thread(process.wait)
