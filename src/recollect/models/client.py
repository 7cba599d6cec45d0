"""`ModelClient`: sends a request to a model and returns its response, or raises one of our errors."""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Self, TypedDict

from ..errors import ModelRefusedError, UnusableAnswerError
from .clients import ProviderClient
from .errors import UnsupportedFormatError, error_in_body, model_unavailable, translate_error
from .values import ModelRequest, ModelResponse

DEFAULT_MAX_INPUT_TOKENS = 24_000  # most models accept this, even if the estimate is low
MOST_RAW = 100_000
"""Characters of a response that are stored or attached to an error."""

_MOST_BODY_BYTES = 4_000_000  # a response of a million characters, with room for its JSON envelope


class ModelOptions(TypedDict, total=False):
    """How to reach a model."""

    base_url: str | None
    api_key: str | None
    timeout: float
    """Seconds for each request, with the retries of the client."""


class ModelClient(ABC):
    """Asks one model through the SDK of its provider, with connections for each event loop.

    `owner` is the class that `MissingExtraError` names. A `client` that is passed in belongs to the caller
    and is never closed; without one, the first request opens one. `max_retries` replaces the number of
    retries of the client; `None` leaves it as it is.
    """

    package: ClassVar[str]
    """The SDK of the provider, and the extra that installs it."""
    formats: ClassVar[tuple[str, ...]]
    """The ways to request JSON, the strictest first. A format that the endpoint rejects is not used again."""
    format_words: ClassVar[re.Pattern[str]]
    """The words by which an endpoint rejects a format."""

    def __init__(
        self,
        model: str,
        *,
        owner: str,
        client: Any = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float,
        max_retries: int | None = None,
    ) -> None:
        if client is not None and (base_url is not None or api_key is not None):
            raise ValueError("give a client, or a base_url and an api_key, not both")
        if not timeout > 0:
            raise ValueError(f"timeout must be positive, and it is {timeout}")
        self.model = model
        self._timeout = timeout
        self._provider = ProviderClient(
            self.package,
            owner,
            client=client,
            max_retries=max_retries,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
        )
        self._format = 0

    async def ask(self, request: ModelRequest) -> ModelResponse:
        """Send a request and return the response.

        A request with a schema is sent in the strictest format that the endpoint supports, which is
        remembered. Raises `TooLongError` if the model does not accept so much input,
        `ModelUnavailableError` if a later request may succeed, `ModelRefusedError` if none will, and
        `UnusableAnswerError` if the body is not a response of this API.
        """
        if request.schema is None:
            return self._parse_body(await self._fetch(request, "text"))
        for index in range(self._format, len(self.formats)):
            try:
                body = await self._fetch(request, self.formats[index])
            except UnsupportedFormatError as error:
                rejected = error
            else:
                self._format = max(self._format, index)
                return self._parse_body(body)
        raise ModelRefusedError("the model's endpoint rejects every response format") from rejected.__cause__

    async def aclose(self) -> None:
        """Close the connections that were opened here; a later request opens new ones. Idempotent."""
        await self._provider.aclose()

    # --- defined by each provider ---

    @abstractmethod
    def _send(
        self, client: Any, request: ModelRequest, response_format: str
    ) -> AbstractAsyncContextManager[Any]:
        """Send a request. The result is a response whose body can be streamed."""

    @abstractmethod
    def _parse(self, body: dict[str, Any]) -> ModelResponse:
        """Parse the body of a response. Raises `LookupError`, `TypeError` or the like for another shape."""

    # --- requests ---

    async def _fetch(self, request: ModelRequest, response_format: str) -> bytes:
        import httpx2

        try:
            async with asyncio.timeout(self._timeout):
                return await self._fetch_with_retries(request, response_format)
        except TimeoutError as error:
            raise model_unavailable(f"the model did not answer within {self._timeout:g} s") from error
        except (self._provider.error, httpx2.HTTPError, TypeError, ValueError) as error:
            # TypeError and ValueError: the API key is missing, or the request cannot be serialized.
            format_words = None if request.schema is None else self.format_words
            raise translate_error(error, format_words) from error

    async def _fetch_with_retries(self, request: ModelRequest, response_format: str) -> bytes:
        """The body of the response.

        The client retries until a response begins. A body that breaks off is requested again here, as often
        as the client would retry.
        """
        import httpx2

        client = self._provider.get()
        for _ in range(client.max_retries):
            try:
                return await self._fetch_once(client, request, response_format)
            except httpx2.HTTPError:
                continue
        return await self._fetch_once(client, request, response_format)

    async def _fetch_once(self, client: Any, request: ModelRequest, response_format: str) -> bytes:
        async with self._send(client, request, response_format) as response:
            return await _read_bounded(response)

    def _parse_body(self, body: bytes) -> ModelResponse:
        try:
            parsed = json.loads(body)
            if parsed.get("error"):
                raise error_in_body(parsed["error"])
            return self._parse(parsed)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UnusableAnswerError(
                "the response does not have the form of this API", _raw(body)
            ) from error


class UsesModel:
    """Base of the classes that ask a model: they close its connections, also at the end of `async with`."""

    def __init__(self, client: ModelClient, *, max_input_tokens: int, least_input_tokens: int) -> None:
        if max_input_tokens < least_input_tokens:
            raise ValueError(
                f"max_input_tokens must be at least {least_input_tokens}, not {max_input_tokens}"
            )
        self._client = client
        self._max_input_tokens = max_input_tokens
        self.model = client.model

    async def aclose(self) -> None:
        """Close the connections that were opened here; a later call opens new ones. Idempotent."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await self.aclose()


def instructions_with_schema(request: ModelRequest) -> str:
    """The instructions, with the schema in words for an endpoint that takes no schema."""
    if request.schema is None:
        return request.instructions
    schema = json.dumps(request.schema.schema)
    return f"{request.instructions}\n\nThe JSON object has this schema:\n{schema}"


async def _read_bounded(response: Any) -> bytes:
    """Read a body. Stop with `UnusableAnswerError` if it is too long, because it may have no end."""
    body = bytearray()
    async for chunk in response.iter_bytes():
        body += chunk
        if len(body) > _MOST_BODY_BYTES:
            raise UnusableAnswerError(f"the response is longer than {_MOST_BODY_BYTES} bytes", _raw(body))
    return bytes(body)


def _raw(body: bytes | bytearray) -> str:
    return body[: 4 * MOST_RAW].decode(errors="replace")[:MOST_RAW]
