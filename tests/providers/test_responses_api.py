"""The Responses API: its events, what it refuses, and what it remembers."""

from itertools import groupby
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ApiError, ProviderServer, Reply, ToolCall

from .asking import responses_body
from .clients import client_of, sync_client_of

CALL: Any = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
USER: Any = {"role": "user", "content": "hi"}
THOUGHT: Any = {"type": "reasoning", "id": "rs_1", "summary": []}

OPENING = ["response.created", "response.in_progress"]
MESSAGE = [
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
]
REFUSAL = [name.replace("output_text", "refusal") for name in MESSAGE]
CALLED = [
    "response.output_item.added",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.output_item.done",
]
THINKING = [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
]


async def events_of(server: ProviderServer, reply: Reply, **more: Any) -> list[Any]:
    server.responses.reply(reply)
    async with client_of(server) as client:
        return [event async for event in await client.responses.create(**responses_body(stream=True, **more))]


def names(events: list[Any]) -> list[str]:
    """The kinds of events, one for each run of the same."""
    return [name for name, _ in groupby(event.type for event in events)]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply("Hello there, you."), [*OPENING, *MESSAGE, "response.completed"]),
        (Reply(refusal="I will not do it."), [*OPENING, *REFUSAL, "response.completed"]),
        (Reply("Hello the", stop="length"), [*OPENING, *MESSAGE, "response.incomplete"]),
        (
            Reply("Hm, wait.", [ToolCall("f", {"a": 1})], reasoning="I must call f"),
            [*OPENING, *THINKING, *MESSAGE, *CALLED, "response.completed"],
        ),
        (Reply("Hello", error=ApiError(500, "Broken.")), [*OPENING, *MESSAGE, "response.failed"]),
    ],
    ids=["text", "refusal", "length", "all", "failed"],
)
@in_event_loop
async def test_the_events_are_those_of_the_provider(
    server: ProviderServer, reply: Reply, expected: list[str]
) -> None:
    events = await events_of(server, reply)
    assert names(events) == expected
    assert [event.sequence_number for event in events] == list(range(len(events)))


@in_event_loop
async def test_the_pieces_add_up_to_the_items(server: ProviderServer) -> None:
    reply = Reply("Hello 世界", [ToolCall("f", {"a": "é"})], reasoning="thinking", piece=3)
    events = await events_of(server, reply, include=["reasoning.encrypted_content"])
    final = events[-1].response
    thought, message, call = final.output
    assert (thought.summary[0].text, thought.encrypted_content) == ("thinking", "gAAAAA")
    deltas = dict.fromkeys(("output_text", "function_call_arguments", "reasoning_summary_text"), "")
    for event in events:
        name = event.type.removeprefix("response.").removesuffix(".delta")
        if name in deltas:
            deltas[name] += event.delta
    assert deltas == {
        "output_text": "Hello 世界",
        "function_call_arguments": '{"a": "é"}',
        "reasoning_summary_text": "thinking",
    }
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.id for item in done] == [thought.id, message.id, call.id]
    added = [event.item for event in events if event.type == "response.output_item.added"]
    assert (added[1].content, added[2].arguments) == ([], ""), "what is added comes without its words"


@in_event_loop
async def test_the_clients_own_collector_of_streams_agrees(server: ProviderServer) -> None:
    server.responses.reply(Reply("Hello!", [ToolCall("weather", {"city": "Rome"})]))
    async with client_of(server) as client, client.responses.stream(**responses_body()) as stream:
        collected = await stream.get_final_response()
    assert collected.output_text == "Hello!"
    assert collected.output[1].arguments == '{"city": "Rome"}'


@in_event_loop
async def test_a_failed_response_says_why(server: ProviderServer) -> None:
    events = await events_of(server, Reply("Hel", error=ApiError(429, "Slow down.")))
    failed = events[-1].response
    assert (failed.status, failed.error.code, failed.error.message) == (
        "failed",
        "rate_limit_exceeded",
        "Slow down.",
    )
    assert failed.usage is None


def test_a_response_has_every_field_that_the_client_knows_as_required(server: ProviderServer) -> None:
    server.responses.reply("hi")
    with sync_client_of(server) as client:
        response = client.responses.create(**responses_body(instructions="be brief", metadata={"a": "b"}))
    Response.model_validate(response.model_dump())  # strictly, which the client itself is not
    assert (response.instructions, response.metadata, response.model) == (
        "be brief",
        {"a": "b"},
        "gpt-4o-mini",
    )
    assert response.tools[0].name == "weather"


# --- what is refused ---


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "hi"}, "model"),
        ({"model": "m"}, "input"),
        ({"model": "m", "input": []}, "input"),
        ({"model": "m", "input": 5}, "input"),
        ({"model": "m", "input": ["hi"]}, "input[0]"),
        ({"model": "m", "input": [{}]}, "input[0].role"),
        ({"model": "m", "input": [USER, {"role": "user"}]}, "input[1].content"),
        ({"model": "m", "input": [{**CALL, "name": None}]}, "input[0].name"),
        ({"model": "m", "input": [USER], "previous_response_id": "resp_x"}, "previous_response_id"),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_bad_request_is_refused(
    server: ProviderServer, body: dict[str, Any], param: str, stream: bool
) -> None:
    server.responses.reply("never said")
    with sync_client_of(server) as client, pytest.raises(openai.BadRequestError) as caught:
        client.post("/responses", cast_to=object, body={**body, "stream": stream})
    assert caught.value.param == param
    assert server.responses.replies_left == 1


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([USER, CALL], "No tool output found for function call c1"),
        ([USER, OUTPUT], "No tool call found for function call output with call_id c1"),
        ([USER, OUTPUT, CALL], "No tool"),
        ([USER, THOUGHT, USER], "'rs_1' of type 'reasoning' came without its required following item"),
    ],
    ids=["call", "output", "order", "thought"],
)
def test_a_history_with_orphans_is_refused(server: ProviderServer, items: list[Any], message: str) -> None:
    server.responses.reply("said")
    with sync_client_of(server) as client:
        with pytest.raises(openai.BadRequestError, match=message):
            client.responses.create(model="m", input=items)
        whole = [USER, THOUGHT, CALL, OUTPUT, USER]
        assert client.responses.create(model="m", input=whole).output_text == "said"


# --- what is remembered ---


def test_a_response_can_be_asked_for_again_and_gone_on_from(server: ProviderServer) -> None:
    server.responses.reply(ToolCall("weather", call_id="c1"), "It is sunny.")
    with sync_client_of(server) as client:
        first = client.responses.create(model="m", input="hi")
        assert client.responses.retrieve(first.id).output == first.output
        second = client.responses.create(model="m", input=[OUTPUT], previous_response_id=first.id)
        assert (second.output_text, second.previous_response_id) == ("It is sunny.", first.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve("resp_x")


def test_what_is_not_to_be_stored_is_not_remembered(server: ProviderServer) -> None:
    server.responses.reply("hi")
    with sync_client_of(server) as client:
        unstored = client.responses.create(model="m", input="hi", store=False)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(unstored.id)
        server.reset()
        with pytest.raises(openai.BadRequestError, match="not found"):
            client.responses.create(model="m", input="hi", previous_response_id=unstored.id)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_grows_by_what_was_asked_and_answered(server: ProviderServer, stream: bool) -> None:
    server.conversations.add("conv_1")
    server.responses.reply(ToolCall("weather", call_id="c1"), "It is sunny.")
    with sync_client_of(server) as client:
        for asked in ("hi", [OUTPUT]):
            answer = client.responses.create(model="m", input=asked, conversation="conv_1", stream=stream)
            if stream:
                list(answer)
        with pytest.raises(openai.NotFoundError, match="conv_2"):
            client.responses.create(model="m", input="hi", conversation="conv_2")
    kinds = [item["type"] for item in server.conversations.items_of("conv_1")]
    assert kinds == ["message", "function_call", "function_call_output", "message"]


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_conversation_does_not_take_is_refused_before_anything_is_said(
    server: ProviderServer, stream: bool
) -> None:
    server.conversations.add("conv_1")
    server.responses.reply("never said")
    odd = {**USER, "provider_data": {}}
    with sync_client_of(server) as client, pytest.raises(openai.BadRequestError, match="provider_data"):
        client.responses.create(model="m", input=[odd], conversation="conv_1", stream=stream)
    assert (server.responses.replies_left, server.conversations.items_of("conv_1")) == (1, [])
