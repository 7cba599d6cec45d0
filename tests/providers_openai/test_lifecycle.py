"""Turns that run beside each other, outlive their readers, and end with the service or with its process."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from recollect.errors import ConflictError, RunLockTimeoutError
from recollect.providers.errors import ChatFailedError, ConversationBusyError, TurnRunningError
from recollect.providers.openai.registry import AgentDescriptor
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import Hold, ProviderServer, ToolCall

from .chats import RESPONSES, Chat, Place, kinds, open_chat, options_for, short

ROOT = Path(__file__).parents[2]
TOOLS = "tests.providers_openai.tools_of_agents"
DESK = AgentDescriptor("desk", "Be brief.", tools=(f"{TOOLS}:add",))


@asynccontextmanager
async def held(server: ProviderServer, after: int = 0) -> AsyncIterator[threading.Event]:
    """A model that does not answer until it is let go."""
    let_go = threading.Event()
    server.fail_next(RESPONSES, Hold(let_go), after=after)
    try:
        yield let_go
    finally:
        let_go.set()


async def until_asked(server: ProviderServer, times: int = 1) -> None:
    async with asyncio.timeout(60):
        while len(server.requests(RESPONSES)) < times:  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.005)


async def until_ended(chat: Chat) -> None:
    async with asyncio.timeout(60):
        while any(turn["status"] == "running" for turn in await chat.turns()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@in_event_loop
async def test_a_reader_who_hangs_up_does_not_end_the_turn(place: Place, server: ProviderServer) -> None:
    server.responses.reply("The whole answer.", "Welcome back.")
    async with open_chat(place, server) as chat, held(server) as let_go:
        await chat.begin()
        async with aclosing(chat.provider.stream(chat.turn("Hi."))) as events:  # type: ignore[type-var]
            assert (await anext(events)).kind == "turn.started"
        let_go.set()
        await until_ended(chat)
        assert await chat.said() == [("user", "Hi."), ("assistant", "The whole answer.")]
        assert (await chat.say("I am back.")).text == "Welcome back."


@in_event_loop
async def test_whoever_waits_for_a_turn_and_is_cancelled_does_not_end_it(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply("The whole answer.")
    async with open_chat(file_place, server) as chat, held(server) as let_go:
        await chat.begin()
        waiting = asyncio.create_task(chat.say("Hi.", "turn-1"))
        await until_asked(server)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        let_go.set()
        await until_ended(chat)
        assert (await chat.say("Hi.", "turn-1")).text == "The whole answer."


@in_event_loop
async def test_a_slow_reader_gets_every_event(file_place: Place, server: ProviderServer) -> None:
    text = "word " * 400
    server.responses.reply(text)
    async with open_chat(file_place, server) as chat:
        await chat.begin()
        stream = chat.provider.stream(chat.turn("Tell me."))
        events = [await anext(stream)]
        await until_ended(chat)
        events += [event async for event in stream]
    assert "".join(event.data["text"] for event in events if event.kind == "text.delta") == text
    assert events[-1].data["text"] == text


# --- one turn at a time ---


@in_event_loop
async def test_a_second_turn_waits_and_then_says_that_the_conversation_is_busy(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("First.", "Third.")
    async with open_chat(place, server) as chat, open_chat(place, server) as other, held(server) as let_go:
        other.conversation = await chat.begin()
        first = asyncio.create_task(chat.say("One."))
        await until_asked(server)
        for busy in (chat, other):
            with pytest.raises(ConversationBusyError) as raised:
                await busy.say("Two.")
            assert isinstance(raised.value, RunLockTimeoutError)
        (failed,) = await other.stream("Two.")
        assert (failed.kind, failed.data["code"]) == ("turn.failed", "conversation_busy")
        let_go.set()
        assert (await first).text == "First."
        assert (await other.say("Three.")).text == "Third."
        assert [text for _, text in await chat.said()] == ["One.", "First.", "Three.", "Third."]


@in_event_loop
async def test_turns_that_come_at_once_are_run_one_after_another(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply_always("Yes.")
    patient = options_for(server, lock_seconds=20)
    async with open_chat(place, server, options=patient) as chat, open_chat(place, options=patient) as other:
        other.conversation = await chat.begin()
        await asyncio.gather(*(each.say(f"{n}?") for n in range(4) for each in (chat, other)))
        assert short(await chat.items()) == "UA" * 8
        assert [role for role, _ in await chat.said()] == ["user", "assistant"] * 8
        assert [turn["status"] for turn in await chat.turns()] == ["done"] * 8


@in_event_loop
async def test_other_conversations_do_not_wait(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply("First.", "Second.")
    async with open_chat(file_place, server) as chat, held(server) as let_go:
        await chat.begin("ada")
        first = asyncio.create_task(chat.say("One."))
        await until_asked(server)
        await chat.begin("bob")
        assert (await chat.say("Two.")).text == "First.", "the model's first answer goes to who asked first"
        let_go.set()
        assert (await first).text == "Second."


@in_event_loop
async def test_the_same_turn_while_it_runs_says_that_it_is_running(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Done.")
    async with open_chat(place, server) as chat, open_chat(place, server) as other, held(server) as let_go:
        other.conversation = await chat.begin()
        first = asyncio.create_task(chat.say("Go.", "turn-1"))
        await until_asked(server)
        for again in (chat, other):
            with pytest.raises(TurnRunningError):
                await again.say("Go.", "turn-1")
        let_go.set()
        done = await first
        assert await other.say("Go.", "turn-1") == done
    assert len(server.requests(RESPONSES)) == 1


# --- the end of the service ---


@in_event_loop
async def test_at_the_end_running_turns_are_given_time(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply("Just in time.")
    async with open_chat(file_place, server) as chat, held(server) as let_go:
        await chat.begin()
        first = asyncio.create_task(chat.say("Hi."))
        await until_asked(server)
        closing = asyncio.create_task(chat.provider.aclose(20))
        await asyncio.sleep(0)
        with pytest.raises(ChatFailedError):
            await chat.say("Too late.")
        let_go.set()
        assert (await first).text == "Just in time."
        await closing
        assert await chat.said() == [("user", "Hi."), ("assistant", "Just in time.")]


@in_event_loop
async def test_turns_that_take_too_long_at_the_end_are_interrupted(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply(ToolCall("add", {"a": 1, "b": 2}), "3", "Here.")
    async with open_chat(place, server, [DESK]) as chat, held(server, after=1):
        await chat.begin()
        stream = chat.provider.stream(chat.turn("1+2?", agent="desk"))
        events = [await anext(stream)]
        await until_asked(server, 2)
        await chat.provider.aclose(0.01)
        events += [event async for event in stream]
        assert kinds(events) == ["turn.started", "tool.called", "tool.output", "turn.failed"]
        assert events[-1].data["code"] == "interrupted"
        async with open_chat(place, server, [DESK]) as again:
            again.conversation = chat.conversation
            (turn,) = await again.turns()
            assert (turn["status"], turn["error_code"]) == ("failed", "interrupted")
            assert short(await again.items()) == "U"
            server.responses.reset()
            server.responses.reply("Here.")
            assert (await again.say("Hello?", agent="desk")).text == "Here."


# --- the end of a process ---

PROCESS = """
import asyncio, sys
from recollect.providers.openai.registry import AgentDescriptor
from recollect.testing.providers import ProviderServer, ToolCall
from tests.providers_openai.chats import Place, open_chat, options_for

async def main(url, conversation_id, turn_id):
    tools = tuple(f"tests.providers_openai.tools_of_agents:{name}" for name in ("add", "die"))
    with ProviderServer() as server:
        server.responses.reply(ToolCall("add", {"a": 1, "b": 2}, "call_1"), ToolCall("die", {}, "call_2"))
        options = options_for(server, lease_seconds=1)
        agents = [AgentDescriptor("desk", "Die.", tools=tools)]
        async with open_chat(Place(url), server, agents, options) as chat:
            chat.conversation = await chat.store.get_conversation(conversation_id)
            await chat.say("1+2?", turn_id, agent="desk")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.proof
@in_event_loop
async def test_what_a_killed_process_leaves_is_told_as_interrupted(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Hello.", "Here.")
    options = options_for(server, lock_seconds=20)
    async with open_chat(place, server, options=options) as chat:
        conversation = await chat.begin()
        await chat.say("Hi.")
        command = [sys.executable, "-c", PROCESS, place.url, conversation.conversation_id, "turn-1"]
        ended = await asyncio.to_thread(
            subprocess.run, command, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 9, ended.stderr
        assert [turn["status"] for turn in await chat.turns()] == ["done", "running"]
        assert (await chat.say("Are you there?")).text == "Here."
        told = [(turn["status"], turn["error_code"]) for turn in await chat.turns()]
        assert told == [("done", None), ("failed", "interrupted"), ("done", None)]
        assert short(await chat.items()) == "UAUUA", "the session is sound, and the message is still there"
        with pytest.raises(ConflictError, match="has gone on"):
            await chat.say("1+2?", "turn-1")
