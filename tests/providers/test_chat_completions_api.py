"""The Chat Completions API: its chunks, and what it refuses."""

from typing import Any

import openai
import pydantic
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ApiError, ProviderServer, Reply, ToolCall, Usage

from .asking import chat_body
from .clients import client_of, sync_client_of

USER: Any = {"role": "user", "content": "hi"}
CALLING: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
OUTPUT: Any = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}


async def chunks_of(server: ProviderServer, reply: Reply, **more: Any) -> list[Any]:
    server.chat.reply(reply)
    async with client_of(server) as client:
        stream = await client.chat.completions.create(**chat_body(stream=True, **more))
        return [chunk async for chunk in stream]


@in_event_loop
async def test_chunks_bring_the_message_piece_by_piece(server: ProviderServer) -> None:
    reply = Reply("Hello 世界", [ToolCall("f", {"a": 1}, "c1"), ToolCall("g")], piece=4)
    chunks = await chunks_of(server, reply)
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk.model_dump(), strict=True)
    assert len({chunk.id for chunk in chunks}) == 1
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert (deltas[0].role, deltas[0].content) == ("assistant", "")
    assert [delta.content for delta in deltas[1:] if delta.content] == ["Hell", "o 世界"]
    calls = [delta.tool_calls[0] for delta in deltas if delta.tool_calls]
    assert [(call.index, call.id, call.function.name) for call in calls if call.id] == [
        (0, "c1", "f"),
        (1, calls[-2].id, "g"),
    ]
    assert "".join(call.function.arguments for call in calls if call.index == 0) == '{"a": 1}'
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "tool_calls"]
    assert all(chunk.usage is None for chunk in chunks)


@in_event_loop
async def test_usage_is_the_last_chunk_for_those_who_ask(server: ProviderServer) -> None:
    reply = Reply("Hello", usage=Usage(10, 5, cached_tokens=4, reasoning_tokens=2))
    chunks = await chunks_of(server, reply, stream_options={"include_usage": True})
    *others, last = chunks
    assert (last.choices, all(chunk.usage is None for chunk in others)) == ([], True)
    assert (last.usage.prompt_tokens, last.usage.completion_tokens, last.usage.total_tokens) == (10, 5, 15)
    assert last.usage.prompt_tokens_details.cached_tokens == 4
    assert last.usage.completion_tokens_details.reasoning_tokens == 2


@in_event_loop
async def test_an_error_in_a_stream_comes_after_what_was_said(server: ProviderServer) -> None:
    server.chat.reply(Reply("Hello", error=ApiError(500, "Broken.", code="oops")))
    said = []
    async with client_of(server) as client:
        stream = await client.chat.completions.create(**chat_body(stream=True))
        with pytest.raises(openai.APIError, match="Broken") as caught:
            async for chunk in stream:
                said += [chunk.choices[0].delta.content]
    assert "".join(said) == "Hello"
    assert caught.value.code == "oops"


def test_a_completion_has_every_field_that_the_client_knows_as_required(server: ProviderServer) -> None:
    server.chat.reply(Reply("hi", [ToolCall("f")]))
    with sync_client_of(server) as client:
        completion = client.chat.completions.create(**chat_body())
    ChatCompletion.model_validate(completion.model_dump(), strict=True)
    assert completion.id.startswith("chatcmpl-")
    assert completion._request_id.startswith("req_")


def test_structured_output_is_parsed_by_the_client(server: ProviderServer) -> None:
    class Person(pydantic.BaseModel):
        name: str

    server.chat.reply(Reply.json({"name": "Ada"}))
    with sync_client_of(server) as client:
        parsed = client.chat.completions.parse(model="m", messages=[USER], response_format=Person)
    assert parsed.choices[0].message.parsed == Person(name="Ada")
    assert server.requests()[0].body["response_format"]["json_schema"]["name"] == "Person"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": [USER]}, "model"),
        ({"model": "m"}, "messages"),
        ({"model": "m", "messages": []}, "messages"),
        ({"model": "m", "messages": "hi"}, "messages"),
        ({"model": "m", "messages": ["hi"]}, "messages[0]"),
        ({"model": "m", "messages": [{"role": "nobody"}]}, "messages[0].role"),
        ({"model": "m", "messages": [USER], "n": 0}, "n"),
        ({"model": "m", "messages": [USER, CALLING]}, "messages"),
        ({"model": "m", "messages": [USER, CALLING, USER]}, "messages"),
        ({"model": "m", "messages": [USER, OUTPUT]}, "messages"),
        ({"model": "m", "messages": [USER, CALLING, OUTPUT, OUTPUT]}, "messages"),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_bad_request_is_refused(
    server: ProviderServer, body: dict[str, Any], param: str, stream: bool
) -> None:
    server.chat.reply("never said")
    with sync_client_of(server) as client, pytest.raises(openai.BadRequestError) as caught:
        client.post("/chat/completions", cast_to=object, body={**body, "stream": stream})
    assert caught.value.param == param
    assert server.chat.replies_left == 1


def test_calls_that_are_answered_are_taken(server: ProviderServer) -> None:
    server.chat.reply("said")
    with sync_client_of(server) as client:
        answer = client.chat.completions.create(model="m", messages=[USER, CALLING, OUTPUT])
    assert answer.choices[0].message.content == "said"
