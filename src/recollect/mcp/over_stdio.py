"""The server over standard input and output, for the client that has started it.

Standard output carries the protocol and nothing else. The server ends when its input does.
"""

import logging

from mcp.server.stdio import stdio_server

from ..server.settings import Settings
from .access import Access
from .memories import Memories
from .server import build_server

_log = logging.getLogger(__name__)


async def serve_stdio(settings: Settings, access: Access) -> None:
    """Serve the client at the other end until it goes away."""
    async with Memories(settings, access.caller.tenant) as memories:
        await memories.of(access.caller.tenant).coverage()  # what is wrong with the database is told now
        server = build_server(memories, lambda _: access)
        try:
            async with stdio_server() as (received, sent):
                await server.run(received, sent, server.create_initialization_options())
        except* (BrokenPipeError, ConnectionError):
            _log.info("the client is gone")
