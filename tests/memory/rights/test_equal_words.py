"""Erasing one of several messages that say the same: the others stay, in the session and in the log too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from recollect import EventLog, open_session
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, Store
from .people import marked, rows_of
from .test_chats import TABLES


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(*parts: str, number: int = 0, **more: Any) -> dict[str, Any]:
    """An answer as the Responses API gives it."""
    content = [{"type": "output_text", "text": part, "annotations": [], **more} for part in parts]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": content}


@dataclass(frozen=True)
class Talk:
    """A conversation with its session and its log."""

    key: str
    store: Store
    session: Any
    log: EventLog

    async def say(self, *items: dict[str, Any]) -> None:
        """Say something, in all three."""
        await self.session.add_items(list(items))
        messages = [{"role": item["role"], "content": _words(item)} for item in items]
        await self.store.append_messages(self.key, messages, learn_after=600)
        await self.log.project(self.session, self.key)

    async def erase(self, place: int) -> dict[str, int]:
        """Erase the message at a place, and return how many rows of each kind went."""
        messages = await self.store.list_messages(self.key) or []
        receipt = await self.store.erase_message(self.key, messages[place].message_id)
        return dict(receipt.counts)

    async def items(self) -> list[str]:
        return [_words(item) for item in await self.session.get_items()]

    async def events(self) -> list[str | None]:
        return [event.text for event in await self.log.read(self.key)]


def _words(item: dict[str, Any]) -> str:
    content = item["content"]
    # As the Agents SDK puts parts together.
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@asynccontextmanager
async def talk(somewhere: Somewhere) -> AsyncIterator[Talk]:
    made = {"create_tables": somewhere.create_tables}
    async with somewhere.open() as store, EventLog(somewhere.url, **made) as log:
        conversation = await store.open_conversation(AGENT, "ann")
        key = conversation.conversation_id
        options = made if somewhere.create_tables else {}
        async with open_session(somewhere.url, key, advanced=True, **TABLES, **options) as session:
            yield Talk(key, store, session, log)


@in_event_loop
async def test_of_equal_messages_one_is_erased_and_none_comes_anew(shared: Somewhere) -> None:
    async with talk(shared) as talked:
        await talked.say(user("yes"), answer("fine", number=1), user("yes"), answer("fine", number=2))
        counts = await talked.erase(0)
        assert (counts["items"], counts["events"]) == (1, 1)
        assert await talked.items() == ["[erased]", "fine", "yes", "fine"]
        assert await talked.events() == [None, "fine", "yes", "fine"]
        assert await talked.log.project(talked.session, talked.key) == []
        await talked.erase(2)
        assert await talked.items() == ["[erased]", "fine", "yes", "[erased]"]
        assert await talked.events() == [None, "fine", "yes", None]
        await talked.say(user("yes"))
        assert await talked.events() == [None, "fine", "yes", None, "yes"]


@in_event_loop
async def test_equal_messages_that_are_erased_one_by_one_are_gone_in_the_end(shared: Somewhere) -> None:
    async with talk(shared) as talked:
        await talked.say(*[user("<secret>")] * 3)
        for left in (2, 1, 0):
            await talked.erase(left)
            assert (await talked.items()).count("<secret>") == left
            assert (await talked.events()).count("<secret>") == left
            assert await talked.log.project(talked.session, talked.key) == []
        assert marked(rows_of(shared.url), "<secret>") == {}


@in_event_loop
async def test_the_words_of_an_event_go_also_where_its_item_is_gone(shared: Somewhere) -> None:
    async with talk(shared) as talked:
        await talked.say(user("hello"), user("yes"), user("well"), user("yes"))
        await talked.session.clear_session()
        counts = await talked.erase(3)
        assert (counts["items"], counts["events"]) == (0, 1)
        assert await talked.events() == ["hello", "yes", "well", None]


@in_event_loop
async def test_an_answer_of_several_parts_goes_from_its_session_and_its_log(shared: Somewhere) -> None:
    async with talk(shared) as talked:
        quoted = {"logprobs": [{"token": "<1234>", "logprob": 0.0}]}
        await talked.say(user("My PIN?"), answer("Your PIN ", "is <1234>.", **quoted))
        counts = await talked.erase(1)
        assert (counts["items"], counts["events"]) == (1, 1)
        assert marked(rows_of(shared.url), "<1234>") == {}
        assert await talked.log.project(talked.session, talked.key) == []


@in_event_loop
async def test_a_refusal_goes_with_its_words(shared: Somewhere) -> None:
    async with talk(shared) as talked:
        said = {"role": "assistant", "content": "I will not <tell>"}
        await talked.store.append_messages(talked.key, [said], learn_after=600)
        part = {"type": "refusal", "refusal": said["content"]}
        await talked.session.add_items([{"type": "message", "role": "assistant", "content": [part]}])
        await talked.erase(0)
        assert marked(rows_of(shared.url), "<tell>") == {}
