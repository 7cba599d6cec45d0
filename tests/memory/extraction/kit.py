"""Helpers of the extractor tests: extractors on the provider server, and the requests they sent."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.memory.conversation import Message, read_messages
from recollect.memory.entry import ContentType, Entry
from recollect.memory.extraction import AnthropicExtractor, OpenAIExtractor
from recollect.memory.pipeline.stages import Candidate, Excerpt, Mind, Modification
from recollect.testing.providers import ProviderServer

PROVIDERS = ("openai", "responses", "anthropic")
PATHS = {
    "openai": "POST /v1/chat/completions",
    "responses": "POST /v1/responses",
    "anthropic": "POST /v1/messages",
}
API_OF: Any = {"openai": "chat_completions", "responses": "responses"}
SAID_AT = datetime(2024, 5, 8, 9, 30, tzinfo=UTC)  # a Wednesday

each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def extractor_of(server: ProviderServer, provider: str, **options: Any) -> Any:
    """An extractor that opens its own client."""
    if provider != "anthropic":
        return OpenAIExtractor(
            api=API_OF[provider], base_url=server.base_url, api_key=server.api_key, **options
        )
    return AnthropicExtractor("claude-test", base_url=server.root_url, api_key=server.api_key, **options)


def extractor_with(client: Any, provider: str, **options: Any) -> Any:
    """An extractor with a given client."""
    if provider != "anthropic":
        return OpenAIExtractor(client=client, api=API_OF[provider], **options)
    return AnthropicExtractor("claude-test", client=client, **options)


def script_of(server: ProviderServer, provider: str) -> Any:
    return {"openai": server.chat, "responses": server.responses, "anthropic": server.messages}[provider]


def bodies_sent(server: ProviderServer, provider: str) -> list[dict[str, Any]]:
    """The requests that reached the model, oldest first."""
    return [request.body for request in server.requests(PATHS[provider])]


def instructions_in(body: dict[str, Any]) -> str:
    given = body.get("system") or body.get("instructions")
    return str(given or body["messages"][0]["content"])


def text_in(body: dict[str, Any]) -> str:
    return str(body["input"] if "input" in body else body["messages"][-1]["content"])


_LINE = re.compile(r"(?:(?P<id>[me]\d+) )?(?P<role>\w+)(?: (?P<name>[^:]+))?: (?P<text>.*)")
_DAY = re.compile(r"\((?P<weekday>\w+) (?P<date>[\d-]+)\)")


def quoted_in(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The lines between two markers, as fields. `day` is that of the heading above a line."""
    inside = text_in(body).split(f"<{name}>\n")[1].split(f"\n</{name}>")[0]
    found: list[dict[str, Any]] = []
    day: dict[str, str] = {}
    for line in [] if inside == "(nothing)" else inside.split("\n"):
        if heading := _DAY.fullmatch(line):
            day = heading.groupdict()
            continue
        read = _LINE.fullmatch(line)
        assert read is not None, "every line begins with who speaks"
        found.append({**{key: value for key, value in read.groupdict().items() if value}, **day})
    return found


def memory(text: str, quote: str, source: str = "m1", kind: str = "profile", **more: Any) -> dict[str, Any]:
    """An element of a response."""
    fields = {"from": source, "quote": quote, "kind": kind, "text": text}
    return {**fields, "date": None, "until": None, "replaces": [], **more}


def messages(*said: tuple[str, str]) -> tuple[Message, ...]:
    """Messages with ids such as `id-1`, sent on a Wednesday."""
    given = [
        {"role": role, "content": text, "message_id": f"id-{number}"}
        for number, (role, text) in enumerate(said, 1)
    ]
    return read_messages(given, SAID_AT)


def excerpt(
    *said: tuple[str, str], before: tuple[Message, ...] = (), known: tuple[Entry, ...] = ()
) -> Excerpt:
    return Excerpt("agent", "user", messages(*said), before, known)


NOTHING_NEW = '{"memories": []}'
NOTHING = Modification("", (), Mind("", None, ()))


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
