"""Looking at chats: branches, costs, events and views, also where nobody has chatted."""

import asyncio
import threading
from typing import Any

import pytest

from recollect.errors import ConflictError
from recollect.providers.errors import ConversationBusyError, UnknownBranchError
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import Hold, ProviderServer

from .chats import RESPONSES, Chat, Place, open_chat, short


async def names(chat: Chat) -> dict[str, bool]:
    """The branches, and which is current."""
    found = await chat.provider.inspector.branches_of(await chat.whole())
    return {branch["name"]: branch["is_current"] for branch in found}


@in_event_loop
async def test_a_chat_goes_on_in_a_branch_and_comes_back(place: Place, server: ProviderServer) -> None:
    server.responses.reply("One.", "Two.", "Another two.", "Three.")
    async with open_chat(place, server) as chat:
        conversation, looking = await chat.begin(), chat.provider.inspector
        await chat.say("1?")
        await chat.say("2?")
        made = await looking.create_branch(conversation, 2, "other")
        assert (made["name"], made["is_current"], made["item_count"]) == ("other", True, 2)
        assert (made["from_branch"], made["from_turn"], made["user_turn_count"]) == ("main", 2, 1)
        assert made["created_at"].endswith("Z")
        await chat.say("Another 2?")
        assert [item["content"] for item in await chat.items() if item["role"] == "user"] == [
            "1?",
            "Another 2?",
        ]
        switched = await looking.switch_branch(conversation, "main")
        assert (switched["name"], switched["from_turn"], switched["item_count"]) == ("main", None, 4)
        await chat.say("3?")
        assert short(await chat.items()) == "UAUAUA"
        assert await names(chat) == {"main": True, "other": False}
        turns = [(turn["branch"], turn["turn"]) for turn in await chat.turns()]
        assert turns == [("main", 1), ("main", 2), ("other", 2), ("main", 3)]
        assert len(await chat.said()) == 8, "the durable history has all of it"
        assert len(await looking.events_of(conversation)) == 8
    seen = [item["content"] for item in server.requests(RESPONSES)[2].body["input"] if item["role"] == "user"]
    assert seen == ["1?", "Another 2?"]


@in_event_loop
async def test_branches_are_refused_by_what_is_wrong(place: Place, server: ProviderServer) -> None:
    server.responses.reply("One.")
    async with open_chat(place, server) as chat:
        conversation, looking = await chat.begin(), chat.provider.inspector
        await chat.say("1?")
        await looking.create_branch(conversation, 1, "other")
        for name in ("other", "main"):
            with pytest.raises(ConflictError):
                await looking.create_branch(conversation, 1, name)
            with pytest.raises(ConflictError):
                await looking.delete_branch(conversation, name)
        await looking.switch_branch(conversation, "main")
        with pytest.raises(ValueError, match="no user turn 7"):
            await looking.create_branch(conversation, 7)
        with pytest.raises(UnknownBranchError):
            await looking.switch_branch(conversation, "nowhere")
        assert await looking.delete_branch(conversation, "other")
        assert not await looking.delete_branch(conversation, "other")
        assert await names(chat) == {"main": True}


@in_event_loop
async def test_a_branch_deleted_does_not_bring_recorded_messages_twice(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply_always("Yes.")
    async with open_chat(file_place, server) as chat:
        conversation, looking = await chat.begin(), chat.provider.inspector
        await chat.store.append_messages(
            conversation.conversation_id, [{"role": "user", "content": "Recorded."}]
        )
        await chat.say("1?")
        await looking.create_branch(conversation, 2)
        await looking.switch_branch(conversation, "main")
        (made,) = set(await names(chat)) - {"main"}
        await looking.delete_branch(conversation, made)
        await chat.say("2?")
        assert short(await chat.items()) == "UUAUA"


@in_event_loop
async def test_no_branch_is_changed_under_a_turn(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply("One.", "Two.")
    let_go = threading.Event()
    async with open_chat(file_place, server) as chat:
        conversation, looking = await chat.begin(), chat.provider.inspector
        await chat.say("1?")
        server.fail_next(RESPONSES, Hold(let_go))
        running = asyncio.create_task(chat.say("2?"))
        async with asyncio.timeout(60):
            while len(server.requests(RESPONSES)) < 2:  # noqa: ASYNC110 - it is in another thread
                await asyncio.sleep(0.005)
        with pytest.raises(ConversationBusyError):
            await looking.create_branch(conversation, 1)
        let_go.set()
        await running
        assert await names(chat) == {"main": True}


# --- conversations that were recorded, and not chatted in ---

RECORDED: list[dict[str, Any]] = [
    {"role": "user", "content": "One."},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Two."},
]


@in_event_loop
async def test_a_recorded_conversation_can_be_looked_at(place: Place) -> None:
    async with open_chat(place) as chat:
        looking = chat.provider.inspector
        told = await chat.store.record_conversation("someone", "ada", RECORDED)
        (main,) = await looking.branches_of(told)
        assert (main["name"], main["is_current"], main["item_count"], main["turn_count"]) == (
            "main",
            True,
            3,
            2,
        )
        usage = await looking.usage_of(told)
        assert (usage["totals"]["total_tokens"], usage["by_turn"], usage["turns"]) == (0, [], [])
        assert await looking.events_of(told, None, 10) == []
        assert await looking.view_of(told) == RECORDED
        assert await looking.view_of(told, {"mode": "trim", "max_user_turns": 1}) == RECORDED[2:]
        assert (await looking.switch_branch(told, "main"))["is_current"]
        with pytest.raises(UnknownBranchError):
            await looking.switch_branch(told, "other")
        assert not await looking.delete_branch(told, "other")
        (still,) = await looking.branches_of(told)
        assert still == main


@in_event_loop
async def test_a_branch_of_a_recorded_conversation_is_chatted_in(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Indeed.")
    async with open_chat(place, server) as chat:
        told = await chat.store.record_conversation("assistant", "ada", RECORDED)
        chat.conversation = told
        made = await chat.provider.inspector.create_branch(told, 2, "other")
        assert (made["item_count"], made["from_turn"]) == (2, 2)
        await chat.say("Another two.")
        assert [item["content"] for item in server.requests(RESPONSES)[0].body["input"]] == [
            "One.",
            "Yes.",
            "Another two.",
        ]


@in_event_loop
async def test_a_view_is_what_the_next_turn_would_see(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply_always("Yes.")
    strategy = {"mode": "trim", "max_user_turns": 2, "keep_last_user_turns": 1}
    async with open_chat(file_place, server) as chat:
        conversation = await chat.begin(memory_strategy=strategy)
        for number in range(4):
            await chat.say(f"{number}?")
            view = await chat.provider.inspector.view_of(await chat.whole())
            assert view[-2]["content"] == f"{number}?"
        recorded = [{"role": "user", "content": "By the way."}]
        await chat.store.append_messages(conversation.conversation_id, recorded)
        view = await chat.provider.inspector.view_of(await chat.whole())
        await chat.say("And?")
        seen = server.requests(RESPONSES)[-1].body["input"]
        assert [item["content"] for item in view if item["role"] == "user"] == ["By the way."]
        assert [item["content"] for item in seen if item["role"] == "user"][-2:] == ["By the way.", "And?"]


@in_event_loop
async def test_events_are_told_page_by_page(file_place: Place, server: ProviderServer) -> None:
    server.responses.reply_always("Yes.")
    async with open_chat(file_place, server) as chat:
        conversation = await chat.begin()
        for number in range(3):
            await chat.say(f"{number}?")
        looking = chat.provider.inspector
        first = await looking.events_of(conversation, None, 4)
        rest = await looking.events_of(conversation, first[-1].sequence_number, 4)
    assert [event.sequence_number for event in [*first, *rest]] == list(range(6))
