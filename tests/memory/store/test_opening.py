"""Opening, continuing and closing conversations, and their settings."""

import asyncio
from typing import Any

import pytest

from recollect.errors import ConflictError
from recollect.memory.conversation import ConversationSettings
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place

SAID = [{"role": "user", "content": "I went to the zoo"}]


@in_event_loop
async def test_a_conversation_begins_without_messages_and_is_listed(place: Place) -> None:
    async with place.open() as store:
        opened = await store.open_conversation("agent", "user", session_id="s")
        assert (opened.turn_count, opened.session_id, opened.closed_at) == (0, "s", None)
        assert opened.memory_id is not None
        assert await store.get_conversation(opened.conversation_id) == opened
        (told,) = await store.list_conversations("agent", "user")
        assert (told["conversation_id"], told["summary"]) == (opened.conversation_id, "Empty conversation")
        assert await store.get_conversation_outline(opened.conversation_id) == told
        assert await store.list_runs() == []


@in_event_loop
async def test_the_same_opened_again_is_given_as_it_is(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        opened = await asyncio.gather(
            *(
                each.open_conversation("agent", "user", session_id="s", conversation_id="c")
                for each in (store, other) * 5
            )
        )
        assert len({(each.conversation_id, each.created_at) for each in opened}) == 1
        await store.append_messages("c", SAID)
        again = await store.open_conversation("agent", "user", conversation_id="c", memory_injection=True)
        assert [message.content for message in again.messages] == ["I went to the zoo"]
        assert (await settings_of(store)).memory_injection is None
        assert len(await store.list_conversations("agent", "user")) == 1


@in_event_loop
async def test_one_of_others_under_the_same_id_is_a_conflict(lasting_place: Place) -> None:
    async with lasting_place.open(tenant="a") as store, lasting_place.open(tenant="b") as stranger:
        await store.open_conversation("agent", "user", conversation_id="c")
        for opening in (
            store.open_conversation("agent", "somebody", conversation_id="c"),
            store.open_conversation("another", "user", conversation_id="c"),
            stranger.open_conversation("agent", "user", conversation_id="c"),
        ):
            with pytest.raises(ConflictError, match="another conversation has this conversation_id"):
                await opening
        assert [memory.user_id for memory in await store.list_memories()] == ["user"]
        assert await stranger.list_memories() == []


@in_event_loop
async def test_nothing_is_added_to_a_conversation_that_is_closed(place: Place) -> None:
    async with place.open() as store:
        await store.open_conversation("agent", "user", conversation_id="c")
        given = [{**SAID[0], "message_id": "m"}]
        placed = await store.append_messages("c", given, learn_after=600)
        closed = await store.close_conversation("c")
        assert closed is not None
        assert closed.closed_at is not None
        assert await store.close_conversation("c") == closed, "a second time changes nothing"
        assert len(await store.list_runs_of("c")) == 1
        for learn_after in (None, 1.0):
            with pytest.raises(ConflictError, match="closed"):
                await store.append_messages("c", SAID, learn_after=learn_after)
            assert await store.append_messages("c", given, learn_after=learn_after) == placed
        told = await store.get_conversation_outline("c")
        assert told is not None
        assert (told["turn_count"], told["closed_at"] is None) == (1, False)


@in_event_loop
async def test_what_is_not_there_is_none_also_for_another_tenant(lasting_place: Place) -> None:
    async with lasting_place.open() as store, lasting_place.open(tenant="other") as stranger:
        await store.open_conversation("agent", "user", conversation_id="c")
        for each, conversation_id in ((store, "unknown"), (stranger, "c")):
            assert await each.close_conversation(conversation_id) is None
            assert await each.get_conversation_outline(conversation_id) is None
            assert await each.list_messages(conversation_id) is None
            assert await each.get_conversation_settings(conversation_id) is None
            changed = await each.change_conversation_settings(conversation_id, memory_injection=True)
            assert changed is None
        assert (await settings_of(store)).version == 1


# --- settings ---


async def settings_of(store: MemoryStore, conversation_id: str = "c") -> ConversationSettings:
    settings = await store.get_conversation_settings(conversation_id)
    assert settings is not None
    return settings


@in_event_loop
async def test_settings_are_changed_one_by_one_and_cleared(place: Place) -> None:
    async with place.open() as store:
        strategy = {"mode": "trim", "max_user_turns": 3}
        await store.open_conversation(
            "agent", "user", conversation_id="c", memory_strategy=strategy, memory_injection=False
        )
        assert await settings_of(store) == ConversationSettings("c", strategy, False, None, 1)
        await store.change_conversation_settings("c", provider_conversation_id="conv_1")
        await store.change_conversation_settings("c", memory_injection=True)
        changed = await store.change_conversation_settings("c", memory_strategy=None)
        assert changed == ConversationSettings("c", None, True, "conv_1", 4)
        assert await settings_of(store) == changed
        assert await store.change_conversation_settings("c") == changed, "nothing was given"


@in_event_loop
async def test_settings_that_another_has_changed_are_not_overwritten(place: Place) -> None:
    async with place.open() as store:
        await store.open_conversation("agent", "user", conversation_id="c")
        await store.change_conversation_settings("c", memory_injection=True, version=1)
        with pytest.raises(ConflictError, match="were changed since they were read"):
            await store.change_conversation_settings("c", memory_injection=False, version=1)
        assert await settings_of(store) == ConversationSettings("c", None, True, None, 2)


@in_event_loop
async def test_of_those_who_change_one_version_at_once_one_does(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        await store.open_conversation("agent", "user", conversation_id="c")
        changes = [
            each.change_conversation_settings("c", provider_conversation_id=f"conv_{number}", version=1)
            for number, each in enumerate((store, other) * 4)
        ]
        outcomes = await asyncio.gather(*changes, return_exceptions=True)
        assert sum(isinstance(each, ConversationSettings) for each in outcomes) == 1
        assert sum(isinstance(each, ConflictError) for each in outcomes) == 7


BAD: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"memory_strategy": "trim"}, TypeError),
    ({"memory_strategy": {"mode": float("nan")}}, ValueError),
    ({"memory_strategy": {"mode": object()}}, ValueError),
    ({"memory_injection": "yes"}, TypeError),
    ({"provider_conversation_id": ""}, ValueError),
    ({"provider_conversation_id": "x" * 300}, ValueError),
]


@pytest.mark.parametrize(("given", "kind"), BAD, ids=range(len(BAD)))
@in_event_loop
async def test_settings_without_sense_are_refused(
    file_place: Place, given: dict[str, Any], kind: type[Exception]
) -> None:
    async with file_place.open() as store:
        await store.open_conversation("agent", "user", conversation_id="c")
        with pytest.raises(kind):
            await store.change_conversation_settings("c", **given)
        assert (await settings_of(store)).version == 1


@in_event_loop
async def test_settings_and_what_waits_survive_an_export(place: Place) -> None:
    async with place.open() as store:
        await store.open_conversation(
            "agent", "user", conversation_id="c", memory_strategy={"mode": "none"}, memory_injection=True
        )
        await store.append_messages("c", SAID, learn_after=600)
        exported = await store.export_user("user")
        await store.erase_user("user")
        await store.import_user(exported)
        assert await settings_of(store) == ConversationSettings("c", {"mode": "none"}, True, None, 1)
        assert (await store.coverage()).pending == 1
        await store.close_conversation("c")
        assert len(await store.list_runs_of("c")) == 1
