"""Fair use of the event loop by many turns at once.

The SDK reads a stream without a pause while data is available. If two hundred answers arrive at once, each is
read for some twenty milliseconds before the event loop runs anything else.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from time import monotonic
from typing import Any

import httpx2

_BURST = 0.005  # seconds


class Turnstile:
    """Lets callers pass until they have worked for five milliseconds together.

    After that they pass in the order of their arrival, one in each cycle of the event loop. No caller is
    refused.
    """

    def __init__(self) -> None:
        self._passing = asyncio.Lock()
        self._since = 0.0

    async def __call__(self) -> None:
        """Return at once, or after the event loop has run other tasks."""
        if not self._passing.locked() and monotonic() - self._since < _BURST:
            return
        async with self._passing:
            await asyncio.sleep(0)
            self._since = monotonic()


_EVENT_END = b"\n\n"
_EVENTS = "text/event-stream"


class PacedStream(httpx2.AsyncByteStream):
    """A stream of server-sent events, each of which passes the turnstile."""

    def __init__(self, stream: httpx2.AsyncByteStream, turnstile: Turnstile) -> None:
        self._stream = stream
        self._turnstile = turnstile

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            for event in split_events(chunk):
                await self._turnstile()
                yield event

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


def split_events(chunk: bytes) -> Iterator[bytes]:
    """The chunk, split after each event; joined, the pieces are the chunk again."""
    start = 0
    while start < len(chunk):
        end = chunk.find(_EVENT_END, start)
        stop = len(chunk) if end < 0 else end + len(_EVENT_END)
        yield chunk[start:stop]
        start = stop


def paced_http_client(turnstile: Turnstile) -> Any:
    """The default HTTP client of the openai package, with streams that pass the turnstile."""
    from openai import DefaultAsyncHttpxClient

    async def pace(response: httpx2.Response) -> None:
        if response.headers.get("content-type", "").startswith(_EVENTS):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = PacedStream(response.stream, turnstile)

    return DefaultAsyncHttpxClient(event_hooks={"response": [pace]})
