"""Streams of server-sent events: whole, kept open, and ended with their client."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from recollect.server import event_stream
from recollect.server.event_stream import EventStream, encode_event, encode_events
from recollect.testing.contract import in_event_loop


class Client:
    """A client that reads a stream, and may leave."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)

    async def read(self, chunks: AsyncGenerator[bytes]) -> bytes:
        await EventStream(chunks)({"type": "http"}, self.receive, self.send)
        return b"".join(message.get("body", b"") for message in self.messages)


@in_event_loop
async def test_a_stream_is_sent_to_its_end_with_its_headers() -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        yield b"event: a\n"
        yield b"data: 1\n\n"

    client = Client()
    assert await client.read(chunks()) == b"event: a\ndata: 1\n\n"
    headers = dict(client.messages[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert (headers[b"cache-control"], headers[b"x-accel-buffering"]) == (b"no-cache", b"no")
    assert client.messages[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@in_event_loop
async def test_a_client_that_leaves_ends_the_stream_at_once() -> None:
    client, ended = Client(), list[str]()

    async def chunks() -> AsyncGenerator[bytes]:
        try:
            yield b"data: 1\n\n"
            client.left.set()
            await asyncio.Event().wait()
        finally:
            ended.append("closed")

    assert await client.read(chunks()) == b"data: 1\n\n"
    assert ended == ["closed"]


@in_event_loop
async def test_the_error_of_a_stream_is_raised() -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        yield b"data: 1\n\n"
        raise LookupError

    with pytest.raises(LookupError):
        await Client().read(chunks())


@in_event_loop
async def test_an_idle_stream_gets_comments_and_loses_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_PING_SECONDS", 0.001)
    waiting: asyncio.Queue[list[str]] = asyncio.Queue()
    stream = encode_events(waiting.get, str.encode)
    assert [await anext(stream), await anext(stream)] == [b": ping\n\n"] * 2
    waiting.put_nowait(["one", "two"])
    waiting.put_nowait([])
    assert b"".join([chunk async for chunk in stream if not chunk.startswith(b":")]) == b"onetwo"


@pytest.mark.parametrize("text", ["a\nb\r\nc\rd", "\u2028\x85", "Grüße 你好", "\ud800", '"\\'])
def test_any_text_is_one_line_of_data_and_comes_back(text: str) -> None:
    name, data, *rest = encode_event("text.delta", {"text": text}).split(b"\n")
    assert (name, rest) == (b"event: text.delta", [b"", b""])
    assert b"\r" not in data
    assert json.loads(data.removeprefix(b"data: ")) == {"text": text}
