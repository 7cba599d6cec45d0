"""An HTTP client that costs little: a connection that stays open, and requests that are bytes already.

It reads what our servers send and nothing more: a length or chunks, and no answer before its request.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

HOST = "127.0.0.1"
_END_OF_HEAD = b"\r\n\r\n"
_END_OF_CHUNKS = b"0\r\n\r\n"
_LENGTH = b"content-length:"
_CHUNKED = b"transfer-encoding: chunked"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has answered."""

    status: int
    body: bytes
    began_at: float
    """When its first bytes came."""

    def json(self) -> Any:
        """The body as a value."""
        return json.loads(self.body)


class ConnectionLostError(ConnectionError):
    """The server has closed the connection before it had answered."""


def encode(method: str, path: str, value: Any = None, headers: Mapping[str, str] | None = None) -> bytes:
    """A request as it goes over the wire."""
    body = b"" if value is None else json.dumps(value, separators=(",", ":")).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    head += "".join(f"{name}: {given}\r\n" for name, given in (headers or {}).items())
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection(asyncio.Protocol):
    """A connection on which one request follows another."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._began_at = 0.0
        self._waiting: asyncio.Future[Answer] | None = None

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """A connection to a server on this machine."""
        _, connection = await asyncio.get_running_loop().create_connection(cls, HOST, port)
        return connection

    async def ask(self, request: bytes) -> Answer:
        """The whole answer to a request."""
        if self._transport is None or self._transport.is_closing():
            raise ConnectionLostError("the connection is closed")
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    def close(self) -> None:
        """Let go of it."""
        if self._transport is not None:
            self._transport.close()

    # --- asyncio's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Some of an answer has come."""
        if not self._received:
            self._began_at = perf_counter()
        self._received += data
        answer = read_answer(self._received, self._began_at)
        if answer is not None and self._waiting is not None:
            self._received = bytearray()
            if not self._waiting.done():
                self._waiting.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed; whoever waits is told."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionLostError(f"no answer: {exc or 'the server has closed'}"))


def read_answer(received: bytearray, began_at: float = 0.0) -> Answer | None:
    """The answer that bytes are, or `None` while some of it is missing."""
    end = received.find(_END_OF_HEAD)
    if end < 0:
        return None
    head, start = bytes(received[:end]).lower(), end + len(_END_OF_HEAD)
    status = int(head[9:12])
    if _CHUNKED in head:
        if not received.endswith(_END_OF_CHUNKS):
            return None  # the end of a chunk may look so, too: then its length tells
        body = _joined(received, start)
        return None if body is None else Answer(status, body, began_at)
    at = head.find(_LENGTH)
    length = 0 if at < 0 else int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
    if len(received) < start + length:
        return None
    return Answer(status, bytes(received[start : start + length]), began_at)


def _joined(received: bytearray, at: int) -> bytes | None:
    """The chunks without their lengths, or `None` while the last one is missing."""
    parts: list[bytes] = []
    while (line := received.find(b"\r\n", at)) >= 0:
        length = int(received[at:line], 16)
        if length == 0:
            return b"".join(parts)
        parts.append(bytes(received[line + 2 : line + 2 + length]))
        at = line + 2 + length + 2
    return None
