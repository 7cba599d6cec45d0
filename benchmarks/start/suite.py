"""The measures of this suite, and how often each is run."""

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from time import monotonic

import psutil

from recollect import SQLiteSession
from recollect.memory.store import MemoryStore

from ..harness import Measure, Metric, Sampler, Suite
from ..service.processes import Running, running, serving
from .embedding import OURS as OUR_ENCODER
from .embedding import PACKAGE

OURS, BARE, PYTHON = "recollect", "FastAPI", "python -c pass"
_MEGABYTE = 2**20
_IDLE_SECONDS = 3.0
_SERVE = (
    Metric("until ready"),
    Metric("processor until ready"),
    Metric("processes", "", has_ratio=False),
    Metric("resident when idle", "MB"),
)
_COMMAND = (Metric("time"), Metric("processor"))
_EMBED = (
    Metric("load"),
    Metric("resident", "MB"),
    Metric("private", "MB"),
    Metric("texts", "/s", more_is_better=True),
    Metric("question"),
)
_USER = "ada"


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    repeats = 1 if quick else 5
    texts = 128 if quick else 1024
    measures = [_serve(directory, repeats), _commands(directory, repeats), _embed(texts, repeats)]
    return Suite("start", OURS, (OURS, BARE, PACKAGE), (BARE, PACKAGE), measures)


def _serve(directory: Path, repeats: int) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {
            OURS: partial(_start, lambda: serving(str(directory / "served.db"), directory)),
            BARE: partial(_start, lambda: running(["-m", "benchmarks.start.bare_app"], directory)),
        }

    what = "a server from its start until it listens, and its memory when idle, with all its processes"
    return Measure("serve", what, _SERVE, repeats, open_all, (BARE,))


async def _start(launch: Callable[[], AbstractAsyncContextManager[Running]]) -> Mapping[str, float]:
    started = monotonic()
    async with launch() as server:
        ready, processor = monotonic() - started, server.processor_seconds()
        await asyncio.sleep(_IDLE_SECONDS)
        processes = _processes_of(server)
        held = sum(each.memory_info().rss for each in processes)
        return {
            "until ready": ready,
            "processor until ready": processor,
            "processes": len(processes),
            "resident when idle": held / _MEGABYTE,
        }


def _processes_of(server: Running) -> list[psutil.Process]:
    return [server.process, *server.process.children(recursive=True)]


# --- commands ---


def _commands(directory: Path, repeats: int) -> Measure:
    database = str(directory / "commands.db")
    place = ["--url", database]
    commands = {
        "--help": ["--help"],
        "sessions list": ["sessions", "list", *place],
        "memory list": ["memory", "list", *place],
        "recall": ["recall", "pottery", "--user", _USER, *place],
        "doctor": ["doctor", *place],
        "demo": ["demo"],
    }

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        await _fill(database)
        ours = {name: partial(_run, ["-m", "recollect", *words]) for name, words in commands.items()}
        yield {**ours, PYTHON: partial(_run, ["-c", "pass"])}

    what = "commands on a small database, in a new process each"
    return Measure("commands", what, _COMMAND, repeats, open_all, (PYTHON,))


async def _fill(database: str) -> None:
    async with SQLiteSession("chat", database) as session:
        await session.add_items([{"role": "user", "content": "I started a pottery class."}])
    async with MemoryStore(database, workers=0) as store:
        await store.add_entry("assistant", _USER, "event", "The user started a pottery class.")
        await store.embed_pending()


async def _run(arguments: Sequence[str]) -> Mapping[str, float]:
    started, before = monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    await _output_of(arguments)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "time": monotonic() - started,
        "processor": used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime,
    }


async def _output_of(arguments: Sequence[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, env=_environment()
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise AssertionError(f"{' '.join(arguments[:3])} ended with {process.returncode}")
    return output


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root)))}


# --- embedder ---


def _embed(texts: int, repeats: int) -> Measure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        yield {name: partial(_figures, name, texts) for name in (OUR_ENCODER, PACKAGE)}

    what = f"the local embedder in a new process: {texts} passages of our documentation, by processor time"
    return Measure("embedder", what, _EMBED, repeats, open_all, (PACKAGE,))


async def _figures(name: str, texts: int) -> Mapping[str, float]:
    found = json.loads(await _output_of(["-m", "benchmarks.start.embedding", name, str(texts)]))
    return found | {key: found[key] / _MEGABYTE for key in ("resident", "private")}
