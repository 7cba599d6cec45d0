"""Fair use of the event loop by many turns at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from time import monotonic
from typing import Any

import httpx2

_AT_ONCE = 0.005  # seconds


class Turnstile:
    """Lets through whoever comes, until they together have been at work for a moment.

    Then, in the order in which they came, one at each turn of the event loop. Nobody is sent away.
    """

    def __init__(self) -> None:
        self._passing = asyncio.Lock()
        self._since = 0.0

    async def __call__(self) -> None:
        """Go on at once, or when others have had their turn."""
        if not self._passing.locked() and monotonic() - self._since < _AT_ONCE:
            return
        async with self._passing:
            await asyncio.sleep(0)
            self._since = monotonic()


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
