"""A run of the Agents SDK on a canned answer, before the first turn. It is slow to import.

The SDK and pydantic prepare much at its first use, such as the validators of events. In a warm-up that
happens in a thread, where it does not block the event loop. No request leaves the process.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import httpx2
from agents import Agent, Model, Runner
from openai import DefaultAsyncHttpxClient

from ...memory.hits import Recalled
from ...sessions.in_memory import InMemorySession
from .client import EVENT_STREAM, ModelClient
from .offline import OfflineModel, answer_events
from .options import ModelEndpoint, make_model_provider, make_run_config

_ANSWER = "Hello."
_NAME = "warm-up"


def warm_up(endpoint: ModelEndpoint | None) -> None:
    """Run an agent once, with a client as for the endpoint, or offline."""
    asyncio.run(_warm_up(endpoint))


async def _warm_up(endpoint: ModelEndpoint | None) -> None:
    if endpoint is None:
        await _run(OfflineModel(_recall_nothing))
        return
    answer = "".join(_responses() if endpoint.uses_responses else _chat_completions())

    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Type": EVENT_STREAM}, text=answer)

    http_client = DefaultAsyncHttpxClient(transport=httpx2.MockTransport(respond))
    async with ModelClient(base_url="http://localhost", api_key=_NAME, http_client=http_client) as client:
        await _run(make_model_provider(client, endpoint).get_model(_NAME))


async def _run(model: Model) -> None:
    async with InMemorySession(_NAME) as session:
        await session.add_items([{"role": "user", "content": _ANSWER}])
        result = Runner.run_streamed(
            Agent(_NAME, model=model), [], session=session, run_config=make_run_config()
        )
        async for _ in result.stream_events():
            pass


async def _recall_nothing(_: str) -> Recalled:
    return Recalled("", (), ())


# --- canned answers, as server-sent events ---


def _responses() -> Iterator[str]:
    for event in answer_events(_ANSWER):
        yield f"event: {event.type}\ndata: {event.model_dump_json()}\n\n"


def _chat_completions() -> Iterator[str]:
    for choice in _choices():
        chunk = {"id": _NAME, "object": "chat.completion.chunk", "created": 0, "model": _NAME}
        yield f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"
    yield "data: [DONE]\n\n"


def _choices() -> Iterable[dict[str, Any]]:
    yield {"index": 0, "delta": {"role": "assistant", "content": ""}}
    yield {"index": 0, "delta": {"content": _ANSWER}}
    yield {"index": 0, "delta": {}, "finish_reason": "stop"}
