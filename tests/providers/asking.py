"""One question to each API in each way its client knows, and the answers in one form."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from recollect.testing.providers import ProviderServer

from .clients import anthropic_of, client_of, sync_anthropic_of, sync_client_of

APIS = ("responses", "chat", "messages")
WAYS = ("async whole", "async streamed", "sync whole", "sync streamed")
PATHS = {
    "responses": "POST /v1/responses",
    "chat": "POST /v1/chat/completions",
    "messages": "POST /v1/messages",
}
QUESTION = [{"role": "user", "content": "What is the weather?"}]
TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}


@dataclass(frozen=True)
class Asked:
    """What came of a question."""

    text: str | None
    calls: list[tuple[str, Any]]
    stop: str | None
    usage: tuple[int, int]
    refusal: str | None = None


def ask(server: ProviderServer, api: str, way: str, **options: Any) -> Asked:
    """Ask a question with the real client."""
    if way.startswith("async"):
        return asyncio.run(_ask_async(server, api, way, options))
    make = sync_anthropic_of if api == "messages" else sync_client_of
    with make(server, **options) as client:
        if way.endswith("whole"):
            return READ[api](WHOLE[api](client))
        if api == "responses":
            *_, last = client.responses.create(**responses_body(stream=True))
            return _read_response(last.response)
        with STREAMED[api](client) as stream:
            for _ in stream:
                pass
            return READ[api](_final(api, stream))


async def _ask_async(server: ProviderServer, api: str, way: str, options: dict[str, Any]) -> Asked:
    make = anthropic_of if api == "messages" else client_of
    async with make(server, **options) as client:
        if way.endswith("whole"):
            return READ[api](await WHOLE[api](client))
        if api == "responses":
            *_, last = [event async for event in await client.responses.create(**responses_body(stream=True))]
            return _read_response(last.response)
        async with STREAMED[api](client) as stream:
            async for _ in stream:
                pass
            return READ[api](await _final(api, stream))


def _final(api: str, stream: Any) -> Any:
    return stream.get_final_completion() if api == "chat" else stream.get_final_message()


def responses_body(**more: Any) -> dict[str, Any]:
    tool = {"type": "function", "name": "weather", "parameters": TOOL, "strict": False}
    return {"model": "gpt-4o-mini", "input": QUESTION, "tools": [tool], **more}


def chat_body(**more: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "weather", "parameters": TOOL}}
    return {"model": "gpt-4o-mini", "messages": QUESTION, "tools": [tool], **more}


def messages_body(**more: Any) -> dict[str, Any]:
    tool = {"name": "weather", "input_schema": TOOL}
    return {"model": "claude-test", "max_tokens": 100, "messages": QUESTION, "tools": [tool], **more}


WHOLE: dict[str, Callable[[Any], Any]] = {
    "responses": lambda client: client.responses.create(**responses_body()),
    "chat": lambda client: client.chat.completions.create(**chat_body()),
    "messages": lambda client: client.messages.create(**messages_body()),
}
STREAMED: dict[str, Callable[[Any], Any]] = {
    "chat": lambda client: client.chat.completions.stream(
        **chat_body(stream_options={"include_usage": True})
    ),
    "messages": lambda client: client.messages.stream(**messages_body()),
}


def _read_response(response: Any) -> Asked:
    assert response.error is None, response.error
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    texts = [part.text for part in parts if part.type == "output_text"]
    refusals = [part.refusal for part in parts if part.type == "refusal"]
    calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
    stop = response.incomplete_details.reason if response.incomplete_details else response.status
    usage = (response.usage.input_tokens, response.usage.output_tokens)
    return Asked("".join(texts) or None, calls, stop, usage, "".join(refusals) or None)


def _read_completion(completion: Any) -> Asked:
    choice, usage = completion.choices[0], completion.usage
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    return Asked(
        choice.message.content or None,
        calls,
        choice.finish_reason,
        (usage.prompt_tokens, usage.completion_tokens),
        choice.message.refusal or None,
    )


def _read_message(message: Any) -> Asked:
    texts = [block.text for block in message.content if block.type == "text"]
    calls = [
        (block.name, json.dumps(block.input, ensure_ascii=False))
        for block in message.content
        if block.type == "tool_use"
    ]
    usage = (message.usage.input_tokens, message.usage.output_tokens)
    return Asked("".join(texts) or None, calls, message.stop_reason, usage)


READ: dict[str, Callable[[Any], Asked]] = {
    "responses": _read_response,
    "chat": _read_completion,
    "messages": _read_message,
}
