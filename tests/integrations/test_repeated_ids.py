"""Every run is recorded, and once, where responses have the same id, or runs share a context."""

from typing import Any

from agents import Agent, RunContextWrapper, RunState
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.usage import Usage

from recollect import AdvancedSQLiteSession, InMemorySession
from recollect.integrations.openai_agents import MemoryHooks, remember_run
from recollect.testing.contract import in_event_loop

from .runs import run, store_in_memory, whole_and_streamed
from .test_run_recorder import both_ways, conversations_of, pay, place, told, with_hooks, with_result

SAME_ID = "resp-789"
DIALOGUE = [("user", "hi"), ("assistant", "Hello.")]


def scripted(*outputs: Any, **more: Any) -> Agent[Any]:
    """An agent whose model gives every response the same id and the same cost."""
    cost = Usage(requests=1, input_tokens=10, output_tokens=2, total_tokens=12)
    steps = [ModelStep(output=[output], usage=cost, response_id=SAME_ID) for output in outputs]
    return Agent(name="desk", model=ScriptedModel(steps), **more)


def greeting(times: int) -> Agent[Any]:
    return scripted(*[assistant_message("Hello.") for _ in range(times)])


@both_ways
@whole_and_streamed
@in_event_loop
async def test_all_messages_are_recorded_where_responses_have_the_same_id(way: Any, streamed: bool) -> None:
    async with place() as kept:
        agent = greeting(3)
        for _ in range(3):
            await way(agent, "hi", streamed, **kept)
        (conversation,) = await conversations_of(kept["store"])
        assert told(conversation) == DIALOGUE * 3
        assert (await kept["session"].get_session_usage())["total_tokens"] == 36


@in_event_loop
async def test_all_runs_of_one_block_are_recorded() -> None:
    async with place() as kept:
        agent = greeting(3)
        async with MemoryHooks(kept["store"], "desk", "ada", session=kept["session"]) as hooks:
            for streamed in (False, True, False):
                await run(agent, "hi", streamed, session=kept["session"], hooks=hooks)
        (conversation,) = await conversations_of(kept["store"])
        assert told(conversation) == DIALOGUE * 3
        assert (await kept["session"].get_session_usage())["total_tokens"] == 36


@both_ways
@in_event_loop
async def test_without_a_session_every_run_is_a_conversation(way: Any) -> None:
    async with store_in_memory() as store:
        agent = greeting(3)
        for _ in range(3):
            await way(agent, "hi", False, store)
        assert [told(each) for each in await conversations_of(store)] == [DIALOGUE] * 3


@whole_and_streamed
@in_event_loop
async def test_a_run_is_recorded_once_however_often_it_is_kept(streamed: bool) -> None:
    async with place() as kept:
        more = {name: kept[name] for name in ("session", "events")}
        agent = greeting(2)
        for _ in range(2):
            result = await with_hooks(agent, "hi", streamed, **kept)
            for _ in range(2):
                await remember_run(result, kept["store"], "desk", "ada", **more)
        (conversation,) = await conversations_of(kept["store"])
        assert told(conversation) == DIALOGUE * 2
        assert (await kept["session"].get_session_usage())["total_tokens"] == 24


@in_event_loop
async def test_runs_that_share_a_context_are_all_recorded() -> None:
    """A caller may pass a wrapper in place of a context, and all runs then count in one usage."""
    shared: Any = RunContextWrapper(context=None)
    async with store_in_memory() as store:
        session, agent = InMemorySession("s"), greeting(4)
        async with MemoryHooks(store, "desk", "ada", session=session) as hooks:
            for _ in range(2):
                await run(agent, "hi", session=session, hooks=hooks, context=shared)
        for _ in range(2):
            result = await run(agent, "hi", session=session, context=shared)
            await remember_run(result, store, "desk", "ada", session=session)
        (conversation,) = await conversations_of(store)
    assert told(conversation) == DIALOGUE * 4


async def resumed(result: Any, agent: Agent[Any]) -> RunState[Any]:
    """The state of an interrupted run, as another process reads it, with everything approved."""
    state: RunState[Any] = await RunState.from_string(agent, result.to_state().to_string())
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return state


@both_ways
@whole_and_streamed
@in_event_loop
async def test_a_run_that_goes_on_from_a_saved_state_is_counted_once(way: Any, streamed: bool) -> None:
    async with place() as kept:
        asked = function_call("pay", {"amount": 5}, call_id="call_1")
        agent = scripted(asked, assistant_message("Paid."), tools=[pay])
        first = await way(agent, "Pay 5.", streamed, **kept)
        assert await conversations_of(kept["store"]) == []
        await way(agent, await resumed(first, agent), streamed, **kept)
        (conversation,) = await conversations_of(kept["store"])
        usage = await kept["session"].get_session_usage()
    assert told(conversation) == [("user", "Pay 5."), ("assistant", "Paid.")]
    assert (usage["requests"], usage["total_tokens"]) == (2, 24)


@in_event_loop
async def test_usage_is_counted_once_where_the_session_counts_by_itself() -> None:
    session = AdvancedSQLiteSession(session_id="s", store_usage=True)
    async with store_in_memory() as store, session:
        agent = greeting(3)
        for way in (with_hooks, with_result, with_hooks):
            await way(agent, "hi", False, store, session=session)
        assert (await session.get_session_usage())["total_tokens"] == 36
