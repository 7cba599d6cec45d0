"""Conversations at the provider, with the real client over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest

from recollect import ModelRefusedError, ModelUnavailableError
from recollect.providers.openai.remote_conversations import ConversationClient
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import CloseBefore, ProviderServer, Refuse, WrongKey


@asynccontextmanager
async def client_of(server: ProviderServer, key: str | None = None) -> AsyncIterator[ConversationClient]:
    made = openai.AsyncOpenAI(base_url=server.base_url, api_key=key or server.api_key, max_retries=0)
    async with made as client:
        yield ConversationClient(client)


@in_event_loop
async def test_a_conversation_is_made_with_its_metadata_and_deleted(server: ProviderServer) -> None:
    async with client_of(server) as client:
        made = await client.create({"agent": "support"})
        assert made.startswith("conv_")
        (asked,) = server.requests("POST /v1/conversations")
        assert asked.body["metadata"] == {"agent": "support"}
        assert server.conversations.known_items(made) == []
        assert await client.delete(made) is True
        assert await client.delete(made) is False


@in_event_loop
async def test_each_conversation_has_an_id_of_its_own(server: ProviderServer) -> None:
    async with client_of(server) as client:
        assert await client.create() != await client.create()


@in_event_loop
async def test_a_provider_that_is_not_there_now_may_be_there_later(server: ProviderServer) -> None:
    server.fail_next("POST /v1/conversations", Refuse(429, "secret words", retry_after=7))
    server.fail_next("POST /v1/conversations", Refuse(503))
    server.fail_next("POST /v1/conversations", CloseBefore())
    async with client_of(server) as client:
        with pytest.raises(ModelUnavailableError, match="answered 429") as caught:
            await client.create()
        assert caught.value.retry_after == 7
        assert "secret" not in str(caught.value)
        assert isinstance(caught.value.__cause__, openai.RateLimitError)
        with pytest.raises(ModelUnavailableError, match="answered 503"):
            await client.create()
        with pytest.raises(ModelUnavailableError, match="no connection to the provider"):
            await client.create()
        assert (await client.create()).startswith("conv_")


@in_event_loop
async def test_a_provider_that_refuses_will_do_so_again(server: ProviderServer) -> None:
    server.fail_next("DELETE /v1/conversations/*", WrongKey())
    async with client_of(server, key="wrong-key") as client:
        with pytest.raises(ModelRefusedError, match="answered 401") as caught:
            await client.create()
        assert "wrong-key" not in str(caught.value)
        with pytest.raises(ModelRefusedError, match="answered 401"):
            await client.delete("conv_1")


@in_event_loop
async def test_an_empty_id_is_refused_before_anything_is_asked(server: ProviderServer) -> None:
    async with client_of(server) as client:
        with pytest.raises(ValueError, match="conversation_id must be"):
            await client.delete("")
    assert server.requests() == []
