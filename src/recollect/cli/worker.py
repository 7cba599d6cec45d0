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
from .output import describe_partial, tell_json
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

    if is_configured(options.config):
        return _configured_plan(options)
    url = options.url or default_url()
    return _Plan(url, options.model or "offline", options.workers or _WORKERS, options.tenant, None)


def _configured_plan(options: argparse.Namespace) -> _Plan:
    settings = configured(options.config, {"RECOLLECT_DATABASE__URL": options.url})
    model = options.model or settings.memory.extractor
    workers = options.workers or settings.memory.workers or _WORKERS
    memory = settings.memory.model_copy(update={"extractor": model, "workers": workers})
    settings = settings.model_copy(update={"memory": memory})
    return _Plan(settings.database.url, model, workers, options.tenant, settings)


async def _run(plan: _Plan, until_idle: bool, say: _Say) -> "Coverage":
    async with AsyncExitStack() as opened:
        store, extractor = await _open(plan, opened)
        await store.coverage()  # what is wrong with the database is told now, and not in a log
        say(f"{plan.workers} workers on {told_url(plan.url)}, model {extractor.model}")
        return await _work(store, until_idle, say)


async def _open(plan: _Plan, opened: AsyncExitStack) -> "tuple[MemoryStore, Extractor]":
    _check_model(plan.model)
    if plan.settings is not None:
        from ..server.learner import open_learner
        from ..server.telemetry.logs import configure_logging

        configure_logging(plan.settings.logging)
        learner = await opened.enter_async_context(open_learner(plan.settings, plan.tenant))
        return learner.store, learner.extractor
    from ..memory.models.named import extractor_named
    from ..memory.store import MemoryStore

    extractor = extractor_named(plan.model)
    opened.push_async_callback(extractor.aclose)
    whose: dict[str, Any] = {"all_tenants": True} if plan.tenant is None else {"tenant": plan.tenant}
    store = MemoryStore(plan.url, extractor=extractor, workers=plan.workers, **whose)
    return await opened.enter_async_context(store), extractor


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
    say(
        f"{now.remembered} conversations remembered, {now.pending} pending, {now.failed} failed"
        f"{describe_partial(now.partial)}"
    )
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


def _check_model(model: str) -> None:
    kind, _, name = model.partition(":")
    if model != "offline" and not (kind in ("openai", "anthropic") and name):
        raise ValueError("--model must be offline, openai:NAME or anthropic:NAME")
