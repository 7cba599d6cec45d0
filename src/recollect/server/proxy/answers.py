"""Reads the answer of a model from the bytes that were passed on: a document, or a stream of events."""

import zlib
from collections.abc import Iterator
from typing import Any

from .exact_json import decode_object
from .values import Answer, Dialect

DECODABLE = (b"gzip", b"deflate", b"identity")
"""The content encodings that we can read."""

_GZIP_OR_ZLIB = 47  # zlib's code: detect the header, with the largest window
_LONGEST = 64 * 1024 * 1024  # bytes of a decompressed answer


def read_answer(dialect: Dialect, encoding: str, content: bytes) -> Answer | None:
    """The answer; `None` if it is incomplete, an error, or no answer of this API."""
    plain = _decoded(encoding, content)
    if plain is None:
        return None
    document = decode_object(plain)
    return dialect.answer_in_events(_events(plain)) if document is None else dialect.answer_in(document)


def read_usage(encoding: str, content: bytes) -> Iterator[dict[str, Any]]:
    """The reports of used tokens in an answer, which may be incomplete."""
    plain = _decoded(encoding, content) or b""
    document = decode_object(plain)
    for part in _events(plain, b'"usage"') if document is None else [document]:
        # An event of the Responses API has the response in it, the first one of the Messages API the message.
        for holder in (part, part.get("response"), part.get("message")):
            usage = holder.get("usage") if isinstance(holder, dict) else None
            if isinstance(usage, dict):
                yield usage


def _decoded(encoding: str, content: bytes) -> bytes | None:
    if encoding.strip().lower() in ("", "identity"):
        return content
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(content, _LONGEST)
    except zlib.error:
        return None


def _events(content: bytes, having: bytes = b"") -> Iterator[dict[str, Any]]:
    """The objects in the `data` of server-sent events, of those that have some bytes."""
    for line in content.splitlines():
        name, _, value = line.partition(b":")
        event = decode_object(value) if name == b"data" and having in value else None
        if event is not None:
            yield event
