"""Agents on the provider server, and runs of them, whole and streamed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner

from recollect import MemoryStore
from recollect.testing.providers import ProviderServer, RecordedRequest

CONFIG = RunConfig(tracing_disabled=True)
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"
"""A database that is down."""

whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def store_in_memory(**options: Any) -> MemoryStore:
    """A store without workers and vectors, unless they are asked for."""
    return MemoryStore(options.pop("url", ":memory:"), **{"workers": 0, "embedder": None, **options})


@asynccontextmanager
async def agent_on(server: ProviderServer, api: str = "responses", **more: Any) -> AsyncIterator[Agent[Any]]:
    """An agent whose model is the server's."""
    made = openai.AsyncOpenAI(base_url=server.base_url, api_key=server.api_key, max_retries=0)
    async with made as client:
        kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
        model = kind("gpt-4o-mini", client)
        yield Agent(**{"name": "desk", "instructions": "Be brief.", "model": model, **more})


async def run(agent: Agent[Any], given: Any, streamed: bool = False, **more: Any) -> Any:
    """The result of a run that is over."""
    if not streamed:
        return await Runner.run(agent, given, run_config=CONFIG, **more)
    result = Runner.run_streamed(agent, given, run_config=CONFIG, **more)
    async for _ in result.stream_events():
        pass
    return result


def asked(server: ProviderServer) -> list[RecordedRequest]:
    """What the model was asked."""
    return server.requests("POST /v1/responses")


def instructions_of(request: RecordedRequest) -> str:
    """What the model was told."""
    return str(request.body["instructions"])


def output_in(request: RecordedRequest) -> str:
    """What a tool said last, as the model gets to read it."""
    outputs = [item for item in request.body["input"] if item.get("type") == "function_call_output"]
    return str(outputs[-1]["output"])
