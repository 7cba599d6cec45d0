"""Helpers of the extractor tests: extractors on the provider server, and the requests they sent."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.memory.conversation import Message, read_messages
from recollect.memory.entry import ContentType, Entry
from recollect.memory.extraction import AnthropicExtractor, OpenAIExtractor
from recollect.memory.pipeline.stages import Candidate, Excerpt
from recollect.testing.providers import ProviderServer

PROVIDERS = ("openai", "anthropic")
PATHS = {"openai": "POST /v1/chat/completions", "anthropic": "POST /v1/messages"}
SAID_AT = datetime(2024, 5, 8, 9, 30, tzinfo=UTC)  # a Wednesday

each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def extractor_of(server: ProviderServer, provider: str, **options: Any) -> Any:
    """An extractor that opens its own client."""
    if provider == "openai":
        return OpenAIExtractor(base_url=server.base_url, api_key=server.api_key, **options)
    return AnthropicExtractor("claude-test", base_url=server.root_url, api_key=server.api_key, **options)


def extractor_with(client: Any, provider: str, **options: Any) -> Any:
    """An extractor with a given client."""
    if provider == "openai":
        return OpenAIExtractor(client=client, **options)
    return AnthropicExtractor("claude-test", client=client, **options)


def script_of(server: ProviderServer, provider: str) -> Any:
    return server.chat if provider == "openai" else server.messages


def bodies_sent(server: ProviderServer, provider: str) -> list[dict[str, Any]]:
    """The requests that reached the model, oldest first."""
    return [request.body for request in server.requests(PATHS[provider])]


def instructions_in(body: dict[str, Any]) -> str:
    return str(body["system"] if "system" in body else body["messages"][0]["content"])


def text_in(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def quoted_in(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The JSON objects between two markers."""
    inside = text_in(body).split(f"<{name}>\n")[1].split(f"\n</{name}>")[0]
    return [] if inside == "(nothing)" else [json.loads(line) for line in inside.split("\n")]


def messages(*said: tuple[str, str]) -> tuple[Message, ...]:
    """Messages with ids such as `id-1`, sent on a Wednesday."""
    given = [
        {"role": role, "content": text, "message_id": f"id-{number}"}
        for number, (role, text) in enumerate(said, 1)
    ]
    return read_messages(given, SAID_AT)


def excerpt(*said: tuple[str, str], before: tuple[Message, ...] = ()) -> Excerpt:
    return Excerpt("agent", "user", messages(*said), before)


MOVED = excerpt(
    ("system", "You are a travel agent."),
    ("user", "I moved to Lisbon yesterday, with my cat Pixel."),
    ("assistant", "Congratulations! You told me once that you like fado."),
    ("user", "The flat is small but I love it."),
)


def entry(content_id: str, text: str, content_type: ContentType = "profile", **more: Any) -> Entry:
    return Entry(content_id, "memory", content_type, text, SAID_AT, **more)


def candidate(text: str, *evidence: str, content_type: ContentType = "profile") -> Candidate:
    return Candidate(content_type, text, evidence or ("id-2",))
