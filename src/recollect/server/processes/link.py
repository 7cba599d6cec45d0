"""Messages between the supervisor and a server process: JSON lines over a pair of sockets.

| message | sent by | meaning |
|---|---|---|
| `start` | supervisor | the first message: how to start |
| `ready` | process | it accepts connections |
| `failed` | process | it cannot start, and why |
| `learner` | supervisor | the state of the learning process |
| `drain` | supervisor | accept no more connections, and end when the present ones have ended |
| `work` | process | there is something to learn |
| `metrics` | process | its latest metrics |
| `ask` | process | its latest metrics, and a request for those of all |
| `answer` | supervisor | the latest metrics of all processes |

The link ends with the process at its other end, however that ends.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

_LONGEST = 2**24  # bytes of a message: metrics of all processes


class Link:
    """One end of the link."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, connection: socket.socket) -> "Link":
        """Use a connected socket, which is closed with the link."""
        return cls(*await asyncio.open_connection(sock=connection, limit=_LONGEST))

    def send(self, kind: str, content: Any = None) -> None:
        """Send a message. It is lost if the other end is gone."""
        if not self._writer.is_closing():
            self._writer.write(json.dumps([kind, content]).encode() + b"\n")

    async def receive(self) -> tuple[str, Any] | None:
        """The next message; `None` if the other end is gone."""
        try:
            line = await self._reader.readline()
        except ConnectionError:
            return None
        if not line.endswith(b"\n"):
            return None
        kind, content = json.loads(line)
        return kind, content

    async def messages(self) -> AsyncIterator[tuple[str, Any]]:
        """All messages until the other end is gone."""
        while (message := await self.receive()) is not None:
            yield message

    def close(self) -> None:
        """Close this end."""
        self._writer.close()
