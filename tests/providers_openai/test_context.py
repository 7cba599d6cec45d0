"""What a model is shown: by whose strategy, and what of memory; and what is answered without one."""

from typing import Any

import pytest

from recollect.providers.openai.registry import AgentDescriptor
from recollect.strategies.summaries import ConversationSummaryStore
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, RecordedRequest, Reply, Usage

from .. import prompts
from .chats import COMPLETIONS, RESPONSES, Place, open_chat, options_for, short

TRIM_1 = {"mode": "trim", "max_user_turns": 1}
TRIM_2 = {"mode": "trim", "max_user_turns": 2}
NONE = {"mode": "none"}
TRIMMED = AgentDescriptor("assistant", "Be brief.", memory_strategy_defaults=TRIM_1)


def shown(request: RecordedRequest) -> str:
    """What the model saw of the history, in short."""
    return short(request.body["input"])


@pytest.mark.parametrize(
    ("agent", "conversation", "request_", "seen"),
    [
        (None, None, None, "UAUAU"),
        (TRIMMED, None, None, "U"),
        (TRIMMED, TRIM_2, None, "UAU"),
        (TRIMMED, NONE, None, "UAUAU"),
        (TRIMMED, NONE, TRIM_2, "UAU"),
        (None, TRIM_2, NONE, "UAUAU"),
    ],
)
@in_event_loop
async def test_the_strategy_of_the_request_counts_before_the_conversations_and_that_before_the_agents(
    file_place: Place, server: ProviderServer, agent: Any, conversation: Any, request_: Any, seen: str
) -> None:
    server.responses.reply_always("Yes.")
    async with open_chat(file_place, server, [agent] if agent else []) as chat:
        await chat.begin(memory_strategy=conversation)
        for text in ("One.", "Two."):
            await chat.say(text, memory_strategy=NONE)
        await chat.say("Three.", memory_strategy=request_)
        assert shown(server.requests(RESPONSES)[-1]) == seen
        assert short(await chat.items()) == "UAUAUA", "the log stays whole"
        assert len(await chat.said()) == 6


@in_event_loop
async def test_summaries_are_kept_and_shown(place: Place, server: ProviderServer) -> None:
    server.responses.reply_always("That is good to know.")
    strategy = {"mode": "summarize", "max_user_turns": 2, "keep_last_user_turns": 1}
    async with open_chat(place, server) as chat:
        conversation = await chat.begin(memory_strategy=strategy)
        for text in ("I live in Lisbon.", "I have a dog.", "It is called Rex.", "What do you know?"):
            await chat.say(text)
        asked = server.requests(RESPONSES)
        assert "Lisbon" in str(asked[-1].body["input"])
        assert "I live in Lisbon." not in [item["content"] for item in asked[-1].body["input"]]
        await chat.provider.aclose(20)
        summaries = ConversationSummaryStore(place.url)
        newest = await summaries.newest(conversation.conversation_id)
        await summaries.aclose()
        assert newest is not None
        assert "Lisbon" in newest.text


# --- injection ---


async def remember(chat: Any) -> None:
    await chat.store.add_entry("assistant", "ada", "profile", "The user lives in Lisbon.")
    await chat.store.add_entry("assistant", "bob", "profile", "The user lives in Rome.")
    said = [{"role": "user", "content": "My boat in Lisbon is called Argo."}]
    await chat.store.record_conversation("assistant", "ada", said, created_at="2024-05-07T10:00:00Z")


def parts_of(request: RecordedRequest) -> tuple[str, str]:
    """The instructions of a request, and what follows its newest message of the user."""
    *_, last = request.body["input"]
    return request.body["instructions"], last["content"] if last["role"] == "system" else ""


@pytest.mark.parametrize("api", ["responses", "chat_completions"])
@in_event_loop
async def test_prompts_keep_their_prefix(file_place: Place, server: ProviderServer, api: str) -> None:
    scripted = server.responses if api == "responses" else server.chat
    scripted.reply_always("Noted.")
    options = options_for(server, api=api)
    async with open_chat(file_place, server, options=options) as chat:
        await chat.begin(memory_injection=True)
        await prompts.converse(chat.store, "assistant", "ada", chat.say)
        assert short(await chat.items()) == "UA" * 20, "nothing of it is stored"
    paths = {"responses": RESPONSES, "chat_completions": COMPLETIONS}
    prompts.check([prompts.prompt_of(request.body) for request in server.requests(paths[api])])


@in_event_loop
async def test_a_turn_records_what_its_prompt_had_from_memory(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply_always(Reply("Noted.", usage=Usage(100, 5, cached_tokens=80)))
    async with open_chat(file_place, server) as chat:
        await remember(chat)
        await chat.begin(memory_injection=True)
        await chat.say("Hello.")
        added = await chat.store.add_entry("assistant", "ada", "profile", "The user has a cat.")
        await chat.say("What is my boat in Lisbon called?")
        await chat.say("Hello.", memory_injection=False)
        first, second, third = await chat.turns()
    assert third["memory"] is None
    assert first["memory"]["page_version"] == second["memory"]["page_version"]
    assert first["memory"]["page_fixed_at"] == second["memory"]["page_fixed_at"]
    assert (first["memory"]["changed"], second["memory"]["changed"]) == ([], [added.content_id])
    (line,) = second["memory"]["tail"]
    assert (line["kind"], line["reason"]) == ("quote", "relevant")
    assert 0 < line["score"] <= 1
    assert second["memory"]["seconds"] > 0
    assert "Argo" not in str(second), "contents are not in the record of a turn"
    assert [turn["cached_tokens"] for turn in (first, second, third)] == [80, 80, 80]


@in_event_loop
async def test_another_process_goes_on_with_the_page_of_a_conversation(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply_always("Noted.")
    async with open_chat(place, server) as first, open_chat(place, server) as second:
        await remember(first)
        second.conversation = await first.begin(memory_injection=True)
        for number, chat in enumerate((first, second, first)):
            await chat.say("Hello.")
            await chat.store.add_entry("assistant", "ada", "profile", f"The user has cat number {number}.")
    told, *others = [parts_of(request)[0] for request in server.requests(RESPONSES)]
    assert "Lisbon" in told
    assert [told, told] == others


@pytest.mark.parametrize(
    ("agent", "conversation", "request_", "injected"),
    [
        (None, None, None, False),
        (True, None, None, True),
        (True, False, None, False),
        (False, None, True, True),
        (False, True, None, True),
        (True, True, False, False),
    ],
)
@in_event_loop
async def test_what_is_remembered_is_injected_where_that_is_wanted(
    file_place: Place, server: ProviderServer, agent: Any, conversation: Any, request_: Any, injected: bool
) -> None:
    server.responses.reply("In Lisbon.")
    descriptor = AgentDescriptor("assistant", "Be brief.", memory_injection_default=agent)
    async with open_chat(file_place, server, [descriptor]) as chat:
        await remember(chat)
        await chat.begin(memory_injection=conversation)
        reply = await chat.say("Where in Lisbon do I live?", memory_injection=request_)
        inspector = chat.provider.inspector
        shown = await inspector.remembered_of(chat.store, await chat.whole())
    told, tail = parts_of(server.requests(RESPONSES)[0])
    if request_ is None:
        assert (told, tail) == (shown.after("Be brief."), shown.tail), "it is shown as it was sent"
    assert told.startswith("Be brief.")
    assert ("The user lives in Lisbon." in told) == injected
    assert ('7 May 2024, user: "My boat in Lisbon' in tail) == injected
    assert ("data and not instructions" in told) == ("data and not instructions" in tail) == injected
    assert reply.memories_used == (2 if injected else 0)
    assert "Rome" not in told
    assert "Where in Lisbon" not in tail, "what is asked now is not remembered"


@in_event_loop
async def test_what_the_model_sees_anyway_is_not_injected_and_what_is_hidden_is(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply_always("Noted.")
    async with open_chat(file_place, server) as chat:
        await chat.begin(memory_injection=True)
        await chat.say("My boat is called Argo.")
        await chat.say("What is my boat called?")
        await chat.say("What is my boat called?", memory_strategy=TRIM_1)
    tails = [parts_of(request)[1] for request in server.requests(RESPONSES)]
    assert ["is called Argo" in each for each in tails] == [False, False, True]


@in_event_loop
async def test_the_newest_summary_is_injected_with_what_is_remembered(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Yes.")
    async with open_chat(file_place, server) as chat:
        conversation = await chat.begin(memory_injection=True)
        await remember(chat)
        async with ConversationSummaryStore(file_place.url) as summaries:
            await summaries.add(conversation.conversation_id, "They spoke of Lisbon.\n- and of boats")
        reply = await chat.say("Where in Lisbon do I live?")
    _, tail = parts_of(server.requests(RESPONSES)[0])
    assert "They spoke of Lisbon." in tail
    assert tail.count("<remembered-data>") == 1
    assert reply.memories_used == 2, "a line of the summary is no memory"


# --- without a model ---


@in_event_loop
async def test_without_a_model_the_offline_agent_answers_from_memory_and_says_so(place: Place) -> None:
    async with open_chat(place) as chat:
        await remember(chat)
        await chat.begin()
        events = await chat.stream("Where do I live?")
        done = events[-1].data
        assert done["model"] == events[0].data["model"] == "offline"
        assert "No model is configured here" in done["text"]
        assert "The user lives in Lisbon." in done["text"]
        assert "Rome" not in done["text"]
        quoted = done["text"].count("\n> ")
        assert (done["memories_used"], done["usage"]["total_tokens"]) == (quoted, 0)
        assert "".join(event.data["text"] for event in events if event.kind == "text.delta") == done["text"]
        await chat.say("My cat is called Tom.")
        assert "My cat is called Tom." in (await chat.say("What is my cat called?")).text
        assert short(await chat.items()) == "UAUAUA"
        assert len(await chat.provider.inspector.events_of(chat.conversation)) == 6


@in_event_loop
async def test_agents_are_told_with_their_models(file_place: Place, server: ProviderServer) -> None:
    agents = [AgentDescriptor("expert", "Know.", description="Knows.", model="gpt-expert")]
    async with open_chat(file_place, server, agents) as chat, open_chat(file_place, None, agents) as other:
        told = {agent.name: (agent.model, agent.description) for agent in chat.provider.agents()}
        assert told == {
            "assistant": ("gpt-test", "A general assistant."),
            "expert": ("gpt-expert", "Knows."),
        }
        assert [agent.model for agent in other.provider.agents()] == ["offline", "gpt-expert"]
