"""The client of models: it reads what the openai package reads, and a warm-up asks no provider."""

import logging
from typing import Any, get_args

import httpx2
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from recollect.providers.openai.client import ModelClient, model_of_event
from recollect.providers.openai.offline import answer_events
from recollect.providers.openai.options import Api, ChatOptions, ModelEndpoint
from recollect.providers.openai.registry import AgentRegistry
from recollect.providers.openai.runtime import AgentRuntime
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

_CHUNK: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_700_000_000,
    "model": "gpt-test",
    "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": None}],
}
_CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{"}}
_CHUNKS = {
    "text": _CHUNK,
    "a call": {**_CHUNK, "choices": [{"index": 0, "delta": {"tool_calls": [_CALL]}}]},
    "other fields": {**_CHUNK, "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}], "x": [1]},
    "usage": {**_CHUNK, "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}},
    "no id": {name: value for name, value in _CHUNK.items() if name != "id"},
    "an unknown reason": {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "bored"}]},
    "no choices": {**_CHUNK, "choices": None},
}
_EVENTS = [event.model_dump(mode="json") for event in answer_events("Hello, Ada.")]
_STRANGE: dict[str, dict[str, Any]] = {
    "no place": {"type": "response.output_text.delta", "delta": "Hello"},
    "a new type": {"type": "response.brand_new", "delta": "Hello"},
}


def read(kind: type[AsyncOpenAI], cast_to: Any, data: Any) -> Any:
    client = kind(base_url="http://localhost", api_key="none")
    return client._process_response_data(data=data, cast_to=cast_to, response=httpx2.Response(200))


def assert_read_alike(cast_to: Any, data: Any) -> None:
    ours, theirs = read(ModelClient, cast_to, data), read(AsyncOpenAI, cast_to, data)
    assert type(ours) is type(theirs)
    assert ours.to_dict() == theirs.to_dict()
    assert ours.model_dump() == theirs.model_dump()


@pytest.mark.parametrize("name", _CHUNKS)
def test_chunks_of_chat_completions_are_read_as_by_the_package(name: str) -> None:
    assert_read_alike(ChatCompletionChunk, _CHUNKS[name])


@pytest.mark.parametrize("data", _EVENTS, ids=lambda data: data["type"])
def test_events_of_responses_are_read_as_by_the_package(data: dict[str, Any]) -> None:
    assert model_of_event(ResponseStreamEvent, data) is not None
    assert_read_alike(ResponseStreamEvent, data)


@pytest.mark.parametrize("name", _STRANGE)
def test_strange_events_of_responses_are_read_as_by_the_package(name: str) -> None:
    assert_read_alike(ResponseStreamEvent, _STRANGE[name])


def test_each_event_of_responses_has_its_model() -> None:
    union, *_ = get_args(ResponseStreamEvent)
    for kind in get_args(union):
        for name in get_args(kind.model_fields["type"].annotation):
            assert model_of_event(ResponseStreamEvent, {"type": name}) is kind


# --- the warm-up ---


def runtime(model: str | None, url: str, api: Api = "auto") -> AgentRuntime:
    endpoint = ModelEndpoint(base_url=url, api_key="test-key", api=api)
    return AgentRuntime(AgentRegistry(), ChatOptions(model=model, endpoint=endpoint))


@pytest.mark.parametrize("api", ["chat_completions", "responses", None])
def test_a_warm_up_succeeds_and_sends_no_request(
    server: ProviderServer, caplog: pytest.LogCaptureFixture, api: Api | None
) -> None:
    @in_event_loop
    async def load() -> None:
        loading = runtime(api and "gpt-test", server.base_url, api or "auto")
        await loading.load()
        await loading.aclose()

    with caplog.at_level(logging.WARNING):
        load()
    assert caplog.messages == []
    assert server.requests() == []


def test_a_warm_up_that_fails_is_logged_and_stops_no_chat(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise LookupError("a text of its own")

    monkeypatch.setattr("recollect.providers.openai.warm_up.warm_up", fail)

    @in_event_loop
    async def load() -> None:
        await runtime(None, "http://localhost").load()

    load()
    assert caplog.messages == ["warm-up of a chat failed (LookupError)"]
