"""`recollect mcp`: memory as tools for any client of the Model Context Protocol."""

import argparse
import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ..extras import require_extra

if TYPE_CHECKING:
    from ..server.settings import Settings

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
    from ..mcp.access import Pinned, local_access

    access = local_access(Pinned(*_owner(options)), options.tenant or _DEFAULT_TENANT)
    settings = _settings(options)
    from ..mcp.runner import run_stdio  # heavy, and not needed to say what is wrong with the above

    await run_stdio(settings, access)


async def _serve_http(options: argparse.Namespace) -> None:
    from ..mcp.access import Pinned

    pinned, settings = Pinned(*_owner(options)), _settings(options)
    from ..mcp.runner import run_http

    port = _DEFAULT_PORT if options.port is None else options.port
    await run_http(settings, pinned, options.host or _DEFAULT_HOST, port)


def _settings(options: argparse.Namespace) -> "Settings":
    from .configuration import configured

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
