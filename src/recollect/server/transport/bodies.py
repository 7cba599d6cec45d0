"""The body of a request, read whole before a route sees it: in its form, size, time and encoding."""

import asyncio
import zlib
from collections.abc import Mapping

from starlette.types import Message, Receive

from ..problems import Problem
from ..settings import ServerSettings

_IDENTITY, _GZIP = {"", "identity"}, {"gzip", "x-gzip"}
_GZIP_FORMAT = 31  # how zlib is told of a gzip header and the largest window
_GRACE = 10.0  # seconds before a slow sender must have kept the least pace


async def read_body(headers: Mapping[str, str], receive: Receive, limits: ServerSettings) -> bytes:
    """The whole body, decoded; one that is too long or too slow is refused as soon as that is known."""
    _check_media_type(headers, has_body=False)
    is_packed = _is_packed(headers)
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limits.max_body_bytes:
        raise _too_large(limits.max_body_bytes)
    body = await _receive_in_time(receive, limits)
    _check_media_type(headers, has_body=bool(body))
    if is_packed and body:
        return await asyncio.to_thread(unpack, body, limits.max_body_bytes)
    return body


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body, and then whatever comes."""
    is_given = False

    async def replay() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def unpack(packed: bytes, most: int) -> bytes:
    """The contents of a gzip body; no more is unpacked than may be."""
    unpacker = zlib.decompressobj(_GZIP_FORMAT)
    try:
        body = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise Problem("invalid_json", "the body is not valid gzip") from error
    if len(body) > most:
        raise _too_large(most)
    if not unpacker.eof or unpacker.unused_data:
        raise Problem("invalid_json", "the body is not one whole gzip member")
    return body


def _check_media_type(headers: Mapping[str, str], *, has_body: bool) -> None:
    """Check a declared type before the body is read; a request without a body need not declare one."""
    kind = headers.get("content-type", "" if has_body else "application/json").partition(";")[0]
    kind = kind.strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem("unsupported_media_type", "send the body as application/json")


def _is_packed(headers: Mapping[str, str]) -> bool:
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in _IDENTITY | _GZIP:
        detail = "send the body as it is, or with Content-Encoding: gzip"
        raise Problem("unsupported_media_type", detail, headers={"Accept-Encoding": "gzip"})
    return encoding in _GZIP


async def _receive_in_time(receive: Receive, limits: ServerSettings) -> bytes:
    loop = asyncio.get_running_loop()
    start, body = loop.time(), bytearray()
    try:
        async with asyncio.timeout(seconds_for(0, limits)) as deadline:
            while await _receive_part(receive, body, limits.max_body_bytes):
                deadline.reschedule(start + seconds_for(len(body), limits))
            return bytes(body)
    except TimeoutError as error:
        seconds = loop.time() - start
        detail = f"after {seconds:.0f} seconds only {len(body)} bytes of the body had arrived"
        raise Problem("request_timeout", detail, headers={"Connection": "close"}) from error


def seconds_for(received: int, limits: ServerSettings) -> float:
    """How long the next part of a body may take to arrive, counted from the start of the body."""
    pace = limits.receive_bytes_per_second
    if pace == 0:
        return limits.receive_seconds
    return min(limits.receive_seconds, _GRACE + received / pace)


async def _receive_part(receive: Receive, body: bytearray, most: int) -> bool:
    """Append what arrives to a body; returns whether there is more to come."""
    message = await receive()
    if message["type"] == "http.disconnect":
        # The part that has arrived may be valid JSON by chance, and is not what the caller meant to send.
        raise Problem("invalid_json", "the connection ended before the body did")
    body += message.get("body", b"")
    if len(body) > most:
        raise _too_large(most)
    return bool(message.get("more_body", False))


def _too_large(most: int) -> Problem:
    # The rest of the body is not read, so the connection cannot be used again.
    return Problem("body_too_large", f"a body may have {most} bytes", headers={"Connection": "close"})
