"""`recollect serve`, `recollect worker` and `recollect mcp`: processes that run until they are stopped."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import RecollectError
from ..extras import require_extra
from ..service_client import is_service_url
from ..threads import switch_threads_often
from .arguments import Commands, add_command, count
from .database import (
    check_folder,
    hide_credentials,
    is_configured,
    load_configuration,
    resolve_existing_url,
)
from .mcp_clients.command import add_install_parser
from .output import describe_partial, print_json

if TYPE_CHECKING:
    from ..memory.pipeline.stages import Extractor
    from ..memory.run import Coverage
    from ..memory.store import MemoryStore
    from ..server.settings import Settings


def add_serve_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    serve = add_command(
        commands,
        "serve",
        "serve conversations, memories and chat over HTTP",
        "  recollect serve\n  recollect serve --workers 4\n"
        "  recollect serve --config recollect.toml --host 0.0.0.0 --port 8765\n",
        run_serve,
    )
    serve.add_argument("--config", type=Path, metavar="FILE", help="a TOML file (default: RECOLLECT_CONFIG)")
    serve.add_argument("--url", help="a path or postgresql://user@host/name (default: as configured)")
    serve.add_argument("--host", help="address to listen on; a non-loopback address needs API keys")
    serve.add_argument("--port", help="port to listen on; 0 picks a free port")
    serve.add_argument(
        "--workers",
        metavar="N",
        help="number of server processes, kept running by a supervisor (default: one, without a supervisor)",
    )


def run_serve(options: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    require_extra("server", "fastapi", "recollect serve")
    given = {
        "RECOLLECT_DATABASE__URL": options.url,
        "RECOLLECT_SERVER__HOST": options.host,
        "RECOLLECT_SERVER__PORT": options.port,
        "RECOLLECT_SERVER__WORKERS": options.workers,
    }
    settings = load_configuration(options.config, given)
    check_folder(settings.database.url)
    if settings.server.workers:
        return _supervise(options.config, given)
    from ..server.transport.runner import serve

    return serve(settings)


def _supervise(config: Path | None, given: Mapping[str, str | None]) -> int:
    if sys.platform == "win32":
        raise ValueError("several server processes need Linux or macOS: leave server.workers at 0")
    from ..server.processes.configuration import ConfigurationSource
    from ..server.processes.supervisor import supervise

    return supervise(
        ConfigurationSource(config, {name: value for name, value in given.items() if value is not None})
    )


_Print: TypeAlias = Callable[[str], None]
_WORKERS = 4
_REPORT_INTERVAL = 5.0  # seconds


def add_worker_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    worker = add_command(
        commands,
        "worker",
        "learn from conversations that other processes recorded",
        "  recollect worker --url postgresql://recollect@db/recollect --workers 8\n"
        "  recollect worker --config recollect.toml --until-idle\n",
    )
    worker.add_argument("--url", help="a path or postgresql://user@host/name (default: as configured)")
    worker.add_argument(
        "--config", type=Path, metavar="FILE", help="the TOML file of the service (default: RECOLLECT_CONFIG)"
    )
    worker.add_argument(
        "--workers",
        type=count,
        metavar="N",
        help="number of workers; each handles one user at a time (default: 4)",
    )
    worker.add_argument("--tenant", help="work for this tenant only (default: all tenants)")
    worker.add_argument("--until-idle", action="store_true", help="exit when no run is pending")
    worker.add_argument("--model", help="offline (default), openai:NAME or anthropic:NAME", metavar="MODEL")
    worker.add_argument("--json", action="store_true", help="print the result as JSON")
    worker.set_defaults(run=run_worker)


def run_worker(options: argparse.Namespace) -> int:
    """Work until a signal arrives or, with `--until-idle`, until no run is pending."""
    print_note = partial(print, file=sys.stderr if options.json else sys.stdout, flush=True)
    now = asyncio.run(_run(_plan_of(options), options.until_idle, print_note))
    if options.json:
        print_json(vars(now))
    return 0


@dataclass(frozen=True)
class _Plan:
    """The settings of a worker: from the options, else from the configuration of the service."""

    url: str
    model: str
    workers: int
    tenant: str | None
    settings: "Settings | None"
    """`None` if nothing is configured. The base install is then enough."""


def _plan_of(options: argparse.Namespace) -> _Plan:
    url = resolve_existing_url(options)
    if is_configured(options.config):
        return _configured_plan(options)
    return _Plan(url, options.model or "offline", options.workers or _WORKERS, options.tenant, None)


def _configured_plan(options: argparse.Namespace) -> _Plan:
    settings = load_configuration(options.config, {"RECOLLECT_DATABASE__URL": options.url})
    model = options.model or settings.memory.extractor
    workers = options.workers or settings.memory.workers or _WORKERS
    memory = settings.memory.model_copy(update={"extractor": model, "workers": workers})
    settings = settings.model_copy(update={"memory": memory})
    return _Plan(settings.database.url, model, workers, options.tenant, settings)


async def _run(plan: _Plan, until_idle: bool, print_note: _Print) -> "Coverage":
    switch_threads_often()
    async with AsyncExitStack() as opened:
        store, extractor = await _open(plan, opened)
        await store.coverage()  # reports database errors now instead of in a log later
        print_note(f"{plan.workers} workers on {hide_credentials(plan.url)}, model {extractor.model}")
        return await _work(store, until_idle, print_note)


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


async def _work(store: "MemoryStore", until_idle: bool, print_note: _Print) -> "Coverage":
    stopped = _stopped_by_signal()
    before = await store.coverage()
    if before.pending:
        print_note(_describe(before))
    store.start()
    reporting = asyncio.ensure_future(_report(store, _describe(before), print_note))
    waiting: set[asyncio.Future[Any]] = {stopped}
    if until_idle:
        waiting.add(asyncio.ensure_future(store.drain()))
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in (waiting | {reporting}) - {stopped}:
        task.cancel()
    if not until_idle:
        print_note("stopped; unfinished runs were released")
    now = await store.coverage()
    print_note(_describe(now))
    return now


async def _report(store: "MemoryStore", last: str, print_note: _Print) -> None:
    """Print the progress of learning at intervals, if there was any. The workers report a failed database."""
    while True:
        await asyncio.sleep(_REPORT_INTERVAL)
        with suppress(RecollectError):
            now = _describe(await store.coverage())
            if now != last:
                print_note(now)
            last = now


def _describe(now: "Coverage") -> str:
    return (
        f"{now.remembered} conversations remembered, {now.pending} pending, {now.failed} failed"
        f"{describe_partial(now.partial)}"
    )


def _stopped_by_signal() -> "asyncio.Future[None]":
    """Return a future that completes on SIGINT or SIGTERM."""
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
  recollect mcp --user ada                     for a client that starts it, over stdin and stdout
  recollect mcp --http                         for clients that connect to http://127.0.0.1:8766/mcp
  recollect mcp --http --user ada --port 9000  the same, for one user only
  recollect mcp install claude-code            add it to the configuration of a coding agent
"""


def add_mcp_parser(commands: _Commands) -> None:
    """Add the command to the parser."""
    mcp = commands.add_parser(
        "mcp",
        help="serve memory to MCP clients: remember, recall, forget, why, list, page",
        description="Serve memory as tools over the Model Context Protocol. The user comes from the options"
        " or from the configuration of the client, never from a model.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    mcp.add_argument("--user", help="the user (default: RECOLLECT_USER or, over HTTP, a header)")
    mcp.add_argument(
        "--agent", help="the agent (default: RECOLLECT_AGENT, over HTTP a header, else assistant)"
    )
    mcp.add_argument("--tenant", help="the tenant; over HTTP the API key decides (default: default)")
    mcp.add_argument(
        "--url",
        help="a path, postgresql://user@host/name, or https://host of a service, whose API key is in"
        " RECOLLECT_KEY (default: as configured)",
    )
    mcp.add_argument("--config", type=Path, metavar="FILE", help="a TOML file (default: RECOLLECT_CONFIG)")
    mcp.add_argument("--http", action="store_true", help="serve streamable HTTP")
    mcp.add_argument(
        "--host",
        help=f"address to listen on; a non-loopback address needs API keys (default: {_DEFAULT_HOST})",
    )
    mcp.add_argument("--port", type=_port, help=f"port; 0 picks a free port (default: {_DEFAULT_PORT})")
    mcp.set_defaults(run=run_mcp)
    add_install_parser(mcp.add_subparsers(title="actions", metavar="ACTION"))


def run_mcp(options: argparse.Namespace) -> int:
    """Serve until the client disconnects or a signal arrives."""
    _check_options(options)
    require_extra("mcp", "mcp", "recollect mcp")
    asyncio.run(_serve_http(options) if options.http else _serve_stdio(options))
    return 0


async def _serve_stdio(options: argparse.Namespace) -> None:
    from ..mcp.access import PinnedOwner, local_access

    access = local_access(PinnedOwner(*_owner(options)), options.tenant or _DEFAULT_TENANT)
    if is_service_url(options.url):
        from ..mcp.runner import run_stdio_for_service

        await run_stdio_for_service(options.url, os.environ.get("RECOLLECT_KEY") or None, access)
        return
    settings = _settings(options)
    from ..mcp.runner import run_stdio  # slow to import; wrong options are reported without it

    await run_stdio(settings, access)


async def _serve_http(options: argparse.Namespace) -> None:
    from ..mcp.access import PinnedOwner

    pinned, settings = PinnedOwner(*_owner(options)), _settings(options)
    from ..mcp.runner import run_http

    port = _DEFAULT_PORT if options.port is None else options.port
    await run_http(settings, pinned, options.host or _DEFAULT_HOST, port)


def _settings(options: argparse.Namespace) -> "Settings":
    settings = load_configuration(options.config, {"RECOLLECT_DATABASE__URL": options.url})
    check_folder(settings.database.url)
    return settings


def _owner(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the user and the agent. An empty variable counts as unset; an empty option is an error."""
    user = os.environ.get("RECOLLECT_USER") or None if options.user is None else options.user
    agent = os.environ.get("RECOLLECT_AGENT") or None if options.agent is None else options.agent
    return user, agent


def _check_options(options: argparse.Namespace) -> None:
    if options.http and options.tenant is not None:
        raise ValueError("--tenant cannot be used with --http: the API key decides the tenant")
    if options.http and is_service_url(options.url):
        raise ValueError("--http needs a database: start it beside the service, or leave out --http")
    if not options.http and (options.host is not None or options.port is not None):
        raise ValueError("--host and --port need --http")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a whole number from 0 to 65535")
    return int(text)
