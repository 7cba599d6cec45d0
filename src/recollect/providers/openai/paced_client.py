"""The HTTP client of models, whose streams pass the turnstile. It is slow to import."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from .turnstile import Turnstile, split_events

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


def paced_http_client(turnstile: Turnstile) -> Any:
    """The default HTTP client of the openai package, with streams that pass the turnstile."""
    from openai import DefaultAsyncHttpxClient

    async def pace(response: httpx2.Response) -> None:
        if response.headers.get("content-type", "").startswith(_EVENTS):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = PacedStream(response.stream, turnstile)

    return DefaultAsyncHttpxClient(event_hooks={"response": [pace]})
