"""The end of a turn: one whose answer is stored is done, and one that lost its conversation harms nobody."""

import asyncio
import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from recollect.errors import StorageError
from recollect.providers.errors import ChatFailedError
from recollect.providers.openai.options import read_options
from recollect.providers.openai.registry import AgentDescriptor
from recollect.providers.values import ModelUsage
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ApiError, Garble, Hold, ProviderServer, Refuse, Reply, ToolCall, Usage

from ..sessions.postgres.database import sql
from .chats import COMPLETIONS, RESPONSES, Chat, Place, open_chat, options_for, short

TOOLS = "tests.providers_openai.tools_of_agents"
LEASES = "recollect_sdk_agent_sessions_leases"
ITEMS = "sdk_agent_session_messages"


def in_file(place: Place, text: str) -> None:
    with closing(sqlite3.connect(place.url)) as connection, connection:
        connection.execute(text)


def refuse(place: Place, what: str) -> None:
    """Have the database say no."""
    in_file(place, f"CREATE TRIGGER no BEFORE {what} BEGIN SELECT RAISE(ABORT, 'no'); END")


def allow(place: Place) -> None:
    in_file(place, "DROP TRIGGER no")


async def status_of(chat: Chat) -> list[tuple[str, str | None, int]]:
    return [(each["status"], each["error_code"], each["total_tokens"]) for each in await chat.turns()]


async def until_asked(server: ProviderServer) -> None:
    async with asyncio.timeout(60):
        while not server.requests(RESPONSES):  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.005)


async def leave_turn(chat: Chat, turn_id: str = "left") -> None:
    """What a process that died in the middle of a turn leaves behind: its beginning."""
    parts, turn = chat.provider._parts, chat.turn("Left?", turn_id)
    async with parts.sessions.chat(turn.conversation, turn.tenant, turn.conversation.conversation_id) as left:
        await chat.provider._runner._begin(turn, left, ModelUsage())


# --- an answer that is stored ---


WRITTEN_AT_THE_END = (
    "INSERT ON conversation_messages WHEN NEW.role = 'assistant'",
    "INSERT ON message_records WHEN (SELECT count(*) FROM message_records) > 0",
    f"INSERT ON {ITEMS} WHEN NEW.message_data LIKE '%assistant%'",
    f"INSERT ON recollect_{ITEMS}_structure WHEN NEW.message_type = 'assistant'",
    "INSERT ON message_items WHEN (SELECT count(*) FROM message_items) > 0",
    "INSERT ON recollect_sdk_agent_sessions_usage",
    "INSERT ON recollect_sdk_agent_sessions_runs",
    "INSERT ON conversation_events WHEN NEW.role = 'assistant'",
    "UPDATE ON chat_turns WHEN NEW.status = 'done'",
)


@pytest.mark.parametrize("what", WRITTEN_AT_THE_END)
@in_event_loop
async def test_the_end_of_a_turn_is_written_as_a_whole_or_not_at_all(
    file_place: Place, server: ProviderServer, what: str
) -> None:
    server.responses.reply("Lost.", "The answer.", "Another.")
    async with open_chat(file_place, server) as chat:
        await chat.begin()
        await chat.turns()
        await chat.provider.inspector.events_of(chat.conversation)
        await chat.provider.inspector.usage_of(chat.conversation)
        refuse(file_place, what)
        with pytest.raises(ChatFailedError) as raised:
            await chat.say("Hi.", "turn-1")
        assert raised.value.code == "storage_failed"
        allow(file_place)
        assert await chat.said() == [("user", "Hi.")]
        assert short(await chat.items()) == "U"
        assert (await chat.say("Hi.", "turn-1")).text == "The answer."
        await chat.say("And?")
        assert short(await chat.items()) == "UAUA"
        assert [each["status"] for each in await chat.turns()] == ["done", "done"]
        events = await chat.provider.inspector.events_of(chat.conversation)
        answers = ["The answer.", "And?", "Another."]
        assert [event.text for event in events if event.text != "Lost."] == ["Hi.", *answers]


@in_event_loop
async def test_a_turn_that_is_interrupted_while_its_answer_is_stored_is_done(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("The answer.")
    async with open_chat(place, server) as chat:
        await chat.begin()
        chat.meter.may_count.clear()
        waiting = asyncio.create_task(chat.say("Hi.", "turn-1"))
        await chat.meter.reached.wait()
        ending = asyncio.create_task(chat.provider.aclose(0))
        for _ in range(5):
            await asyncio.sleep(0)
        chat.meter.may_count.set()
        assert (await waiting).text == "The answer."
        await ending
    async with open_chat(place, server) as again:
        again.conversation = chat.conversation
        assert await again.said() == [("user", "Hi."), ("assistant", "The answer.")]
        assert [each["status"] for each in await again.turns()] == ["done"]
        assert short(await again.items()) == "UA"


@in_event_loop
async def test_a_turn_that_runs_again_adds_to_what_it_cost(file_place: Place, server: ProviderServer) -> None:
    call = ToolCall("add", {"a": 1, "b": 2})
    broken = Reply(error=ApiError(500, "no"), usage=Usage(0, 0))
    server.responses.reply(Reply(tool_calls=[call], usage=Usage(100, 10)), broken)
    desk = AgentDescriptor("desk", "Be brief.", tools=(f"{TOOLS}:add",))
    async with open_chat(file_place, server, [desk]) as chat:
        await chat.begin()
        with pytest.raises(ChatFailedError):
            await chat.say("1+2?", "turn-1", agent="desk")
        server.responses.reply(Reply("It is 3.", usage=Usage(5, 1)))
        reply = await chat.say("1+2?", "turn-1", agent="desk")
        assert reply.usage == ModelUsage(2, 105, 11)
        assert await status_of(chat) == [("done", None, 116)]
        assert chat.meter.tokens == {"acme": 116}


# --- a conversation that was lost ---


@in_event_loop
async def test_a_turn_that_lost_its_conversation_leaves_the_next_one_alone(
    place: Place, server: ProviderServer
) -> None:
    let_go = threading.Event()
    server.fail_next(RESPONSES, Hold(let_go))
    async with open_chat(place, server) as slow, open_chat(place, server) as quick:
        quick.conversation = await slow.begin()
        waiting = asyncio.create_task(slow.say("Slow?"))
        await until_asked(server)
        (in_file if "://" not in place.url else sql)(*_all_leases(place))
        costs = (Reply("Quick.", usage=Usage(100, 20)), Reply("Slow.", usage=Usage(10, 2)))
        server.responses.reply(*costs, "Third.")
        assert (await quick.say("Quick?")).text == "Quick."
        let_go.set()
        with pytest.raises(ChatFailedError) as raised:
            await waiting
        assert raised.value.code == "interrupted"
        assert await quick.said() == [("user", "Slow?"), ("user", "Quick?"), ("assistant", "Quick.")]
        assert short(await quick.items()) == "UUA"
        assert [each["status"] for each in await quick.turns()] == ["failed", "done"]
        assert (slow.meter.tokens, quick.meter.tokens) == ({"acme": 12}, {"acme": 120})
        assert (await quick.say("And?")).text == "Third."
        assert short(await quick.items()) == "UUAUA"


def _all_leases(place: Place) -> tuple[Any, str]:
    is_file = "://" not in place.url
    return (place if is_file else place.url), f"DELETE FROM {LEASES}"


@in_event_loop
async def test_a_branch_is_made_when_a_turn_that_was_left_is_ended(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Hello.", "Here.")
    async with open_chat(place, server) as chat:
        conversation = await chat.begin()
        await chat.say("Hi.")
        await leave_turn(chat)
        posted = [{"role": "user", "content": "Posted, and important."}]
        await chat.store.append_messages(conversation.conversation_id, posted)
        await chat.provider.inspector.create_branch(await chat.whole(), 2, "other")
        assert [each["status"] for each in await chat.turns()] == ["done", "failed"]
        await chat.provider.inspector.switch_branch(await chat.whole(), "main")
        await chat.say("Still there?")
        assert short(await chat.items()) == "UAUUUA"
    shown = [item["content"] for item in server.requests(RESPONSES)[-1].body["input"]]
    assert "Posted, and important." in shown


# --- the beginning of a turn ---


WRITTEN_AT_THE_BEGINNING = (
    "INSERT ON conversation_messages",
    "INSERT ON message_records",
    f"INSERT ON {ITEMS}",
    f"INSERT ON recollect_{ITEMS}_structure",
    "INSERT ON message_items",
    "INSERT ON conversation_events",
    "INSERT ON chat_turns",
)


@pytest.mark.parametrize("what", WRITTEN_AT_THE_BEGINNING)
@in_event_loop
async def test_the_beginning_of_a_turn_is_written_as_a_whole_or_not_at_all(
    file_place: Place, server: ProviderServer, what: str
) -> None:
    server.responses.reply("Hello.", "Found.")
    async with open_chat(file_place, server) as chat:
        await chat.begin()
        await chat.say("Hi.")
        refuse(file_place, what)
        with pytest.raises(StorageError):
            await chat.say("Lost?", "turn-2")
        allow(file_place)
        assert len(server.requests(RESPONSES)) == 1
        assert await chat.said() == [("user", "Hi."), ("assistant", "Hello.")]
        assert short(await chat.items()) == "UA"
        assert len(await chat.turns()) == 1
        assert (await chat.say("Lost?", "turn-2")).text == "Found."
        assert short(await chat.items()) == "UAUA"
        assert len(await chat.provider.inspector.events_of(chat.conversation)) == 4


@in_event_loop
async def test_messages_from_elsewhere_are_in_the_session_and_in_the_log_once(
    place: Place, server: ProviderServer
) -> None:
    """They come before a turn, and while it runs."""
    server.responses.reply("One.", "Two.", "Three.")
    let_go = threading.Event()
    async with open_chat(place, server) as chat:
        conversation_id = (await chat.begin()).conversation_id
        posted = [{"role": "assistant", "content": "Posted."}]
        await chat.store.append_messages(conversation_id, posted)
        await chat.say("1")
        server.fail_next(RESPONSES, Hold(let_go))
        waiting = asyncio.create_task(chat.say("2"))
        async with asyncio.timeout(60):
            while len(server.requests(RESPONSES)) < 2:  # noqa: ASYNC110 - the server is in another thread
                await asyncio.sleep(0.005)
        await chat.store.append_messages(conversation_id, posted)
        let_go.set()
        await waiting
        await chat.say("3")
        words = ["Posted.", "1", "One.", "2", "Two.", "Posted.", "3", "Three."]
        assert short(await chat.items()) == "AUAUAAUA"
        events = await chat.provider.inspector.events_of(chat.conversation)
        assert [event.text for event in events] == words


# --- how long a turn may take, and turns that never begin ---


@in_event_loop
async def test_a_turn_takes_no_longer_than_it_may(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply(ToolCall("hang"), "Here.")
    desk = AgentDescriptor("desk", "Hang.", tools=(f"{TOOLS}:hang",))
    async with open_chat(file_place, server, [desk], options_for(server, timeout_seconds=1)) as chat:
        await chat.begin()
        with pytest.raises(ChatFailedError) as raised:
            await chat.say("Hi.", agent="desk")
        assert raised.value.code == "model_unavailable"
        assert [each["error_code"] for each in await chat.turns()] == ["model_unavailable"]
        assert short(await chat.items()) == "U"


def test_the_settings_say_how_long_a_turn_may_take() -> None:
    options = read_options(SimpleNamespace(timeout_seconds=7.0))
    assert options.timeout_seconds == options.endpoint.timeout == 7.0


@pytest.mark.parametrize("is_streamed", [False, True])
@in_event_loop
async def test_a_turn_that_is_cancelled_before_it_begins_is_told_as_interrupted(
    file_place: Place, is_streamed: bool
) -> None:
    def cancelling(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **more)
        if work.__name__ == "_run_task":
            task.cancel()
        return task

    async with open_chat(file_place) as chat, asyncio.timeout(30):
        await chat.begin()
        asyncio.get_running_loop().set_task_factory(cancelling)
        if is_streamed:
            (event,) = await chat.stream("Hi.")
            assert (event.kind, event.data["code"]) == ("turn.failed", "interrupted")
        else:
            with pytest.raises(ChatFailedError) as raised:
                await chat.say("Hi.")
            assert raised.value.code == "interrupted"
        asyncio.get_running_loop().set_task_factory(None)


# --- agents ---


@in_event_loop
async def test_an_agent_without_a_model_answers_from_memory_after_a_handoff_too(
    file_place: Place, server: ProviderServer
) -> None:
    front = AgentDescriptor("front", "Hand over.", model="gpt-front", handoffs=("assistant",))
    server.responses.reply(ToolCall("transfer_to_assistant"), "Nobody configured me.")
    options = replace(options_for(server), model=None)
    async with open_chat(file_place, server, [front], options) as chat:
        await chat.begin()
        reply = await chat.say("Hello.", agent="front")
        assert (reply.agent, reply.model) == ("assistant", "offline")
    assert [each.body["model"] for each in server.requests(RESPONSES)] == ["gpt-front"]


@in_event_loop
async def test_half_a_character_from_a_model_fails_the_turn_and_not_the_next(
    file_place: Place, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    desk = AgentDescriptor("desk", "Be brief.", tools=(f"{TOOLS}:add",))
    call = {"name": "add", "arguments": '{"a": 1, "b": "\ud83d"}'}
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-test"}
    delta = {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": call}]}
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": "tool_calls"}
    told = json.dumps({**chunk, "choices": [choice]})
    server.fail_next(COMPLETIONS, Garble(f"data: {told}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"))
    options = options_for(server, api="chat_completions")
    async with open_chat(file_place, server, [desk], options) as chat:
        await chat.begin()
        with pytest.raises(ChatFailedError) as raised:
            await chat.say("1+2?", agent="desk")
        assert raised.value.code == "model_failed"
        assert short(await chat.items()) == "U"
        server.chat.reply("Here.")
        assert (await chat.say("Hi.", agent="desk")).text == "Here."
    assert "UnicodeEncodeError" in caplog.text


# --- what the provider keeps ---


@in_event_loop
async def test_conversations_at_the_provider_are_deleted_as_far_as_it_does(
    file_place: Place, server: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.responses.reply_always("Hello.")
    options = options_for(server, provider_conversations=True)
    async with open_chat(file_place, server, options=options) as chat:
        ids = []
        for user in ("ada", "bob"):
            ids.append((await chat.begin(user)).conversation_id)
            await chat.say("Hi.")
        plain = await chat.begin("eve")
        first = await chat.store.get_conversation_settings(ids[0])
        assert first is not None
        assert first.provider_conversation_id is not None
        assert await chat.provider.forget([ids[0], plain.conversation_id]) == 1
        (asked,) = server.requests("DELETE /v1/conversations/*")
        assert asked.path.endswith(first.provider_conversation_id)
        server.fail_next("DELETE /v1/conversations/*", Refuse(500, "secret words"))
        assert await chat.provider.forget(ids[1:]) == 0
        assert await chat.provider.forget(ids[1:]) == 1
    assert "provider conversation not deleted: conv_" in caplog.text
    assert "secret" not in caplog.text
