"""Runs are configured so that nothing goes to anybody who was not named."""

from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, Runner, TracingProcessor, function_tool, set_tracing_disabled
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from agents.models.openai_responses import OpenAIResponsesModel
from agents.tracing import set_trace_processors

from recollect import ModelRefusedError
from recollect.providers.openai.options import (
    ModelEndpoint,
    make_client,
    make_model_provider,
    make_run_config,
)
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Refuse, Reply, ToolCall, Usage


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


class Recorder(TracingProcessor):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_trace_start(self, trace: Any) -> None:
        self.told.append(trace.export())

    def on_span_end(self, span: Any) -> None:
        self.told.append(span.export())

    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


@pytest.fixture
def traces() -> Iterator[Recorder]:
    recorder = Recorder()
    set_trace_processors([recorder])
    yield recorder
    set_trace_processors([])


def endpoint_of(server: ProviderServer, **more: Any) -> ModelEndpoint:
    return ModelEndpoint(server.base_url, server.api_key, max_retries=0, **more)


async def ask(endpoint: ModelEndpoint, streamed: bool = False, **config: Any) -> Any:
    @function_tool
    def weather() -> str:
        """The weather."""
        return "sunny"

    agent = Agent("desk", instructions="Be brief.", model="some-model", tools=[weather])
    async with make_client(endpoint) as client:
        run_config = make_run_config(make_model_provider(client, endpoint), **config)
        if not streamed:
            return await Runner.run(agent, "my secret", run_config=run_config)
        result = Runner.run_streamed(agent, "my secret", run_config=run_config)
        async for _ in result.stream_events():
            pass
        return result


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (ModelEndpoint(), True),
        (ModelEndpoint("https://api.openai.com/v1"), True),
        (ModelEndpoint("https://eu.api.openai.com/v1"), True),
        (ModelEndpoint("https://openai.com.example.org/v1"), False),
        (ModelEndpoint("http://127.0.0.1:11434/v1"), False),
        (ModelEndpoint("http://127.0.0.1:11434/v1", api="responses"), True),
        (ModelEndpoint(api="chat_completions"), False),
    ],
)
def test_responses_at_openai_and_chat_completions_elsewhere(endpoint: ModelEndpoint, expected: bool) -> None:
    assert endpoint.uses_responses is expected


def test_the_environment_names_an_endpoint_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert ModelEndpoint().uses_responses is False
    assert str(make_client(ModelEndpoint()).base_url) == "http://127.0.0.1:1/v1/"


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"api": "grpc"}, "api"), ({"timeout": 0}, "timeout"), ({"max_retries": -1}, "max_retries")],
)
def test_what_makes_no_sense_is_refused_by_name(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ModelEndpoint(**given)


def test_a_key_is_not_shown() -> None:
    assert "sk-secret" not in repr(ModelEndpoint(api_key="sk-secret"))


def test_openai_needs_a_key_and_others_may_not() -> None:
    with pytest.raises(ModelRefusedError, match="OPENAI_API_KEY"):
        make_client(ModelEndpoint())
    assert make_client(ModelEndpoint("http://127.0.0.1:1/v1")).api_key == "none"


@in_event_loop
async def test_the_provider_gives_the_model_of_the_api() -> None:
    for api, kind in (("responses", OpenAIResponsesModel), ("chat_completions", OpenAIChatCompletionsModel)):
        endpoint = ModelEndpoint("http://127.0.0.1:1/v1", "key", api=api)  # type: ignore[arg-type]
        async with make_client(endpoint) as client:
            assert isinstance(make_model_provider(client, endpoint).get_model("m"), kind)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", ["responses", "chat_completions"])
@in_event_loop
async def test_both_apis_tell_what_a_run_cost(server: ProviderServer, api: Any, streamed: bool) -> None:
    script = server.responses if api == "responses" else server.chat
    script.reply(Reply("hello", usage=Usage(10, 2)))
    result = await ask(endpoint_of(server, api=api), streamed)
    assert result.final_output == "hello"
    assert result.context_wrapper.usage.total_tokens == 12


@in_event_loop
async def test_the_patience_is_the_endpoints(server: ProviderServer) -> None:
    server.fail_next("POST /v1/responses", Refuse(500), times=2)
    server.responses.reply("hello")
    endpoint = ModelEndpoint(server.base_url, server.api_key, timeout=9, max_retries=2, api="responses")
    async with make_client(endpoint) as client:
        assert (client.timeout, client.max_retries) == (9, 2)
    assert (await ask(endpoint)).final_output == "hello"


@in_event_loop
async def test_nothing_is_traced_unless_asked_for(server: ProviderServer, traces: Recorder) -> None:
    server.responses.reply("hello")
    await ask(endpoint_of(server, api="responses"), group_id="conversation", trace_metadata={"a": "b"})
    assert traces.told == []


@in_event_loop
async def test_traces_hold_no_contents(server: ProviderServer, traces: Recorder) -> None:
    set_tracing_disabled(False)  # other tests may have disabled it for the whole process
    server.responses.reply(ToolCall("weather"), "the answer")
    metadata = {"turn_id": "t1"}
    await ask(endpoint_of(server, api="responses"), traced=True, group_id="g1", trace_metadata=metadata)
    told = str(traces.told)
    assert "g1" in told
    assert "t1" in told
    assert "recollect chat" in told
    for content in ("my secret", "the answer", "sunny", "Be brief"):
        assert content not in told


@in_event_loop
async def test_a_tool_that_a_model_makes_up_does_not_end_the_run(server: ProviderServer) -> None:
    server.responses.reply(ToolCall("no_such_tool"), "then without")
    result = await ask(endpoint_of(server, api="responses"))
    assert result.final_output == "then without"
