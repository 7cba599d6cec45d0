"""OpenAI's Embeddings API, with deterministic vectors."""

import base64
import hashlib
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from ...items import estimate_text_tokens
from .core import ApiError, Dialect, json_body
from .openai_dialect import OpenAIDialect
from .scripted import require

MAX_INPUTS = 2048  # per request
MAX_TOKENS = 8192  # per input
_DIMENSIONS = {"text-embedding-3-large": 3072}
_DEFAULT_DIMENSIONS = 1536
_FIXED = ("text-embedding-ada-002",)  # models whose vectors cannot be shortened
_TOO_LONG = "This model's maximum context length is {limit} tokens, however you requested {tokens} tokens."

Embedding = Callable[[str, int], Sequence[float]]


class EmbeddingsApi:
    """Return a vector per text, computed from its hash unless a test replaces the function."""

    dialect: Dialect = OpenAIDialect("input", _TOO_LONG, too_long_code=None)
    path = "/v1/embeddings"

    def __init__(self) -> None:
        self._embed: Embedding = vector_of

    def embed_with(self, embed: Embedding) -> None:
        """Replace the function that computes a vector from a text and a number of dimensions, until reset."""
        self._embed = embed

    def reset(self) -> None:
        """Compute vectors from hashes again."""
        self._embed = vector_of

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the API."""
        return [Route(self.path, self._answer, methods=["POST"])]

    async def _answer(self, request: Request) -> JSONResponse:
        body = await json_body(request)
        model = require(body, "model", str)
        texts = [self._checked(text) for text in _inputs(body)]
        encode = _encoder(body)
        dimensions = _dimensions(model, body)
        data = [
            {"object": "embedding", "index": index, "embedding": encode(self._embed(text, dimensions))}
            for index, text in enumerate(texts)
        ]
        tokens = sum(map(estimate_text_tokens, texts))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse({"object": "list", "data": data, "model": model, "usage": usage})

    def _checked(self, text: str) -> str:
        if not text:
            raise ApiError(400, "Invalid 'input': a text must not be empty.", "input")
        if (tokens := estimate_text_tokens(text)) > MAX_TOKENS:
            raise self.dialect.too_long(tokens, MAX_TOKENS)
        return text


def vector_of(text: str, dimensions: int) -> list[float]:
    """Return a unit vector that depends only on the text.

    With fewer dimensions it is the beginning of the longer one, as with the provider's models.
    """
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(4 * dimensions)
    values = [number / 2**31 - 1 for number in struct.unpack(f"<{dimensions}I", digest)]
    length = math.hypot(*values) or 1.0
    return [value / length for value in values]


def _inputs(body: dict[str, Any]) -> list[str]:
    """Return the texts to embed. Token lists count as texts."""
    given = require(body, "input", str, list)
    entries = [given] if isinstance(given, str) or all(isinstance(each, int) for each in given) else given
    if not given or len(entries) > MAX_INPUTS:
        raise ApiError(400, f"Invalid 'input': expected 1 to {MAX_INPUTS} entries.", "input")
    if not all(isinstance(entry, str | list) for entry in entries):
        raise ApiError(400, "Invalid type for 'input': expected texts or lists of tokens.", "input")
    return [entry if isinstance(entry, str) else " ".join(map(str, entry)) for entry in entries]


def _dimensions(model: str, body: dict[str, Any]) -> int:
    largest = _DIMENSIONS.get(model, _DEFAULT_DIMENSIONS)
    given = body.get("dimensions")
    if given is None:
        return largest
    if model in _FIXED:
        raise ApiError(400, "This model does not support specifying dimensions.", "dimensions")
    if not isinstance(given, int) or not 1 <= given <= largest:
        raise ApiError(400, f"Invalid 'dimensions': expected 1 to {largest}.", "dimensions")
    return given


def _encoder(body: dict[str, Any]) -> Callable[[Sequence[float]], Any]:
    encoding = body.get("encoding_format") or "float"
    if encoding not in ("float", "base64"):
        raise ApiError(400, "Invalid 'encoding_format': expected 'float' or 'base64'.", "encoding_format")
    return _base64 if encoding == "base64" else list


def _base64(vector: Sequence[float]) -> str:
    """Encode as little-endian 4-byte floats."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
