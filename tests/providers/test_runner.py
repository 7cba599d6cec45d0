"""The real Runner of the Agents SDK talks to the server, through both of its models."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    ModelBehaviorError,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)
from pydantic import BaseModel

from recollect import InMemorySession
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    ApiError,
    ProviderServer,
    RecordedRequest,
    Refuse,
    Reply,
    ToolCall,
    Usage,
)

from .asking import PATHS
from .clients import client_of

MODELS: dict[str, Callable[[Any], Any]] = {
    "responses": lambda client: OpenAIResponsesModel("gpt-4o-mini", client),
    "chat": lambda client: OpenAIChatCompletionsModel("gpt-4o-mini", client),
}
CONFIG = RunConfig(tracing_disabled=True)

every_model = pytest.mark.parametrize("api", MODELS)
whole_and_streamed = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@function_tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"sunny in {city}"


class Forecast(BaseModel):
    city: str
    degrees: int


@asynccontextmanager
async def agent_on(server: ProviderServer, api: str, **more: Any) -> AsyncIterator[Agent[Any]]:
    async with client_of(server) as client:
        settings = ModelSettings(include_usage=True)
        yield Agent("desk", model=MODELS[api](client), tools=[weather], model_settings=settings, **more)


async def run(agent: Agent[Any], given: Any, streamed: bool, **more: Any) -> Any:
    if not streamed:
        return await Runner.run(agent, given, run_config=CONFIG, **more)
    result = Runner.run_streamed(agent, given, run_config=CONFIG, **more)
    async for _ in result.stream_events():
        pass
    return result


@every_model
@whole_and_streamed
@in_event_loop
async def test_a_run_calls_a_tool_and_answers(server: ProviderServer, api: str, streamed: bool) -> None:
    script = getattr(server, api)
    script.reply(
        Reply(tool_calls=[ToolCall("weather", {"city": "Rome"}, "call_1")], usage=Usage(10, 2)),
        Reply("It is sunny in Rome.", usage=Usage(20, 7, cached_tokens=8)),
    )
    async with agent_on(server, api) as agent:
        result = await run(agent, "How is it in Rome?", streamed)
    assert result.final_output == "It is sunny in Rome."
    usage = result.context_wrapper.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (2, 30, 9)
    assert usage.input_tokens_details.cached_tokens == 8
    _, second = server.requests(PATHS[api])
    assert output_in(second) == "sunny in Rome"
    assert script.replies_left == 0


def output_in(request: RecordedRequest) -> Any:
    """What the tool said, as the model gets to read it."""
    last = (request.body.get("input") or request.body["messages"])[-1]
    return last.get("output") or last.get("content")


@every_model
@whole_and_streamed
@in_event_loop
async def test_runs_go_on_in_a_session(server: ProviderServer, api: str, streamed: bool) -> None:
    getattr(server, api).reply(
        Reply("One moment.", [ToolCall("weather", {"city": "Rome"}), ToolCall("weather", {"city": "Oslo"})]),
        "Sunny in both.",
        "You are welcome.",
    )
    session = InMemorySession("s")
    async with agent_on(server, api) as agent:
        await run(agent, "Rome and Oslo?", streamed, session=session)
        result = await run(agent, "Thanks", streamed, session=session)
    assert result.final_output == "You are welcome."
    kinds = [item.get("type", "message") for item in await session.get_items()]
    assert kinds[:6] == ["message", "message", *["function_call"] * 2, *["function_call_output"] * 2]
    assert len(server.requests(PATHS[api])) == 3


@whole_and_streamed
@in_event_loop
async def test_thoughts_go_back_with_what_they_led_to(server: ProviderServer, streamed: bool) -> None:
    server.responses.reply(
        Reply(reasoning="I must look.", tool_calls=[ToolCall("weather", {"city": "Rome"})]),
        Reply("Sunny.", reasoning="Now I know."),
        "Bye.",
    )
    session = InMemorySession("s")
    async with agent_on(server, "responses") as agent:
        await run(agent, "Rome?", streamed, session=session)
        await run(agent, "Thanks", streamed, session=session)
    kinds = [item.get("type", "message") for item in server.requests()[-1].body["input"]]
    assert kinds == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
        "message",
    ]


@every_model
@whole_and_streamed
@in_event_loop
async def test_structured_output_arrives_as_an_object(
    server: ProviderServer, api: str, streamed: bool
) -> None:
    getattr(server, api).reply(Reply.json({"city": "Rome", "degrees": 21}))
    async with agent_on(server, api, output_type=Forecast) as agent:
        result = await run(agent, "How is it in Rome?", streamed)
    assert result.final_output == Forecast(city="Rome", degrees=21)


@every_model
@whole_and_streamed
@in_event_loop
async def test_an_error_of_the_provider_ends_the_run(
    server: ProviderServer, api: str, streamed: bool
) -> None:
    server.fail_next(PATHS[api], Refuse(429, "Slow down."))
    async with agent_on(server, api) as agent:
        with pytest.raises(openai.RateLimitError, match="Slow down"):
            await run(agent, "hi", streamed)


@every_model
@in_event_loop
async def test_an_error_in_a_stream_ends_the_run(server: ProviderServer, api: str) -> None:
    getattr(server, api).reply(Reply("Hel", error=ApiError(500, "Broken in the middle.")))
    async with agent_on(server, api) as agent:
        with pytest.raises((openai.APIError, ModelBehaviorError), match="Broken in the middle"):
            await run(agent, "hi", streamed=True)


@in_event_loop
async def test_runs_go_on_from_a_response_and_in_a_conversation(server: ProviderServer) -> None:
    server.responses.reply_always("Hello.")
    server.conversations.add("conv_1")
    async with agent_on(server, "responses") as agent:
        first = await run(agent, "hi", streamed=False)
        await run(agent, "and", streamed=False, previous_response_id=first.last_response_id)
        await run(agent, "hi", streamed=True, conversation_id="conv_1")
    assert len(server.conversations.items_of("conv_1")) == 2


@every_model
@in_event_loop
async def test_many_runs_at_once_get_each_their_own_answer(server: ProviderServer, api: str) -> None:
    getattr(server, api).reply_always(lambda request: f"you said {question_in(request)}")
    async with agent_on(server, api) as agent:
        results = await asyncio.gather(*(run(agent, f"n{n}", streamed=n % 2 == 0) for n in range(20)))
    assert [result.final_output for result in results] == [f"you said n{n}" for n in range(20)]


def question_in(request: RecordedRequest) -> Any:
    return (request.body.get("input") or request.body["messages"])[-1]["content"]
