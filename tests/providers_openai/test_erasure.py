"""Erasing a message of a chat: its copy in the session is looked up by its id."""

from recollect.sql.scripts import Statement
from recollect.testing.contract import in_event_loop

from .chats import Chat, Place, open_chat


async def links(chat: Chat) -> list[str]:
    """The ids of the messages that have a copy, in the order of the items."""
    sql = "SELECT message_id FROM message_items WHERE conversation_id = ?1 ORDER BY item_id"
    key = (chat.conversation.conversation_id,)
    return await chat.store._database.fetch(sql, key, lambda rows: [row[0] for row in rows])


async def erase(chat: Chat, place: int) -> tuple[int, int]:
    """Erase the message at a place; how many items and events were blanked."""
    messages = (await chat.whole()).messages
    receipt = await chat.store.erase_message(chat.conversation.conversation_id, messages[place].message_id)
    return receipt.counts["items"], receipt.counts["events"]


async def blanked(chat: Chat) -> str:
    """The items of the session in order: x for a blanked one."""
    return "".join("x" if "[erased]" in str(item["content"]) else "." for item in await chat.items())


@in_event_loop
async def test_every_item_of_a_chat_is_linked_to_its_message(place: Place) -> None:
    async with open_chat(place) as chat:
        key = (await chat.begin()).conversation_id
        await chat.store.append_messages(key, [{"role": "user", "content": "Said before."}])
        await chat.say("Yes.")
        await chat.say("Yes.")
        assert await links(chat) == [message.message_id for message in (await chat.whole()).messages]


@in_event_loop
async def test_of_equal_messages_the_copy_of_the_erased_one_is_blanked(place: Place) -> None:
    async with open_chat(place) as chat:
        await chat.begin()
        for _ in range(3):
            await chat.say("Yes.")
        assert await erase(chat, 2) == (1, 1)
        assert await blanked(chat) == "..x..."
        assert await erase(chat, 4) == (1, 1)
        assert await blanked(chat) == "..x..x"
        assert len(await links(chat)) == 4


@in_event_loop
async def test_items_of_an_earlier_release_have_no_links_and_are_found_by_their_words(place: Place) -> None:
    async with open_chat(place) as chat:
        await chat.begin()
        await chat.say("Yes.")
        await chat.say("Yes.")
        await chat.store._database.write(delete_links)
        await chat.say("Yes.")
        assert await erase(chat, 2) == (1, 1)
        assert await blanked(chat) == "..x..."
        assert await erase(chat, 3) == (1, 1)
        assert await blanked(chat) == "..x.x."


def delete_links():  # type: ignore[no-untyped-def]
    yield Statement("DELETE FROM message_items")


@in_event_loop
async def test_links_go_with_their_conversation(place: Place) -> None:
    async with open_chat(place) as chat:
        await chat.begin()
        await chat.say("Yes.")
        await chat.store.erase_conversation(chat.conversation.conversation_id)
        assert await links(chat) == []
