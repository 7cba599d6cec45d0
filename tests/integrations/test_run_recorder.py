"""What is kept of a run: by hooks around it, and by its result."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import (
    GuardrailFunctionOutput,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
    Runner,
    function_tool,
    handoff,
    output_guardrail,
)

from recollect import AdvancedSQLiteSession, Conversation, EventLog, InMemorySession, MemoryStore
from recollect.integrations.openai_agents import MemoryHooks, remember_run
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ApiError, ProviderServer, Refuse, Reply, ToolCall, Usage

from .runs import CONFIG, NOWHERE, agent_on, run, store_in_memory, whole_and_streamed


@function_tool
def weather(city: str) -> str:
    """Tell the weather."""
    return f"sunny in {city}"


@function_tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@output_guardrail
def no_insults(_context: Any, _agent: Any, output: str) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, tripwire_triggered="idiot" in output)


async def with_hooks(agent: Any, given: Any, streamed: bool, store: MemoryStore, **kept: Any) -> Any:
    async with MemoryHooks(store, "desk", "ada", **kept) as hooks:
        return await run(agent, given, streamed, session=kept.get("session"), hooks=hooks)


async def with_result(agent: Any, given: Any, streamed: bool, store: MemoryStore, **kept: Any) -> Any:
    result = await run(agent, given, streamed, session=kept.get("session"))
    await remember_run(result, store, "desk", "ada", **kept)
    return result


Way = Callable[..., Any]
both_ways = pytest.mark.parametrize("way", [with_hooks, with_result])


@asynccontextmanager
async def place() -> AsyncIterator[dict[str, Any]]:
    """A store, a session that counts, and a log."""
    session = AdvancedSQLiteSession(session_id="s", create_tables=True)
    async with store_in_memory() as store, session, EventLog(":memory:") as log:
        yield {"store": store, "session": session, "events": log}


async def conversations_of(store: MemoryStore, user_id: str = "ada") -> list[Conversation]:
    listed = await store.list_conversations("desk", user_id)
    found = [await store.get_conversation(each["conversation_id"]) for each in listed]
    return [each for each in found if each is not None]


def told(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in conversation.messages]


@both_ways
@whole_and_streamed
@in_event_loop
async def test_usage_events_and_words_of_a_run_are_kept(
    server: ProviderServer, way: Way, streamed: bool
) -> None:
    server.responses.reply(
        Reply("Let me see.", [ToolCall("weather", {"city": "Rome"})], usage=Usage(10, 2)),
        Reply("Sunny.", usage=Usage(20, 3)),
    )
    async with place() as kept, agent_on(server, tools=[weather]) as agent:
        await way(agent, "How is Rome?", streamed, **kept)
        usage = await kept["session"].get_session_usage()
        events = await kept["events"].read("s")
        (conversation,) = await conversations_of(kept["store"])
    assert (usage["requests"], usage["total_tokens"], usage["total_turns"]) == (2, 35, 1)
    assert [event.item_type for event in events] == [
        "message", "message", "function_call", "function_call_output", "message",
    ]  # fmt: skip
    assert {event.agent for event in events} == {"desk"}
    assert told(conversation) == [("user", "How is Rome?"), ("assistant", "Sunny.")]
    assert conversation.session_id == "s"


@both_ways
@whole_and_streamed
@in_event_loop
async def test_the_turns_of_a_session_are_one_conversation(
    server: ProviderServer, way: Way, streamed: bool
) -> None:
    server.responses.reply("Hello.", "Hello again.")
    async with place() as kept, agent_on(server) as agent:
        await way(agent, "hi", streamed, **kept)
        await way(agent, "hi", streamed, **kept)
        (conversation,) = await conversations_of(kept["store"])
    assert told(conversation) == [
        ("user", "hi"), ("assistant", "Hello."), ("user", "hi"), ("assistant", "Hello again."),
    ]  # fmt: skip


@both_ways
@in_event_loop
async def test_runs_without_a_session_are_conversations_of_their_own(
    server: ProviderServer, way: Way
) -> None:
    server.responses.reply("Hello.", "Hello again.")
    async with store_in_memory() as store, agent_on(server) as agent:
        await way(agent, "hi", False, store)
        await way(agent, "hi", False, store)
        assert len(await conversations_of(store)) == 2


@whole_and_streamed
@in_event_loop
async def test_a_run_that_is_kept_in_both_ways_is_kept_once(server: ProviderServer, streamed: bool) -> None:
    server.responses.reply(Reply("Hello.", usage=Usage(10, 2)))
    async with place() as kept, agent_on(server) as agent:
        result = await with_hooks(agent, "hi", streamed, **kept)
        store = kept["store"]
        more = {"session": kept["session"], "events": kept["events"]}
        await remember_run(result, store, "desk", "ada", **more)
        await remember_run(result, store, "desk", "ada", **more)
        (conversation,) = await conversations_of(store)
        assert len(conversation.messages) == 2
        assert (await kept["session"].get_session_usage())["total_tokens"] == 12
        assert await kept["events"].count("s") == 2


@in_event_loop
async def test_the_same_session_id_of_others_is_another_conversation(server: ProviderServer) -> None:
    server.responses.reply("Hello Ada.", "Hello Bob.")
    async with store_in_memory() as store, agent_on(server) as agent:
        for user in ("ada", "bob"):
            session = InMemorySession("default")
            async with MemoryHooks(store, "desk", user, session=session) as hooks:
                await run(agent, f"I am {user}", session=session, hooks=hooks)
        (of_ada,), (of_bob,) = await conversations_of(store, "ada"), await conversations_of(store, "bob")
    assert told(of_ada)[0] == ("user", "I am ada")
    assert told(of_bob)[0] == ("user", "I am bob")


@in_event_loop
async def test_the_same_ids_in_another_tenant_are_another_conversation(
    server: ProviderServer, tmp_path: Path
) -> None:
    server.responses.reply("Hello.", "Hello.")
    url = str(tmp_path / "memory.db")
    first, second = store_in_memory(url=url), store_in_memory(url=url, tenant="other")
    async with first, second, agent_on(server) as agent:
        for store in (first, second):
            await with_hooks(agent, "hi", False, store, session=InMemorySession("s"))
        assert len(await conversations_of(first)) == len(await conversations_of(second)) == 1


@whole_and_streamed
@in_event_loop
async def test_of_a_run_that_fails_usage_and_events_are_kept(server: ProviderServer, streamed: bool) -> None:
    server.responses.reply(Reply(tool_calls=[ToolCall("weather", {"city": "Rome"})], usage=Usage(10, 2)))
    server.fail_next("POST /v1/responses", Refuse(500, "secret of the provider"), after=1)
    async with place() as kept, agent_on(server, tools=[weather]) as agent:
        with pytest.raises(openai.InternalServerError):
            await with_hooks(agent, "How is Rome?", streamed, **kept)
        assert (await kept["session"].get_session_usage())["total_tokens"] == 12
        assert await kept["events"].count("s") == 3
        assert await conversations_of(kept["store"]) == []

        server.responses.reply("Sunny.")
        await with_hooks(agent, "Well?", streamed, **kept)
        (conversation,) = await conversations_of(kept["store"])
    assert ("assistant", "Sunny.") in told(conversation)


@in_event_loop
async def test_a_provider_that_fails_in_the_middle_of_a_stream_leaves_no_answer(
    server: ProviderServer,
) -> None:
    server.responses.reply(Reply("Hel", error=ApiError(500, "gone")))
    async with place() as kept, agent_on(server) as agent:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the SDK makes of it
            await with_hooks(agent, "hi", True, **kept)
        assert not isinstance(caught.value, AssertionError)
        assert await conversations_of(kept["store"]) == []
        assert await kept["events"].count("s") == 1


@whole_and_streamed
@in_event_loop
async def test_an_answer_that_a_guardrail_stops_is_not_recorded(
    server: ProviderServer, streamed: bool
) -> None:
    server.responses.reply("You idiot.")
    async with place() as kept, agent_on(server, output_guardrails=[no_insults]) as agent:
        with pytest.raises(OutputGuardrailTripwireTriggered):
            await with_hooks(agent, "hi", streamed, **kept)
        assert await conversations_of(kept["store"]) == []


@output_guardrail
def broken_guardrail(_context: Any, _agent: Any, _output: str) -> GuardrailFunctionOutput:
    raise LookupError("the list of insults is not there")


@whole_and_streamed
@in_event_loop
async def test_an_answer_that_a_guardrail_could_not_look_at_is_not_recorded(
    server: ProviderServer, streamed: bool
) -> None:
    server.responses.reply("You idiot.")
    async with place() as kept, agent_on(server, output_guardrails=[broken_guardrail]) as agent:
        with pytest.raises(LookupError):
            await with_hooks(agent, "hi", streamed, **kept)
        assert await conversations_of(kept["store"]) == []


@whole_and_streamed
@in_event_loop
async def test_a_turn_is_recorded_though_the_caller_fails_after_it(
    server: ProviderServer, streamed: bool
) -> None:
    server.responses.reply("Nice.")
    async with store_in_memory() as store, agent_on(server) as agent:
        with pytest.raises(KeyError, match="mine"):
            async with MemoryHooks(store, "desk", "ada") as hooks:
                await run(agent, "I live in Lisbon.", streamed, hooks=hooks)
                raise KeyError("mine")
        (conversation,) = await conversations_of(store)
    assert told(conversation) == [("user", "I live in Lisbon."), ("assistant", "Nice.")]


async def answered_beside_one_that_fails(server: ProviderServer, failing: Any, *, grouped: bool) -> list[str]:
    """Two runs at once in one block, of which one fails; returns what was recorded of users."""
    async with store_in_memory() as store, agent_on(server) as agent:
        with pytest.raises(Exception):  # noqa: B017, PT011 - what it is, the callers do not ask
            async with MemoryHooks(store, "desk", "ada") as hooks:
                first = await asyncio.gather(run(failing, "fails", hooks=hooks), return_exceptions=True)
                await run(agent, "I live in Rome.", hooks=hooks)
                raise ExceptionGroup("both", first) if grouped else first[0]
        return [told(each)[0][1] for each in await conversations_of(store)]


@pytest.mark.parametrize("grouped", [False, True])
@in_event_loop
async def test_of_two_runs_the_one_that_failed_is_not_recorded(server: ProviderServer, grouped: bool) -> None:
    server.fail_next("POST /v1/responses", Refuse(500, "gone"))
    server.responses.reply("Nice.")
    async with agent_on(server) as failing:
        assert await answered_beside_one_that_fails(server, failing, grouped=grouped) == ["I live in Rome."]
    server.responses.reply("You idiot.", "Nice.")
    async with agent_on(server, output_guardrails=[no_insults]) as failing:
        assert await answered_beside_one_that_fails(server, failing, grouped=grouped) == ["I live in Rome."]


@whole_and_streamed
@in_event_loop
async def test_a_run_with_too_many_turns_is_not_recorded(server: ProviderServer, streamed: bool) -> None:
    server.responses.reply(*[Reply(tool_calls=[ToolCall("weather", {"city": "Rome"})]) for _ in range(2)])
    async with place() as kept, agent_on(server, tools=[weather]) as agent:
        async with MemoryHooks(kept["store"], "desk", "ada", session=kept["session"]) as hooks:
            with pytest.raises(MaxTurnsExceeded):
                await run(agent, "loop", streamed, session=kept["session"], hooks=hooks, max_turns=2)
        assert await conversations_of(kept["store"]) == []
        assert (await kept["session"].get_session_usage())["requests"] == 2


@both_ways
@whole_and_streamed
@in_event_loop
async def test_a_run_that_awaits_approval_is_recorded_when_it_has_gone_on(
    server: ProviderServer, way: Way, streamed: bool
) -> None:
    server.responses.reply(ToolCall("pay", {"amount": 5}), "Paid.")
    async with place() as kept, agent_on(server, tools=[pay]) as agent:
        result = await way(agent, "Pay 5.", streamed, **kept)
        assert await conversations_of(kept["store"]) == []
        state = result.to_state()
        for interruption in state.get_interruptions():
            state.approve(interruption)
        await way(agent, state, streamed, **kept)
        (conversation,) = await conversations_of(kept["store"])
    assert told(conversation) == [("user", "Pay 5."), ("assistant", "Paid.")]


@both_ways
@in_event_loop
async def test_after_a_handoff_the_answer_is_that_of_the_other(server: ProviderServer, way: Way) -> None:
    server.responses.reply(ToolCall("transfer_to_expert"), "I am the expert.")
    async with place() as kept, agent_on(server, name="expert") as expert:
        async with agent_on(server, handoffs=[handoff(expert)]) as agent:
            await way(agent, "Expert!", False, **kept)
        (conversation,) = await conversations_of(kept["store"])
        events = await kept["events"].read("s")
    assert told(conversation) == [("user", "Expert!"), ("assistant", "I am the expert.")]
    assert events[-1].agent == "expert"


@in_event_loop
async def test_several_runs_in_a_block_are_all_kept(server: ProviderServer) -> None:
    server.responses.reply("One.", "Two.")
    async with place() as kept, agent_on(server) as agent:
        session = kept["session"]
        async with MemoryHooks(kept["store"], "desk", "ada", session=session) as hooks:
            await run(agent, "first", session=session, hooks=hooks)
            await run(agent, "second", True, session=session, hooks=hooks)
        (conversation,) = await conversations_of(kept["store"])
    assert [text for _, text in told(conversation)] == ["first", "One.", "second", "Two."]


@both_ways
@whole_and_streamed
@in_event_loop
async def test_memory_that_is_down_does_not_end_a_run(
    server: ProviderServer, way: Way, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server.responses.reply("my other secret")
    session = AdvancedSQLiteSession(session_id="s", create_tables=True)
    async with store_in_memory(url=NOWHERE) as store, EventLog(NOWHERE) as log, session:
        async with agent_on(server) as agent:
            with caplog.at_level(logging.WARNING):
                result = await way(agent, "my secret", streamed, store, session=session, events=log)
        assert (await session.get_session_usage() or {})["requests"] == 1
    assert result.final_output == "my other secret"
    assert "storing events failed (UnreachableError)" in caplog.text
    assert "recording the turn failed (UnreachableError)" in caplog.text
    assert "secret" not in caplog.text


@in_event_loop
async def test_odd_words_are_kept_as_they_are(server: ProviderServer) -> None:
    server.responses.reply("Hello.")
    async with store_in_memory() as store, agent_on(server) as agent:
        await with_hooks(agent, "nul \0 inside 😀", False, store)
        (conversation,) = await conversations_of(store)
    assert told(conversation)[0] == ("user", "nul \0 inside 😀")


@in_event_loop
async def test_what_was_said_is_learned_and_is_evidence_for_what_was_remembered(
    server: ProviderServer,
) -> None:
    server.responses.reply("Nice.")
    async with store_in_memory(workers=1) as store, agent_on(server) as agent:
        noted = await store.add_entry("desk", "ada", "profile", "The user lives in Lisbon.")
        await with_hooks(agent, "I live in Lisbon.", False, store, session=InMemorySession("s"))
        await store.drain(20)
        entries = await store.list_entries("desk", "ada")
        (conversation,) = await conversations_of(store)
    assert [entry.content_id for entry in entries] == [noted.content_id]
    assert [each.message_id for each in entries[0].evidence] == [conversation.messages[0].message_id]


@in_event_loop
async def test_learning_can_wait_until_a_conversation_is_quiet(server: ProviderServer) -> None:
    server.responses.reply("Nice.")
    async with store_in_memory() as store, agent_on(server) as agent:
        session = InMemorySession("s")
        await with_hooks(agent, "I live in Lisbon.", False, store, session=session, learn_after=3600)
        assert await store.list_runs() == []
        (conversation,) = await conversations_of(store)
        await store.close_conversation(conversation.conversation_id)
        assert len(await store.list_runs()) == 1


@in_event_loop
async def test_a_conversation_of_ones_own_can_be_gone_on_with(server: ProviderServer) -> None:
    server.responses.reply("Nice.")
    async with store_in_memory() as store, agent_on(server) as agent:
        made = await store.open_conversation("desk", "ada")
        await with_hooks(agent, "hi", False, store, conversation_id=made.conversation_id)
        (conversation,) = await conversations_of(store)
    assert conversation.conversation_id == made.conversation_id
    assert len(conversation.messages) == 2


@in_event_loop
async def test_hooks_without_a_block_say_so(server: ProviderServer) -> None:
    server.responses.reply("Hello.")
    async with store_in_memory() as store, agent_on(server) as agent:
        with pytest.raises(RuntimeError, match="async with MemoryHooks"):
            await run(agent, "hi", hooks=MemoryHooks(store, "desk", "ada"))


@in_event_loop
async def test_a_stream_that_was_not_read_is_refused(server: ProviderServer) -> None:
    server.responses.reply("Hello.")
    async with store_in_memory() as store, agent_on(server) as agent:
        result = Runner.run_streamed(agent, "hi", run_config=CONFIG)
        with pytest.raises(ValueError, match="read its stream to the end"):
            await remember_run(result, store, "desk", "ada")
        async for _ in result.stream_events():
            pass


@in_event_loop
async def test_what_would_never_work_is_refused_at_once() -> None:
    async with store_in_memory() as store, EventLog(":memory:") as log:
        with pytest.raises(ValueError, match="user_id"):
            MemoryHooks(store, "desk", "")
        with pytest.raises(ValueError, match="pass the session"):
            MemoryHooks(store, "desk", "ada", events=log)
        with pytest.raises(ValueError, match="learn_after"):
            MemoryHooks(store, "desk", "ada", learn_after=-1)
