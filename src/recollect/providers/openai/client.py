"""The client of models: its streams pass the turnstile, and are read quickly. It is slow to import."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import cache
from time import monotonic
from typing import Any, get_args

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, ValidationError

from ..turnstile import Turnstile, split_events

_PASS_SECONDS = 0.002
EVENT_STREAM = "text/event-stream"


class PacedStream(httpx2.AsyncByteStream):
    """A stream of server-sent events, which passes the turnstile before every two milliseconds of work.

    To pass it before each event would double the work: each of the dozen layers that read a stream would have
    to be resumed.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, turnstile: Turnstile) -> None:
        self._stream = stream
        self._turnstile = turnstile

    async def __aiter__(self) -> AsyncIterator[bytes]:
        passed_at = 0.0
        async for chunk in self._stream:
            for event in split_events(chunk):
                if monotonic() - passed_at > _PASS_SECONDS:
                    await self._turnstile()
                    passed_at = monotonic()
                yield event

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


def paced_http_client(turnstile: Turnstile) -> DefaultAsyncHttpxClient:
    """The default HTTP client of the openai package, with streams that pass the turnstile."""

    async def pace(response: httpx2.Response) -> None:
        if response.headers.get("content-type", "").startswith(EVENT_STREAM):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = PacedStream(response.stream, turnstile)

    return DefaultAsyncHttpxClient(event_hooks={"response": [pace]})


class ModelClient(AsyncOpenAI):
    """A client that reads the events of a stream by validation, which takes a tenth of the time.

    The openai package builds each event field by field, so that it accepts invalid ones. Events that are not
    valid are still read that way.
    """

    # If a later version of the package has no such method, streams are only slower.
    def _process_response_data(self, **given: Any) -> Any:
        model = model_of_event(given.get("cast_to"), given.get("data"))
        if model is not None:
            with suppress(ValidationError):
                return model.model_validate(given["data"])
        return super()._process_response_data(**given)


def model_of_event(cast_to: object, data: object) -> type[BaseModel] | None:
    """The class of an event in a stream of Chat Completions or Responses; `None` for other data."""
    if cast_to is ChatCompletionChunk:
        return ChatCompletionChunk
    if cast_to is ResponseStreamEvent and isinstance(data, Mapping):
        return _response_events().get(data.get("type"))
    return None


@cache
def _response_events() -> Mapping[object, type[BaseModel]]:
    """The classes of events by their `type`."""
    union, *_ = get_args(ResponseStreamEvent)
    return {name: kind for kind in get_args(union) for name in get_args(kind.model_fields["type"].annotation)}
