"""`recollect worker`: learns from conversations that others have recorded, in a process of its own."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .configuration import configured, is_configured
from .opening import told_url
from .output import tell_json
from .parsing import Commands, add_command, count

if TYPE_CHECKING:
    from ..memory.pipeline.stages import Extractor
    from ..memory.run import Coverage
    from ..memory.store import MemoryStore
    from ..server.settings import Settings

_Say: TypeAlias = Callable[[str], None]
_WORKERS = 4


def add_worker_parser(commands: Commands) -> None:
    """Add the command to the others."""
    worker = add_command(
        commands,
        "worker",
        "learn from conversations that other processes have recorded",
        "  recollect worker postgresql://recollect@db/recollect --workers 8\n"
        "  recollect worker --config recollect.toml --until-idle\n",
    )
    worker.add_argument("url", nargs="?", help="a path, or postgresql://user@host/name; else RECOLLECT_URL")
    worker.add_argument(
        "--config", type=Path, metavar="FILE", help="that of the service; else RECOLLECT_CONFIG"
    )
    worker.add_argument("--workers", type=count, metavar="N", help="users at a time (default: 4)")
    worker.add_argument("--tenant", help="whose work is done (default: everybody's)")
    worker.add_argument("--until-idle", action="store_true", help="end when nothing is pending")
    worker.add_argument("--model", help="offline (default), openai:NAME or anthropic:NAME", metavar="MODEL")
    worker.add_argument("--json", action="store_true", help="tell how it ended as JSON")
    worker.set_defaults(run=run_worker)


def run_worker(options: argparse.Namespace) -> int:
    """Work until a signal comes, or until nothing is pending."""
    say = partial(print, file=sys.stderr if options.json else sys.stdout, flush=True)
    now = asyncio.run(_run(_plan_of(options), options.until_idle, say))
    if options.json:
        tell_json(vars(now))
    return 0


@dataclass(frozen=True)
class _Plan:
    """What is to be done: as the command says, or else as the service is configured."""

    url: str
    model: str
    workers: int
    tenant: str | None
    settings: "Settings | None"
    """`None` where nothing was configured: that takes no more than the base install."""


def _plan_of(options: argparse.Namespace) -> _Plan:
    from ..memory.store.store import default_url

    settings, url, model, workers = None, options.url or default_url(), options.model, options.workers
    if is_configured(options.config):
        settings = configured(options.config, {"RECOLLECT_DATABASE__URL": options.url})
        url = settings.database.url
        model = model or settings.memory.extractor
        workers = workers or settings.memory.workers
    return _Plan(url, model or "offline", workers or _WORKERS, options.tenant, settings)


async def _run(plan: _Plan, until_idle: bool, say: _Say) -> "Coverage":
    extractor = _extractor_of(plan.model)
    try:
        async with AsyncExitStack() as opened:
            store = await opened.enter_async_context(_store(plan, extractor, await _meter(plan, opened)))
            await store.coverage()  # what is wrong with the database is told now, and not in a log
            say(f"{plan.workers} workers on {told_url(plan.url)}, model {extractor.model}")
            return await _work(store, until_idle, say)
    finally:
        await extractor.aclose()


def _store(plan: _Plan, extractor: "Extractor", meter: Any) -> "MemoryStore":
    from ..memory.store import MemoryStore

    options: dict[str, Any] = {"extractor": extractor, "workers": plan.workers, "meter": meter}
    if plan.settings is not None:
        from ..memory.search.embedders.named import embedder_named

        options["embedder"] = embedder_named(plan.settings.memory.embedder)
    if plan.tenant is None:
        return MemoryStore(plan.url, all_tenants=True, **options)
    return MemoryStore(plan.url, tenant=plan.tenant, **options)


async def _meter(plan: _Plan, opened: AsyncExitStack) -> Any:
    """What counts tokens against the budgets of tenants, where a configuration may have given them some."""
    settings = plan.settings
    if settings is None:
        return None
    from ..server.access.budget import Budget, TokenLedger

    ledger = await opened.enter_async_context(TokenLedger(plan.url))
    return Budget(ledger, lambda tenant: settings.limits_for(tenant).tokens_per_day)


async def _work(store: "MemoryStore", until_idle: bool, say: _Say) -> "Coverage":
    stopped = _stopped_by_signal()
    store.start()
    if not until_idle:
        await stopped
        say("stopped: what was being done is given back")
        return await store.coverage()
    idle = asyncio.ensure_future(store.drain())
    waiting: set[asyncio.Future[Any]] = {idle, stopped}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    idle.cancel()
    now = await store.coverage()
    say(f"{now.remembered} conversations remembered, {now.pending} pending, {now.failed} failed")
    return now


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
    from ..memory.models.named import extractor_named

    try:
        return extractor_named(model)
    except ValueError as error:
        raise ValueError("--model must be offline, openai:NAME or anthropic:NAME") from error
