"""The contract on the Conversations API, as far as the API supports it."""

from typing import Any

import openai
import pytest

from recollect import Item, Session
from recollect.sessions.conversations import OpenAIConversationsSession
from recollect.sessions.protocol import Items
from recollect.sessions.wrappers import SessionWrapper
from recollect.testing import SessionContract
from recollect.testing.contract import ODD_ITEMS, in_event_loop
from recollect.testing.providers import ProviderServer


class InPlainForm(SessionWrapper):
    """Returns messages as the contract wrote them: the API adds ids and statuses, and makes parts."""

    async def get_items(self, limit: int | None = None) -> Items:
        return [in_plain_form(item) for item in await super().get_items(limit)]

    async def pop_item(self) -> Any:
        item = await super().pop_item()
        return None if item is None else in_plain_form(item)


def in_plain_form(item: Item) -> Item:
    match item:
        case {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}:
            return {"role": role, "content": text}
    return item


class TestOpenAIConversations(SessionContract):
    atomic = False
    in_plain_form = True

    @pytest.fixture(autouse=True)
    def provider(self, server: ProviderServer, client: openai.AsyncOpenAI) -> None:
        self.server = server
        self.client = client

    async def open_session(self, session_id: str) -> Session:
        self.server.conversations.add(session_id)
        session = OpenAIConversationsSession(conversation_id=session_id, openai_client=self.client)
        return InPlainForm(session) if self.in_plain_form else session

    def test_nobody_shares_an_item_with_the_store(self) -> None:
        """Without the plain form, which would hide the changed part."""
        self.in_plain_form = False
        super().test_nobody_shares_an_item_with_the_store()

    def test_is_a_session_of_the_agents_sdk(self) -> None:
        """Without the plain form, which is always a wrapper."""
        self.in_plain_form = False
        super().test_is_a_session_of_the_agents_sdk()

    @in_event_loop
    async def test_items_come_back_exactly(self) -> None:
        """Not supported: the API completes items that it knows and rejects others."""
        self.in_plain_form = False
        session = await self.open_session("s")
        known = [item for item in ODD_ITEMS if item.get("type") in ("reasoning", "function_call")]
        await session.add_items(known)
        stored = await session.get_items()
        assert [{key: one[key] for key in item} for one, item in zip(stored, known, strict=True)] == known
        with pytest.raises(openai.BadRequestError, match="of_the_future"):
            await session.add_items([item for item in ODD_ITEMS if item.get("type") == "of_the_future"])
        assert await session.get_items() == stored
