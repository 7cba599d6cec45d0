"""What models stream, read one event at a time.

The SDK reads without a pause while there is something to read. Where two hundred answers have arrived, each
would be read for some twenty milliseconds before the event loop comes round again.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2

from .turnstile import Turnstile

_EVENT_END = b"\n\n"
_EVENTS = "text/event-stream"


class PacedStream(httpx2.AsyncByteStream):
    """The events that a server sends, each of which passes the turnstile."""

    def __init__(self, stream: httpx2.AsyncByteStream, turnstile: Turnstile) -> None:
        self._stream = stream
        self._turnstile = turnstile

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            for piece in pieces_of(chunk):
                await self._turnstile()
                yield piece

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._stream.aclose()


def pieces_of(chunk: bytes) -> Iterator[bytes]:
    """What has arrived, cut after each event; together it is the same."""
    start = 0
    while start < len(chunk):
        end = chunk.find(_EVENT_END, start)
        stop = len(chunk) if end < 0 else end + len(_EVENT_END)
        yield chunk[start:stop]
        start = stop


def paced_http_client(turnstile: Turnstile) -> Any:
    """What the openai package asks over HTTP with, as it comes, but for the pace of streams."""
    from openai import DefaultAsyncHttpxClient

    async def pace(response: httpx2.Response) -> None:
        if response.headers.get("content-type", "").startswith(_EVENTS):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = PacedStream(response.stream, turnstile)

    return DefaultAsyncHttpxClient(event_hooks={"response": [pace]})
