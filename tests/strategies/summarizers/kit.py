"""Helpers of the summarizer tests: summarizers on the provider server, and the requests they sent."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings

from recollect.items import Item
from recollect.strategies.summarizers import AnthropicSummarizer, OpenAISummarizer, SummaryRequest
from recollect.testing.providers import ProviderServer

from ...providers.clients import anthropic_of, client_of

PROVIDERS = ("openai", "anthropic")
PATHS = {"openai": "POST /v1/chat/completions", "anthropic": "POST /v1/messages"}

thorough = settings(max_examples=200, deadline=None)
each_provider = pytest.mark.parametrize("provider", PROVIDERS)


@dataclass(frozen=True)
class Sent:
    """A request to a model."""

    instructions: str
    text: str
    body: dict[str, Any]


def summarizer_of(server: ProviderServer, provider: str, **options: Any) -> Any:
    """A summarizer that opens its own client."""
    if provider == "openai":
        return OpenAISummarizer(base_url=server.base_url, api_key=server.api_key, **options)
    return AnthropicSummarizer("claude-test", base_url=server.root_url, api_key=server.api_key, **options)


@asynccontextmanager
async def hasty_summarizer_of(server: ProviderServer, provider: str, **options: Any) -> AsyncIterator[Any]:
    """A summarizer with a client without retries."""
    async with (client_of if provider == "openai" else anthropic_of)(server) as client:
        yield summarizer_with(client, provider, **options)


def summarizer_with(client: Any, provider: str, **options: Any) -> Any:
    """A summarizer with a given client."""
    if provider == "openai":
        return OpenAISummarizer(client=client, **options)
    return AnthropicSummarizer("claude-test", client=client, **options)


def script_of(server: ProviderServer, provider: str) -> Any:
    return server.chat if provider == "openai" else server.messages


def sent_to(server: ProviderServer, provider: str) -> list[Sent]:
    """The requests that reached the model, oldest first."""
    bodies = [request.body for request in server.requests(PATHS[provider])]
    if provider == "openai":
        return [Sent(body["messages"][0]["content"], body["messages"][1]["content"], body) for body in bodies]
    return [Sent(body["system"], body["messages"][0]["content"], body) for body in bodies]


def asked(items: list[Item], previous: str | None = None, max_tokens: int = 300) -> SummaryRequest:
    return SummaryRequest(items, previous, max_tokens, "session-1")


def turns(count: int, words: int = 10) -> list[Item]:
    """Turns of a question and an answer, each with a unique word."""
    return [
        item
        for number in range(count)
        for item in (
            {"role": "user", "content": f"question{number}x " + "word " * words},
            {"role": "assistant", "content": f"answer{number}x " + "word " * words},
        )
    ]
