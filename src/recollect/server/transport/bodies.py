"""Request bodies: read completely before routing, with limits on type, size, time and encoding."""

import asyncio
import zlib
from collections.abc import Mapping

from starlette.types import Message, Receive

from ..problems import Problem
from ..settings import ServerSettings

_IDENTITY, _GZIP = {"", "identity"}, {"gzip", "x-gzip"}
_GZIP_FORMAT = 31  # zlib's code for a gzip header and the largest window
LINES = ("application/jsonl", "application/x-ndjson")
"""The media types of bodies with one JSON value on each line."""
_STREAMED = {"/v1/import"}
_GRACE = 10.0  # seconds before the minimum pace applies


def is_streamed(scope: Mapping[str, object]) -> bool:
    """Whether a request may have a body of any length, which its route reads as it arrives."""
    return scope["path"] in _STREAMED


async def read_body(headers: Mapping[str, str], receive: Receive, limits: ServerSettings) -> bytes:
    """The whole body, decompressed. A body that is too large or too slow is refused as soon as possible."""
    _check_media_type(headers, has_body=False)
    is_gzip = _is_gzip(headers)
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > limits.max_body_bytes:
        raise _too_large(limits.max_body_bytes)
    body = await _receive_in_time(receive, limits)
    _check_media_type(headers, has_body=bool(body))
    if is_gzip and body:
        return await asyncio.to_thread(decompress, body, limits.max_body_bytes)
    return body


def stream_body(headers: Mapping[str, str], receive: Receive, limits: ServerSettings) -> Receive:
    """A `receive` for a body of any length, of lines. Each part must arrive within the time for a request."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in LINES:
        raise Problem("unsupported_media_type", f"Send the body as {' or '.join(LINES)}.")
    if _is_gzip(headers):
        raise Problem("unsupported_media_type", "Send the body uncompressed.")

    async def receive_part() -> Message:
        try:
            async with asyncio.timeout(limits.receive_seconds):
                return await receive()
        except TimeoutError as error:
            detail = f"No more of the body arrived for {limits.receive_seconds:g} seconds. Send it again."
            raise Problem("request_timeout", detail, headers={"Connection": "close"}) from error

    return receive_part


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body first, and then the messages of the original."""
    is_sent = False

    async def replay() -> Message:
        nonlocal is_sent
        if is_sent:
            return await receive()
        is_sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def decompress(data: bytes, max_size: int) -> bytes:
    """The contents of a gzip body. Decompression stops at the size limit."""
    decompressor = zlib.decompressobj(_GZIP_FORMAT)
    try:
        body = decompressor.decompress(data, max_size + 1)
    except zlib.error as error:
        raise Problem("invalid_json", "The body is not valid gzip.") from error
    if len(body) > max_size:
        raise _too_large(max_size)
    if not decompressor.eof or decompressor.unused_data:
        raise Problem("invalid_json", "The body is not exactly one complete gzip member.")
    return body


def _check_media_type(headers: Mapping[str, str], *, has_body: bool) -> None:
    """Check the declared type before the body is read. A request without a body needs no type."""
    kind = headers.get("content-type", "" if has_body else "application/json").partition(";")[0]
    kind = kind.strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem("unsupported_media_type", "Send the body as application/json.")


def _is_gzip(headers: Mapping[str, str]) -> bool:
    encoding = headers.get("content-encoding", "").strip().lower()
    if encoding not in _IDENTITY | _GZIP:
        detail = "Send the body uncompressed, or with Content-Encoding: gzip."
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
        detail = f"Only {len(body)} bytes of the body had arrived after {seconds:.0f} seconds."
        raise Problem("request_timeout", detail, headers={"Connection": "close"}) from error


def seconds_for(received: int, limits: ServerSettings) -> float:
    """The deadline of the next part of a body, in seconds from the start of the body."""
    pace = limits.receive_bytes_per_second
    if pace == 0:
        return limits.receive_seconds
    return min(limits.receive_seconds, _GRACE + received / pace)


async def _receive_part(receive: Receive, body: bytearray, max_size: int) -> bool:
    """Append the next part to a body; returns whether there is more."""
    message = await receive()
    if message["type"] == "http.disconnect":
        # The received part may be valid JSON by chance, but it is not the body that the caller meant.
        raise Problem("invalid_json", "The connection ended before the body was complete.")
    body += message.get("body", b"")
    if len(body) > max_size:
        raise _too_large(max_size)
    return bool(message.get("more_body", False))


def _too_large(max_size: int) -> Problem:
    # The rest of the body is not read, so the connection cannot be reused.
    detail = f"A body may have at most {max_size} bytes."
    return Problem("body_too_large", detail, headers={"Connection": "close"})
