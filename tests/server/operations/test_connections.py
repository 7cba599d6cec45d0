"""Connections that somebody wants to hold for ever: a real server, and sockets that misbehave."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from uvicorn import Config, Server

from recollect.server.transport.connections import TimedConnection
from recollect.testing.contract import in_event_loop

_GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


class _Hasty(TimedConnection):
    receive_seconds = 0.2
    read_seconds = 0.2


class _Patient(TimedConnection):
    receive_seconds = 30.0


async def _application(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once to all but those who send a body, for which it waits."""
    while scope["method"] == "POST":
        message = await receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def _serving(connection: type[TimedConnection], application: Any = _application) -> AsyncIterator[int]:
    config = Config(
        application,
        http=connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=600,
    )
    server = Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server._serve([listener]))
        while not server.started:  # noqa: ASYNC110 - it has no event for this
            await asyncio.sleep(0.01)
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


async def _talk(port: int, *parts: bytes) -> bytes:
    """Send parts on one connection, and read until the server closes it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = b""
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        answer = await reader.read()
    except ConnectionError:
        return answer  # the server has had enough
    finally:
        writer.transport.abort()
    return answer


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: he", id="half a head"),
        pytest.param(b"\r\n\r\n", id="empty lines"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\nabc", id="half a body"),
    ],
)
@in_event_loop
async def test_a_request_that_does_not_arrive_ends_its_connection(sent: bytes) -> None:
    async with _serving(_Hasty) as port:
        assert await _talk(port, sent) == b""


@pytest.mark.parametrize("unfinished", [b"GET / HTTP/1.1\r\n", b"\r\n"])
@in_event_loop
async def test_a_second_request_that_does_not_arrive_ends_it_too(unfinished: bytes) -> None:
    async with _serving(_Hasty) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_GET)
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 OK")
        writer.write(unfinished)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.transport.abort()


@in_event_loop
async def test_one_that_arrives_is_answered_however_many_come_on_a_connection() -> None:
    async with _serving(_Patient) as port:
        last = _GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        posted = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 3\r\n\r\nabc"
        answer = await _talk(port, _GET, posted, last)
        assert answer.count(b"HTTP/1.1 200 OK") == 3


@in_event_loop
async def test_the_time_that_an_answer_takes_does_not_count() -> None:
    go = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await _application(scope, receive, send)

    async with _serving(_Hasty, slow) as port:
        last = _GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        talking = asyncio.create_task(_talk(port, last))
        await asyncio.sleep(2 * _Hasty.receive_seconds)
        go.set()
        assert (await talking).startswith(b"HTTP/1.1 200 OK")


_IMPORT = b"POST /v1/import HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 6\r\n\r\n"


@in_event_loop
async def test_a_streamed_body_may_take_any_time() -> None:
    async with _serving(_Hasty) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in (_IMPORT, b"ab", b"cd", b"ef"):
            writer.write(part)
            await asyncio.sleep(_Hasty.receive_seconds)
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
        writer.transport.abort()


@in_event_loop
async def test_what_still_arrives_of_a_refused_stream_does_not_hold_its_connection() -> None:
    async def refusing(scope: Any, _: Any, send: Any) -> None:
        await _application(scope | {"method": "GET"}, None, send)

    async with _serving(_Hasty, refusing) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_IMPORT.replace(b"Connection: close\r\n", b""))
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 OK")
        writer.write(b"abc")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.transport.abort()


@in_event_loop
async def test_a_head_without_end_is_not_kept() -> None:
    async with _serving(_Patient) as port:
        line = b"X-A: " + b"a" * 1000 + b"\r\n"
        assert await _talk(port, b"GET / HTTP/1.1\r\n", *[line] * 2000) == b""


@in_event_loop
async def test_one_who_does_not_read_does_not_hold_an_answer_for_ever() -> None:
    ended = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        assert scope["method"] == "GET"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        left = asyncio.create_task(_until_left(receive))
        while not left.done():
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        ended.set()

    async with _serving(_Hasty, endless) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        writer.write(_GET)
        await ended.wait()
        writer.transport.abort()


async def _until_left(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
