"""A turn of a chat: what is answered, and all that is kept of it."""

import pytest

from recollect.errors import ConflictError
from recollect.providers.errors import ChatFailedError
from recollect.providers.openai.registry import AgentDescriptor
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Reply, ToolCall, Usage

from .chats import COMPLETIONS, RESPONSES, Place, kinds, open_chat, options_for, short


@in_event_loop
async def test_an_answer_is_kept_in_every_place(place: Place, server: ProviderServer) -> None:
    server.responses.reply(Reply("Good morning, Ada.", usage=Usage(100, 20)))
    async with open_chat(place, server) as chat:
        await chat.begin()
        reply = await chat.say("Good morning.")
        assert (reply.text, reply.agent, reply.model) == ("Good morning, Ada.", "assistant", "gpt-test")
        assert reply.usage.total_tokens == 120
        assert await chat.said() == [("user", "Good morning."), ("assistant", "Good morning, Ada.")]
        assert short(await chat.items()) == "UA"
        events = await chat.provider.inspector.events_of(chat.conversation)
        assert [(event.role, event.text) for event in events] == await chat.said()
        assert [event.model for event in events] == [None, "gpt-test"]
        usage = await chat.provider.inspector.usage_of(chat.conversation)
        assert usage["totals"] == {
            "requests": 1,
            "input_tokens": 100,
            "output_tokens": 20,
            "total_tokens": 120,
        }
        (turn,) = usage["turns"]
        assert (turn["status"], turn["turn_id"], turn["total_tokens"]) == ("done", reply.turn_id, 120)
        assert (turn["branch"], turn["turn"]) == ("main", 1)
        assert chat.meter.tokens == {"acme": 120}


@pytest.mark.parametrize("api", ["responses", "chat_completions"])
@in_event_loop
async def test_a_model_sees_what_was_said_before(file_place: Place, server: ProviderServer, api: str) -> None:
    script = server.responses if api == "responses" else server.chat
    script.reply("Hello.", "You said hi.", "You said hi, and asked.")
    async with open_chat(file_place, server, options=options_for(server, api=api)) as chat:
        await chat.begin()
        for text in ("Hi.", "What did I say?", "And before?"):
            await chat.say(text)
        assert short(await chat.items()) == "UAUAUA"
        events = await chat.provider.inspector.events_of(chat.conversation)
        assert [(event.role, event.text) for event in events] == await chat.said()
        usage = await chat.provider.inspector.usage_of(chat.conversation)
        assert [turn["turn"] for turn in usage["turns"]] == [1, 2, 3]
        assert [turn["user_turn_number"] for turn in usage["by_turn"]] == [1, 2, 3]
        assert usage["totals"]["requests"] == 3
        assert usage["totals"]["total_tokens"] == sum(turn["total_tokens"] for turn in usage["turns"]) > 0
    asked = server.requests(RESPONSES if api == "responses" else COMPLETIONS)
    assert len(asked) == 3
    assert "What did I say?" in str(asked[-1].body)


TOOLS = "tests.providers_openai.tools_of_agents"
DESK = AgentDescriptor(
    "desk", "Be brief.", tools=(f"{TOOLS}:add", f"{TOOLS}:look_back"), handoffs=("expert",)
)
EXPERT = AgentDescriptor("expert", "Know everything.", model="gpt-expert")


@in_event_loop
async def test_tools_are_called_and_told_without_their_contents(place: Place, server: ProviderServer) -> None:
    server.responses.reply(ToolCall("add", {"a": 1, "b": 2}, "call_1"), "It is 3.")
    async with open_chat(place, server, [DESK, EXPERT]) as chat:
        await chat.begin()
        events = await chat.stream("1+2?", agent="desk")
        assert kinds(events) == ["turn.started", "tool.called", "tool.output", "text.delta", "turn.completed"]
        assert [event.data for event in events[1:3]] == [{"call_id": "call_1", "name": "add"}] * 2
        assert "".join(event.data["text"] for event in events if event.kind == "text.delta") == "It is 3."
        assert events[-1].data["tool_calls"] == [{"call_id": "call_1", "name": "add"}]
        assert events[-1].data["text"] == "It is 3."
        assert short(await chat.items()) == "UCOA"
        assert await chat.said() == [("user", "1+2?"), ("assistant", "It is 3.")]
        kept = await chat.provider.inspector.events_of(chat.conversation)
        assert [event.tool_name for event in kept] == [None, "add", "add", None]


@in_event_loop
async def test_a_tool_searches_the_conversations_of_the_user_who_speaks(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply(ToolCall("look_back", {"query": "Where is the key?"}), "Under the mat.")
    async with open_chat(file_place, server, [DESK, EXPERT]) as chat:
        for user, text in (("ada", "The key is under the mat."), ("bob", "The key is in the drawer.")):
            await chat.store.record_conversation("assistant", user, [{"role": "user", "content": text}])
        await chat.begin("ada")
        await chat.say("Where is the key?", agent="desk")
        (output,) = [
            item["output"] for item in await chat.items() if item.get("type") == "function_call_output"
        ]
    assert output == "The key is under the mat."


@in_event_loop
async def test_a_handoff_is_told_and_the_other_agent_answers(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply(ToolCall("transfer_to_expert"), "I know.")
    async with open_chat(file_place, server, [DESK, EXPERT]) as chat:
        await chat.begin()
        events = await chat.stream("An expert, please.", agent="desk")
        assert kinds(events) == ["turn.started", "agent.changed", "text.delta", "turn.completed"]
        assert events[0].data["model"] == "gpt-test"
        assert events[1].data == {"agent": "expert", "agent_id": "expert"}
        done = events[-1].data
        assert (done["agent"], done["model"], done["tool_calls"]) == ("expert", "gpt-expert", [])
        (turn,) = await chat.turns()
        assert (turn["agent"], turn["model"]) == ("expert", "gpt-expert")
    assert [request.body["model"] for request in server.requests(RESPONSES)] == ["gpt-test", "gpt-expert"]


# --- messages that were recorded, and not chatted ---


@in_event_loop
async def test_recorded_messages_are_seen_by_the_model(place: Place, server: ProviderServer) -> None:
    server.responses.reply("Noted.", "In Lisbon.", "Goodbye.")
    async with open_chat(place, server) as chat:
        conversation = await chat.begin()
        recorded = [
            {"role": "system", "content": "Speak Latin."},
            {"role": "user", "content": "I am in Lisbon."},
        ]
        await chat.store.append_messages(conversation.conversation_id, recorded)
        await chat.say("Where am I?")
        later = [{"role": "assistant", "content": "By the way."}, {"role": "user", "content": "Yes?"}]
        await chat.store.append_messages(conversation.conversation_id, later)
        await chat.say("And now?")
        await chat.say("Bye.")
        assert short(await chat.items()) == "SUUAAUUAUA"
        texts = [text for _, text in await chat.said()]
        events = await chat.provider.inspector.events_of(conversation)
        assert [event.text for event in events] == texts
    shown = [item["content"] for item in server.requests(RESPONSES)[0].body["input"]]
    assert shown == ["Speak Latin.", "I am in Lisbon.", "Where am I?"]


@in_event_loop
async def test_many_recorded_messages_are_put_into_the_session_once(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply("One.", "Two.")
    async with open_chat(file_place, server) as chat:
        conversation = await chat.begin()
        many = [{"role": "user", "content": f"message {number}"} for number in range(1201)]
        await chat.store.append_messages(conversation.conversation_id, many)
        await chat.say("How many?")
        await chat.say("Sure?")
        items = await chat.items()
    assert [item["content"] for item in items[:1202]] == [*(each["content"] for each in many), "How many?"]
    assert short(items[1202:]) == "AUA"


@in_event_loop
async def test_half_a_character_in_a_recorded_message_does_not_stop_a_chat(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Hello.")
    async with open_chat(file_place, server) as chat:
        conversation = await chat.begin()
        broken = [{"role": "user", "content": "half \ud83d, and NUL \0"}]
        await chat.store.append_messages(conversation.conversation_id, broken)
        assert (await chat.say("Hi.")).text == "Hello."
        with pytest.raises(ValueError, match="half a character"):
            await chat.say("\ud83d")
    assert server.requests(RESPONSES)[0].body["input"][0]["content"] == "half ?, and NUL \0"


# --- the same turn twice ---


@in_event_loop
async def test_the_same_turn_a_second_time_gives_the_recorded_answer(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply(ToolCall("add", {"a": 1, "b": 2}), "It is 3.", "Welcome.")
    async with open_chat(place, server, [DESK, EXPERT]) as chat:
        await chat.begin()
        first = await chat.say("1+2?", "turn-1", agent="desk")
        await chat.say("Thanks.")
        assert await chat.say("1+2?", "turn-1", agent="desk") == first
        again = await chat.stream("1+2?", "turn-1", agent="desk")
        assert kinds(again) == ["turn.started", "text.delta", "turn.completed"]
        assert again[-1].data["text"] == "It is 3."
        assert len(await chat.said()) == 4
        assert len(await chat.turns()) == 2
    assert len(server.requests(RESPONSES)) == 3


@in_event_loop
async def test_a_turn_that_failed_is_run_again_when_it_is_sent_again(
    place: Place, server: ProviderServer
) -> None:
    async with open_chat(place, server) as chat:
        await chat.begin()
        for _ in range(2):
            with pytest.raises(ChatFailedError) as raised:
                await chat.say("Hi.", "turn-1")
            assert raised.value.code == "model_refused"
        server.responses.reply("Hello.")
        assert (await chat.say("Hi.", "turn-1")).text == "Hello."
        assert await chat.said() == [("user", "Hi."), ("assistant", "Hello.")]
        assert [turn["status"] for turn in await chat.turns()] == ["done"]
    asked = [[item["content"] for item in each.body["input"]] for each in server.requests(RESPONSES)]
    assert asked == [["Hi."]] * 3


@in_event_loop
async def test_a_turn_that_failed_is_not_run_again_once_the_talk_has_gone_on(
    file_place: Place, server: ProviderServer
) -> None:
    async with open_chat(file_place, server) as chat:
        await chat.begin()
        with pytest.raises(ChatFailedError):
            await chat.say("Hi.", "turn-1")
        server.responses.reply("Hello.")
        await chat.say("Anybody?", "turn-2")
        with pytest.raises(ConflictError, match="has gone on"):
            await chat.say("Hi.", "turn-1")
        assert [turn["status"] for turn in await chat.turns()] == ["failed", "done"]
    assert len(server.requests(RESPONSES)) == 2


@in_event_loop
async def test_a_turn_id_of_another_conversation_gives_nothing_away(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply("A secret.")
    async with open_chat(file_place, server) as chat:
        await chat.begin("ada")
        await chat.say("Tell me.", "turn-1")
        await chat.begin("bob")
        with pytest.raises(ConflictError):
            await chat.say("Tell me.", "turn-1")
        assert await chat.said() == []


# --- what is refused ---


@in_event_loop
async def test_a_bad_request_writes_nothing(file_place: Place, server: ProviderServer) -> None:
    async with open_chat(file_place, server) as chat:
        await chat.begin()
        with pytest.raises(ValueError, match="must not be empty"):
            await chat.say("  ")
        with pytest.raises(ValueError, match="mode"):
            await chat.say("Hi.", memory_strategy={"mode": "sideways"})
        with pytest.raises(LookupError, match="there is no agent"):
            await chat.say("Hi.", agent="nobody")
        assert (await chat.said(), await chat.turns()) == ([], [])
        (failed,) = await chat.stream("Hi.", memory_strategy={"mode": "sideways"})
        assert (failed.kind, failed.data["code"]) == ("turn.failed", "validation_failed")
    assert server.requests() == []


@in_event_loop
async def test_a_closed_conversation_takes_no_turn(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply("Hello.")
    async with open_chat(file_place, server) as chat:
        conversation = await chat.begin()
        await chat.say("Hi.")
        await chat.store.close_conversation(conversation.conversation_id)
        with pytest.raises(ConflictError):
            await chat.say("Still there?")
        assert len(await chat.said()) == len(await chat.turns()) * 2 == 2


@in_event_loop
async def test_an_answer_without_words_is_a_failure(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply(Reply(" "), Reply(refusal="I will not."), "Fine.")
    async with open_chat(file_place, server) as chat:
        await chat.begin()
        for code in ("model_failed", "model_refused"):
            with pytest.raises(ChatFailedError) as raised:
                await chat.say("Speak.")
            assert raised.value.code == code
        assert (await chat.say("Please.")).text == "Fine."
        assert short(await chat.items()) == "UUUA"


# --- learning ---


@in_event_loop
async def test_a_chat_is_learned_from_when_it_is_closed_and_not_before(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Noted.")
    async with open_chat(place, server) as chat:
        conversation = await chat.begin()
        await chat.say("I live in Lisbon.")
        assert await chat.store.list_runs() == []
        await chat.store.close_conversation(conversation.conversation_id)
        (run,) = await chat.store.list_runs()
        assert run.conversation_id == conversation.conversation_id
