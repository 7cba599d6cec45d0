"""Responses of server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi.sse import KEEPALIVE_COMMENT
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from .schemas.base import encode_json

_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",  # Nginx would hold events back
}
_PING_SECONDS = 15.0

E = TypeVar("E")


class EventStream(StreamingResponse):
    """Sends encoded events as they come, and a comment if there is none for a while.

    FastAPI's own stream takes a model, two queues and a timer for each event. This one sends all events
    together that came in the meantime. It needs no anyio, which would be loaded at the first stream.
    """

    def __init__(self, chunks: AsyncGenerator[bytes], status_code: int = 200) -> None:
        super().__init__(chunks, status_code, _HEADERS, "text/event-stream")
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send the chunks until their end, or until the client disconnects."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_wait_for_disconnect(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait((sending, leaving))
        if not sending.cancelled():
            sending.result()  # raises its error

    async def _send(self, send: Send) -> None:
        async with aclosing(self._chunks):
            await self.stream_response(send)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def encode_event(name: str, data: Any) -> bytes:
    """An event with JSON as its data, which has no line breaks."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode_json(data))


async def encode_events(
    read: Callable[[], Awaitable[Sequence[E]]], encode: Callable[[E], bytes]
) -> AsyncGenerator[bytes]:
    """The events of each read until there are none, and comments that keep an idle connection open.

    `read` waits for events. It may be cancelled while it does.
    """
    while True:
        try:
            async with asyncio.timeout(_PING_SECONDS):
                events = await read()
        except TimeoutError:
            yield KEEPALIVE_COMMENT
            continue
        if not events:
            return
        yield b"".join(map(encode, events))
