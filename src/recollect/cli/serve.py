"""`recollect serve`: the service, in this process."""

import argparse
from pathlib import Path

from ..extras import require_extra
from .configuration import configured
from .parsing import Commands, add_command


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
