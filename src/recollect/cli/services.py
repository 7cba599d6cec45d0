"""`recollect serve`, `recollect worker` and `recollect mcp`: processes that run until they are stopped."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..extras import require_extra
from .arguments import Commands, add_command, count
from .database import configured, is_configured, told_url
from .output import describe_partial, tell_json

if TYPE_CHECKING:
    from ..memory.pipeline.stages import Extractor
    from ..memory.run import Coverage
    from ..memory.store import MemoryStore
    from ..server.settings import Settings


def add_serve_parser(commands: Commands) -> None:
    """Add the command to the others."""
    serve = add_command(
        commands,
        "serve",
        "serve conversations, memories and chat over HTTP",
        "  recollect serve\n  recollect serve --config recollect.toml --host 0.0.0.0 --port 8765\n",
        run_serve,
    )
    serve.add_argument("--config", type=Path, metavar="FILE", help="a TOML file; else RECOLLECT_CONFIG")
    serve.add_argument("--url", help="a path, or postgresql://user@host/name; else as configured")
    serve.add_argument("--host", help="address to listen on; other than loopback it needs keys")
    serve.add_argument("--port", help="port to listen on; 0 takes a free one")


def run_serve(options: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    require_extra("server", "fastapi", "recollect serve")
    from ..server.transport.runner import serve

    given = {
        "RECOLLECT_DATABASE__URL": options.url,
        "RECOLLECT_SERVER__HOST": options.host,
        "RECOLLECT_SERVER__PORT": options.port,
    }
    return serve(configured(options.config, given))


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
    from ..memory.extraction import build_extractor
    from ..memory.store import MemoryStore

    extractor = build_extractor(plan.model)
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


_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_DEFAULT_TENANT = "default"
_DEFAULT_HOST, _DEFAULT_PORT = "127.0.0.1", 8766
_EXAMPLES = """\
examples:
  recollect mcp --user ada                     for a client that starts it, over standard input and output
  recollect mcp --http                         for clients that reach it at http://127.0.0.1:8766/mcp
  recollect mcp --http --user ada --port 9000  the same, for one user alone
"""


def add_mcp_parser(commands: _Commands) -> None:
    """Add the command to the others."""
    mcp = commands.add_parser(
        "mcp",
        help="give memory to any MCP client: remember, recall, forget, why, list",
        description="Serve memory as tools over the Model Context Protocol. Whose memory it is, is said"
        " here or by the configuration of a client, and never by a model.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mcp.add_argument("--user", help="whose memory it is; else RECOLLECT_USER, or over HTTP a header")
    mcp.add_argument("--agent", help="which agent's; else RECOLLECT_AGENT, a header over HTTP, or assistant")
    mcp.add_argument("--tenant", help="whose data; over HTTP it is the key's (default: default)")
    mcp.add_argument("--url", help="a path, or postgresql://user@host/name; else as configured")
    mcp.add_argument("--config", type=Path, metavar="FILE", help="a TOML file; else RECOLLECT_CONFIG")
    mcp.add_argument("--http", action="store_true", help="serve streamable HTTP")
    mcp.add_argument(
        "--host", help=f"address to listen on; other than loopback it needs keys (default: {_DEFAULT_HOST})"
    )
    mcp.add_argument("--port", type=_port, help=f"port; 0 takes a free one (default: {_DEFAULT_PORT})")
    mcp.set_defaults(run=run_mcp)


def run_mcp(options: argparse.Namespace) -> int:
    """Serve until the client goes away, or a signal comes."""
    _check_together(options)
    require_extra("mcp", "mcp", "recollect mcp")
    asyncio.run(_serve_http(options) if options.http else _serve_stdio(options))
    return 0


async def _serve_stdio(options: argparse.Namespace) -> None:
    from ..mcp.access import PinnedOwner, local_access

    access = local_access(PinnedOwner(*_owner(options)), options.tenant or _DEFAULT_TENANT)
    settings = _settings(options)
    from ..mcp.runner import run_stdio  # heavy, and not needed to say what is wrong with the above

    await run_stdio(settings, access)


async def _serve_http(options: argparse.Namespace) -> None:
    from ..mcp.access import PinnedOwner

    pinned, settings = PinnedOwner(*_owner(options)), _settings(options)
    from ..mcp.runner import run_http

    port = _DEFAULT_PORT if options.port is None else options.port
    await run_http(settings, pinned, options.host or _DEFAULT_HOST, port)


def _settings(options: argparse.Namespace) -> "Settings":
    from .database import configured

    return configured(options.config, {"RECOLLECT_DATABASE__URL": options.url})


def _owner(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """The user and the agent; a variable that is empty says nothing, and an option must say something."""
    user = os.environ.get("RECOLLECT_USER") or None if options.user is None else options.user
    agent = os.environ.get("RECOLLECT_AGENT") or None if options.agent is None else options.agent
    return user, agent


def _check_together(options: argparse.Namespace) -> None:
    if options.http and options.tenant is not None:
        raise ValueError("--tenant is not for --http: there the tenant is the key's")
    if not options.http and (options.host is not None or options.port is not None):
        raise ValueError("--host and --port are for --http")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a whole number from 0 to 65535")
    return int(text)
