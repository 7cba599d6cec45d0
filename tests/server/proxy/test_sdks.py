"""The unmodified Python clients of OpenAI and Anthropic get through the proxy what they get directly."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from pydantic import BaseModel

from recollect.testing.providers import (
    CloseBefore,
    Filtered,
    Garble,
    Overloaded,
    ProviderServer,
    Refuse,
    Reply,
    ToolCall,
    TooLong,
    Truncate,
    WrongKey,
)

from ..routes.running import Running
from .conftest import recorded, remember

QUESTION = {"role": "user", "content": "What is my dog called?"}
TEXT = "Rex — レックス 🐶\n\ndata: x"
CALL = ToolCall("weather", {"city": "Lisbon"}, "call_1")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
_MADE = re.compile(r"\b(chatcmpl|resp|msg|rs|fc|call|toolu|req)[-_][0-9a-f]{24,}|1[78]\d{8}\b")


class Dog(BaseModel):
    name: str


Run = Callable[[openai.OpenAI, anthropic.Anthropic], Any]


def chat(**more: Any) -> Run:
    given: Any = {"model": "m", "messages": [QUESTION], **more}
    return lambda client, _: _dump(client.chat.completions.create(**given))


def response(**more: Any) -> Run:
    given: Any = {"model": "m", "input": [QUESTION], **more}
    return lambda client, _: _dump(client.responses.create(**given))


def message(**more: Any) -> Run:
    given: Any = {"model": "m", "messages": [QUESTION], "max_tokens": 99, **more}
    return lambda _, client: _dump(client.messages.create(**given))


def _dump(result: Any) -> str:
    """A result as JSON; of a stream, all its events. What the provider makes anew is left out."""
    shown = [each.to_dict() for each in result] if hasattr(result, "__next__") else result.to_dict()
    return _MADE.sub("made", json.dumps(shown))


def picture(client: openai.OpenAI, other: anthropic.Anthropic) -> Any:
    source: Any = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    parts: Any = [{"type": "text", "text": "Who is this?"}, {"type": "image", "source": source}]
    url: Any = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return [
        message(messages=[{"role": "user", "content": parts}])(client, other),
        chat(messages=[{"role": "user", "content": [parts[0], url]}])(client, other),
    ]


def parsed(client: openai.OpenAI, _: anthropic.Anthropic) -> Any:
    chatted = client.chat.completions.parse(model="m", messages=[QUESTION], response_format=Dog)  # type: ignore[list-item]
    answered = client.responses.parse(model="m", input="Who?", text_format=Dog)
    return [chatted.choices[0].message.parsed, answered.output_parsed]


CALLS: dict[str, Run] = {
    "chat": chat(),
    "chat stream": chat(stream=True, stream_options={"include_usage": True}),
    "chat choices": chat(n=3),
    "chat choices stream": chat(n=3, stream=True),
    "response": response(),
    "response stream": response(stream=True),
    "message": message(),
    "message stream": message(stream=True),
    "embeddings": lambda client, _: _dump(
        client.embeddings.create(model="text-embedding-3-small", input=["a", "b"])
    ),
    "models": lambda client, _: [_dump(client.models.list()), _dump(client.models.retrieve("gpt-4o-mini"))],
    "count": lambda _, client: _dump(client.messages.count_tokens(model="m", messages=[QUESTION])),  # type: ignore[list-item]
    "pictures": picture,
}
TOOL_CALLS: dict[str, Run] = {
    "chat": chat(tools=TOOLS),
    "chat stream": chat(tools=TOOLS, stream=True),
    "response": response(tools=[{"type": "function", "name": "weather", "parameters": {}, "strict": False}]),
    "response stream": response(stream=True),
    "message": message(tools=[{"name": "weather", "input_schema": {"type": "object"}}]),
    "message stream": message(stream=True),
}


def both(proxy: Running, server: ProviderServer, run: Run, reply: Any, user: str | None) -> tuple[Any, Any]:
    """What a call gets directly, and what it gets through the proxy."""
    headers = {} if user is None else {"X-Recollect-User": user}
    urls = (
        (server.base_url, server.root_url),
        (f"{proxy.url}/proxy/openai/v1", f"{proxy.url}/proxy/anthropic"),
    )
    got: list[Any] = []
    for first, second in urls:
        for api in (server.chat, server.responses, server.messages):
            api.reply_always(reply)
        common: Any = {"api_key": server.api_key, "max_retries": 0, "default_headers": headers}
        with (
            openai.OpenAI(base_url=first, **common) as client,
            anthropic.Anthropic(base_url=second, **common) as other,
        ):
            got.append(run(client, other))
    return got[0], got[1]


@pytest.mark.parametrize("name", CALLS)
def test_a_client_gets_the_same_through_the_proxy(proxy: Running, server: ProviderServer, name: str) -> None:
    reply = Reply(TEXT, reasoning=None if name.startswith("chat") else "Hm.", piece=3)
    directly, through = both(proxy, server, CALLS[name], reply, None)
    assert through == directly


@pytest.mark.proof
@pytest.mark.parametrize("name", TOOL_CALLS)
def test_tool_calls_come_through(proxy: Running, server: ProviderServer, name: str) -> None:
    directly, through = both(proxy, server, TOOL_CALLS[name], Reply("Hm.", [CALL, CALL], piece=3), None)
    assert through == directly
    assert "weather" in through


def test_structured_output_comes_through(proxy: Running, server: ProviderServer, user: str) -> None:
    assert both(proxy, server, parsed, Reply.json({"name": "Rex"}), user) == ([Dog(name="Rex")] * 2,) * 2


def test_a_user_who_is_named_gets_the_same_answers(proxy: Running, server: ProviderServer, user: str) -> None:
    remember(proxy, user, "My dog is called Rex.")
    for name in ("chat stream", "message stream", "chat choices"):
        directly, through = both(proxy, server, CALLS[name], Reply(TEXT, piece=3), user)
        assert through.partition('"usage"')[0] == directly.partition('"usage"')[0]  # memories are tokens, too
        assert "called Rex" in json.dumps(server.requests()[-1].body)


FAULTS = [
    Refuse(500),
    Refuse(429, retry_after=1),
    WrongKey(),
    Overloaded(),
    Filtered(),
    TooLong(),
    CloseBefore(),
]


@pytest.mark.proof
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("name", ["chat", "response stream", "message", "message stream"])
def test_an_error_comes_through_as_it_is(
    proxy: Running, server: ProviderServer, user: str, name: str, fault: Any
) -> None:
    server.fail_next("POST **", fault, times=2)
    seen: list[tuple[str, object]] = []

    def fail(client: openai.OpenAI, other: anthropic.Anthropic) -> None:
        with pytest.raises((openai.APIError, anthropic.APIError)) as caught:
            CALLS[name](client, other)
        seen.append((type(caught.value).__name__, _without_id(caught.value.body)))

    both(proxy, server, fail, TEXT, user)
    directly, through = seen
    if isinstance(fault, CloseBefore):
        assert (directly[0], through[0]) == ("APIConnectionError", "InternalServerError")
    else:
        assert through == directly
    assert recorded(proxy, user) == []


def _without_id(body: object) -> object:
    return (
        {key: value for key, value in body.items() if key != "request_id"} if isinstance(body, dict) else body
    )


@pytest.mark.proof
@pytest.mark.parametrize("fault", [Truncate(40), Garble()], ids=["cut", "html"])
@pytest.mark.parametrize("name", ["chat", "chat stream", "response stream", "message stream"])
def test_what_is_broken_is_broken_for_the_client_too(
    proxy: Running, server: ProviderServer, user: str, name: str, fault: Any
) -> None:
    server.fail_next("POST **", fault, times=2)
    seen: list[object] = []

    def fail(client: openai.OpenAI, other: anthropic.Anthropic) -> None:
        try:
            seen.append(CALLS[name](client, other))
        except Exception as error:  # noqa: BLE001 - whatever a client makes of it
            seen.append(type(error).__name__)

    both(proxy, server, fail, TEXT, user)
    assert seen[0] == seen[1]
    assert recorded(proxy, user) == []


def test_the_asynchronous_clients_stream_at_the_same_time(
    proxy: Running, server: ProviderServer, user: str
) -> None:
    server.chat.reply_always(Reply(TEXT, piece=2))
    server.messages.reply_always(Reply(TEXT, piece=2))

    async def ask(client: openai.AsyncOpenAI, other: anthropic.AsyncAnthropic, number: int) -> str:
        mine = f"{user}-{number}"
        if number % 2:
            stream = await client.chat.completions.create(
                model="m",
                messages=[QUESTION],  # type: ignore[list-item]
                user=mine,
                stream=True,
            )
            return "".join([event.choices[0].delta.content or "" async for event in stream])
        async with other.messages.stream(
            model="m",
            messages=[QUESTION],  # type: ignore[list-item]
            max_tokens=9,
            metadata={"user_id": mine},
        ) as events:
            return await events.get_final_text()

    async def ask_all() -> list[str]:
        common: Any = {"api_key": server.api_key, "max_retries": 0}
        async with (
            openai.AsyncOpenAI(base_url=f"{proxy.url}/proxy/openai/v1", **common) as client,
            anthropic.AsyncAnthropic(base_url=f"{proxy.url}/proxy/anthropic", **common) as other,
        ):
            return await asyncio.gather(*(ask(client, other, number) for number in range(20)))

    assert asyncio.run(ask_all()) == [TEXT] * 20
    for number in range(20):
        assert recorded(proxy, f"{user}-{number}") == [[("user", QUESTION["content"]), ("assistant", TEXT)]]
