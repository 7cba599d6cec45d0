"""Anthropic's Messages API: its events, its errors, its headers, and what it refuses."""

from typing import Any

import anthropic
import pytest
from anthropic.types import Message

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ApiError, ProviderServer, Refuse, Reply, ToolCall, Usage

from .asking import messages_body
from .clients import anthropic_of, sync_anthropic_of

USER: Any = {"role": "user", "content": "hi"}
CALLING: Any = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
}
OUTPUT: Any = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "sunny"}],
}
BLOCK = ["content_block_start", "content_block_delta", "content_block_stop"]


async def events_of(server: ProviderServer, reply: Reply) -> list[Any]:
    server.messages.reply(reply)
    async with anthropic_of(server) as client:
        return [event async for event in await client.messages.create(**messages_body(stream=True))]


@in_event_loop
async def test_the_events_are_those_of_the_provider(server: ProviderServer) -> None:
    reply = Reply("Hello", [ToolCall("f", {"a": 1}, "t1")], reasoning="Hm", usage=Usage(9, 4, 3), piece=100)
    events = await events_of(server, reply)
    kinds = [event.type for event in events]
    thinking = ["content_block_start", "content_block_delta", *BLOCK[1:]]
    assert kinds == ["message_start", *thinking, *BLOCK, *BLOCK, "message_delta", "message_stop"]
    start, *_, delta, _ = events
    assert (start.message.content, start.message.stop_reason) == ([], None)
    assert (start.message.usage.input_tokens, start.message.usage.cache_read_input_tokens) == (9, 3)
    assert (delta.delta.stop_reason, delta.usage.output_tokens) == ("tool_use", 4)
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    assert [piece.type for piece in deltas] == [
        "thinking_delta",
        "signature_delta",
        "text_delta",
        "input_json_delta",
    ]
    assert deltas[-1].partial_json == '{"a": 1}'
    assert [event.index for event in events if event.type == "content_block_stop"] == [0, 1, 2]


@in_event_loop
async def test_the_clients_own_collector_of_streams_agrees_with_the_whole(server: ProviderServer) -> None:
    reply = Reply("Hello", [ToolCall("f", {"a": [1, "é"]}, "t1")], reasoning="Hm", usage=Usage(9, 4))
    server.messages.reply(reply, reply)
    async with anthropic_of(server) as client:
        whole = await client.messages.create(**messages_body())
        async with client.messages.stream(**messages_body()) as stream:
            collected = await stream.get_final_message()
    Message.model_validate(whole.model_dump())
    assert collected.model_dump()["content"][1:] == whole.model_dump()["content"][1:]
    assert collected.content[0].thinking == whole.content[0].thinking == "Hm"
    assert (collected.stop_reason, collected.usage.output_tokens) == ("tool_use", 4)


@in_event_loop
async def test_arguments_that_are_not_json_are_streamed_as_they_are(server: ProviderServer) -> None:
    events = await events_of(server, Reply(tool_calls=[ToolCall("f", '{"a": ')], piece=100))
    assert [event.delta.partial_json for event in events if event.type == "content_block_delta"] == ['{"a": ']


@in_event_loop
async def test_an_error_in_a_stream_comes_after_what_was_said(server: ProviderServer) -> None:
    server.messages.reply(Reply("Hello", error=ApiError(529, "Overloaded")))
    said = []
    async with anthropic_of(server) as client:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded") as caught:
            async for event in await client.messages.create(**messages_body(stream=True)):
                said += [event.delta.text] if event.type == "content_block_delta" else []
    assert said == ["Hello"]
    assert caught.value.body == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    }


# --- errors ---


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "invalid_request_error", anthropic.BadRequestError),
        (401, "authentication_error", anthropic.AuthenticationError),
        (403, "permission_error", anthropic.PermissionDeniedError),
        (404, "not_found_error", anthropic.NotFoundError),
        (413, "request_too_large", anthropic.ContentTooLargeError),
        (429, "rate_limit_error", anthropic.RateLimitError),
        (500, "api_error", anthropic.InternalServerError),
        (529, "overloaded_error", anthropic.OverloadedError),
    ],
)
def test_errors_are_told_in_the_dialect_of_the_provider(
    server: ProviderServer, status: int, kind: str, error: type[anthropic.APIStatusError]
) -> None:
    server.fail_next("POST /v1/messages", Refuse(status, "No.", retry_after=2))
    with sync_anthropic_of(server) as client, pytest.raises(error) as caught:
        client.messages.create(**messages_body())
    request_id = caught.value.request_id
    assert caught.value.body == {
        "type": "error",
        "error": {"type": kind, "message": "No."},
        "request_id": request_id,
    }
    assert request_id is not None
    assert caught.value.response.headers["retry-after"] == "2"


# --- headers ---


@pytest.mark.parametrize("header", [{"x-api-key": "test-key"}, {"Authorization": "Bearer test-key"}], ids=str)
def test_a_key_comes_in_either_header(server: ProviderServer, header: dict[str, str]) -> None:
    server.messages.reply("hi")
    with sync_anthropic_of(server, api_key="wrong") as client:
        omitted = {"Authorization": anthropic.Omit()}
        answer = client.messages.create(**messages_body(), extra_headers={**omitted, **header})
    assert answer.content[0].text == "hi"


@pytest.mark.parametrize(
    ("header", "message"), [(None, "anthropic-version: header is required"), ("x", "not a valid version")]
)
def test_a_request_names_the_version_of_the_api(
    server: ProviderServer, header: str | None, message: str
) -> None:
    version = anthropic.Omit() if header is None else header
    with sync_anthropic_of(server) as client, pytest.raises(anthropic.BadRequestError, match=message):
        client.messages.create(**messages_body(), extra_headers={"anthropic-version": version})


def test_what_a_version_has_removed_is_refused_in_that_version_only(server: ProviderServer) -> None:
    server.messages.reply_always("hi")
    with sync_anthropic_of(server) as client:
        with pytest.raises(anthropic.BadRequestError, match="temperature"):
            client.messages.create(**messages_body(), extra_body={"temperature": 1})
        client.messages.create(
            **messages_body(),
            extra_body={"temperature": 1},
            extra_headers={"anthropic-version": "2023-06-01"},
        )


# --- what is refused ---

BASE: Any = {"model": "m", "max_tokens": 5, "messages": [USER]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "model: Field required"),
        ({"messages": None}, "messages: Field required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages.0"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0"),
        ({"messages": [{"role": "user"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": ""}]}, "must be non-empty"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        ({"messages": [USER, CALLING]}, "messages.1: `tool_use` ids without `tool_result`"),
        ({"messages": [USER, CALLING, USER]}, "messages.1: `tool_use` ids without `tool_result`"),
        ({"messages": [USER, CALLING, USER, OUTPUT]}, "messages.1: `tool_use` ids without"),
        ({"messages": [USER, OUTPUT]}, "messages.1: unexpected `tool_use_id`"),
    ],
    ids=str,
)
def test_a_bad_request_is_refused(server: ProviderServer, change: dict[str, Any], message: str) -> None:
    server.messages.reply("said")
    body = {name: value for name, value in {**BASE, **change}.items() if value is not None}
    with sync_anthropic_of(server) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.post("/v1/messages", cast_to=object, body=body)
        assert message in str(caught.value.api_message)
        assert server.messages.replies_left == 1
        whole = {**BASE, "messages": [USER, CALLING, OUTPUT]}
        assert client.messages.create(**whole).content[0].text == "said"
