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


def _decoded(encoding: str, content: bytes) -> bytes | None:
    if encoding.strip().lower() in ("", "identity"):
        return content
    if encoding.strip().lower() not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        return zlib.decompressobj(_GZIP_OR_ZLIB).decompress(content, _LONGEST)
    except zlib.error:
        return None


def _events(content: bytes) -> Iterator[dict[str, Any]]:
    """The objects in the `data` of server-sent events."""
    for line in content.splitlines():
        name, _, value = line.partition(b":")
        event = decode_object(value) if name == b"data" else None
        if event is not None:
            yield event
