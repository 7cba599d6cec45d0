"""`recollect worker`: learns from conversations that others have recorded, in a process of its own."""

import argparse
import asyncio
import re
import signal
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ..memory.pipeline.stages import Extractor
    from ..memory.store import MemoryStore

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_worker_parser(commands: _Commands) -> None:
    """Add the command to the others."""
    worker = commands.add_parser("worker", help="learn from conversations that other processes have recorded")
    worker.add_argument("url", nargs="?", help="a path, or postgresql://user@host/name; else RECOLLECT_URL")
    worker.add_argument("--workers", type=_count, default=4, metavar="N", help="users at a time (default: 4)")
    worker.add_argument("--tenant", default="default", help="whose work is done (default: default)")
    worker.add_argument("--until-idle", action="store_true", help="end when nothing is pending")
    worker.add_argument(
        "--model", default="offline", help="offline (default), openai:NAME or anthropic:NAME", metavar="MODEL"
    )
    worker.set_defaults(run=run_worker)


def run_worker(options: argparse.Namespace) -> int:
    """Work until a signal comes, or until nothing is pending."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from ..memory.store.store import default_url

    url = options.url or default_url()
    extractor = _extractor_of(options.model)
    try:
        async with _store(url, extractor, options) as store:
            await store.coverage()  # what is wrong with the database is told now, and not in a log
            print(f"{options.workers} workers on {_told(url)}, model {extractor.model}", flush=True)
            await _work(store, options.until_idle)
    finally:
        await extractor.aclose()
    return 0


def _store(url: str, extractor: "Extractor", options: argparse.Namespace) -> "MemoryStore":
    from ..memory.store import MemoryStore

    return MemoryStore(url, extractor=extractor, workers=options.workers, tenant=options.tenant)


async def _work(store: "MemoryStore", until_idle: bool) -> None:
    stopped = _stopped_by_signal()
    store.start()
    if not until_idle:
        await stopped
        print("stopped: what was being done is given back", flush=True)
        return
    idle = asyncio.ensure_future(store.drain())
    waiting: set[asyncio.Future[Any]] = {idle, stopped}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    idle.cancel()
    now = await store.coverage()
    print(
        f"{now.remembered} conversations remembered, {now.pending} pending, {now.failed} failed", flush=True
    )


def _stopped_by_signal() -> "asyncio.Future[None]":
    """Done as soon as the process is asked to end."""
    loop = asyncio.get_running_loop()
    stopped = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            stopped.set_result(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    return stopped


def _extractor_of(model: str) -> "Extractor":
    kind, _, name = model.partition(":")
    if model == "offline":
        from ..memory.offline import OfflineExtractor

        return OfflineExtractor()
    if kind not in ("openai", "anthropic") or not name:
        raise ValueError("--model must be offline, openai:NAME or anthropic:NAME")
    from ..memory import models

    makers: dict[str, Any] = {"openai": models.OpenAIExtractor, "anthropic": models.AnthropicExtractor}
    extractor: Extractor = makers[kind](name)
    return extractor


def _told(url: str) -> str:
    """A URL without its password, and without options, which may hold one too."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1 on")
    return int(text)
