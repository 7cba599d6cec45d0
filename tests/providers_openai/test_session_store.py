"""Where the items of chats are: tables of their own, owned sessions, a shared engine."""

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import AdvancedSQLiteSession, MemoryStore
from recollect.errors import ConflictError
from recollect.providers.openai.options import ChatOptions, read_options
from recollect.providers.openai.provider import build_openai_provider
from recollect.providers.openai.sessions import OpenAISQLAlchemySessionStore, owner_of
from recollect.providers.values import ChatTurn
from recollect.strategies.summaries import ConversationSummaryStore
from recollect.testing.contract import in_event_loop, message
from recollect.testing.providers import Hold, ProviderServer, Refuse

from .chats import RESPONSES, Place, open_chat, options_for, short


@in_event_loop
async def test_chats_leave_other_advanced_sessions_in_a_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "all.db"
    async with AdvancedSQLiteSession(session_id="mine", db_path=path) as session:
        await session.add_items([message("mine")])
        async with open_chat(Place(str(path))) as chat:
            await chat.begin()
            await chat.say("Hi.")
            assert short(await chat.items()) == "UA"
        assert len(await session.get_items()) == 1
        assert [branch["message_count"] for branch in await session.list_branches()] == [1]


@in_event_loop
async def test_a_session_names_its_owner(place: Place) -> None:
    async with open_chat(place) as chat:
        conversation = await chat.begin()
        await chat.say("Hi.")
        async with OpenAISQLAlchemySessionStore(place.url).open(conversation.conversation_id) as session:
            found = await session.get_metadata()
        assert (found.user_id, found.agent_id) == ("ada", "assistant")
        assert found.data["tenant"] == "acme"


@in_event_loop
async def test_the_session_of_another_conversation_is_not_to_be_had(place: Place) -> None:
    async with open_chat(place) as chat:
        other = await chat.begin("bob")
        await chat.say("A secret.")
        mine = await chat.begin("ada")
        await chat.store.change_conversation_settings(
            mine.conversation_id, provider_conversation_id=other.conversation_id
        )
        for look in (chat.provider.inspector.view_of, chat.provider.inspector.usage_of):
            with pytest.raises(ConflictError):
                await look(mine)
        with pytest.raises(ConflictError):
            await chat.say("Tell me.")


@in_event_loop
async def test_all_parts_work_on_one_engine_that_is_given(place: Place, server: ProviderServer) -> None:
    server.responses.reply("Hello.")
    url = place.url.replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(url if "://" in url else f"sqlite+aiosqlite:///{url}")
    async with MemoryStore(place.url, embedder=None, workers=0) as store:
        conversation = await store.open_conversation("assistant", "ada")
        provider = build_openai_provider(
            engine=engine, settings=options_for(server), create_tables="://" not in url
        )
        turn = ChatTurn(store, "default", conversation, "assistant", "Hi.", "turn-1")
        assert (await provider.run(turn)).text == "Hello."
        assert len(await provider.inspector.events_of(conversation)) == 2
        await provider.aclose()
        async with engine.connect() as connection:
            assert not connection.closed, "whoever made the engine disposes of it"
    await engine.dispose()


def test_a_database_that_parts_cannot_share_is_refused() -> None:
    with pytest.raises(ValueError, match="can share"):
        build_openai_provider(":memory:")
    with pytest.raises(ValueError, match="one of them"):
        build_openai_provider()


def test_options_are_read_from_settings_of_a_service() -> None:
    class Secret:
        def get_secret_value(self) -> str:
            return "key"

    class Settings:
        model = "m"
        base_url = "http://127.0.0.1:1/v1"
        api_key = Secret()
        lock_seconds = 3.0
        timeout_seconds = 7.0
        provider_conversations = True

    read = read_options(Settings(), 60)
    assert (read.model, read.lock_seconds, read.quiet_seconds) == ("m", 3.0, 60)
    assert (read.endpoint.api_key, read.endpoint.timeout, read.provider_conversations) == ("key", 7.0, True)
    assert "key" not in repr(read)
    assert read_options(ChatOptions(model="x")) == ChatOptions(model="x")


# --- conversations at the provider ---


@in_event_loop
async def test_the_session_goes_by_the_providers_id_where_it_gives_one(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("One.", "Two.")
    options = options_for(server, provider_conversations=True)
    async with open_chat(place, server, options=options) as chat:
        conversation = await chat.begin()
        await chat.say("1?")
        await chat.say("2?")
        settings = await chat.store.get_conversation_settings(conversation.conversation_id)
        assert settings is not None
        assert str(settings.provider_conversation_id).startswith("conv_")
        assert short(await chat.items()) == "UAUA"
        store = OpenAISQLAlchemySessionStore(place.url)
        async with store.open(str(settings.provider_conversation_id)) as session:
            assert short(await session.get_items()) == "UAUA"
        events = await chat.provider.inspector.events_of(conversation)
        assert len(events) == 4, "events stand under our own id"
    assert len(server.requests("POST /v1/conversations")) == 1
    assert "conversation" not in server.requests(RESPONSES)[0].body


@in_event_loop
async def test_a_provider_that_makes_no_conversation_does_not_stop_the_chat(
    file_place: Place, server: ProviderServer
) -> None:
    server.responses.reply("One.", "Two.")
    server.fail_next("POST /v1/conversations", Refuse(500))
    options = options_for(server, provider_conversations=True)
    async with open_chat(file_place, server, options=options) as chat:
        conversation = await chat.begin()
        await chat.say("1?")
        await chat.say("2?")
        settings = await chat.store.get_conversation_settings(conversation.conversation_id)
        assert settings is not None
        assert settings.provider_conversation_id is None, "a session that has begun keeps its name"
        assert short(await chat.items()) == "UAUA"


# --- rights ---


@in_event_loop
async def test_a_conversation_erased_while_a_turn_runs_leaves_nothing(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Hello.", "Xylophones are made of wood.")
    let_go = threading.Event()
    async with open_chat(place, server) as chat:
        conversation = await chat.begin()
        await chat.say("Hi.")
        server.fail_next(RESPONSES, Hold(let_go))
        stream = chat.provider.stream(chat.turn("Tell me of xylophones."))
        await anext(stream)
        await chat.store.erase_conversation(conversation.conversation_id)
        let_go.set()
        last = [event async for event in stream][-1]
        assert (last.kind, last.data["code"]) == ("turn.failed", "interrupted")
        async with OpenAISQLAlchemySessionStore(place.url).open(conversation.conversation_id) as session:
            assert await session.get_items() == []
            assert (await session.get_metadata()).data == {}
        assert await chat.provider.inspector.events_of(conversation) == []


@in_event_loop
async def test_a_turn_that_fails_after_its_conversation_was_erased_is_interrupted(
    place: Place, server: ProviderServer
) -> None:
    """The erased session is empty, so the model may be sent nothing, and refuses that."""
    let_go = threading.Event()
    server.fail_next(RESPONSES, Hold(let_go), Refuse(400))
    async with open_chat(place, server) as chat:
        conversation = await chat.begin()
        stream = chat.provider.stream(chat.turn("Tell me of xylophones."))
        await anext(stream)
        while not server.requests(RESPONSES):  # noqa: ASYNC110 - it arrives in another thread
            await asyncio.sleep(0.01)
        await chat.store.erase_conversation(conversation.conversation_id)
        let_go.set()
        last = [event async for event in stream][-1]
        assert (last.kind, last.data["code"]) == ("turn.failed", "interrupted")


@pytest.mark.parametrize("erase", ["the conversation", "the user"])
@in_event_loop
async def test_what_is_erased_takes_the_session_events_and_summaries_with_it(
    place: Place, server: ProviderServer, erase: str
) -> None:
    server.responses.reply_always("That is good to know.")
    options = options_for(server, provider_conversations=True)
    async with open_chat(place, server, options=options) as chat:
        conversation = await chat.begin(memory_strategy={"mode": "summarize", "max_user_turns": 1})
        for text in ("I live in Lisbon.", "I have a dog.", "It is called Rex."):
            await chat.say(text)
        settings = await chat.store.get_conversation_settings(conversation.conversation_id)
        session_id = str(settings and settings.provider_conversation_id)
        async with ConversationSummaryStore(place.url) as summaries:
            assert await summaries.newest(session_id) is not None
            if erase == "the user":
                await chat.store.erase_user("ada")
            else:
                await chat.store.erase_conversation(conversation.conversation_id)
            assert await summaries.newest(session_id) is None
        async with OpenAISQLAlchemySessionStore(place.url).open(session_id) as session:
            assert await session.get_items() == []
        assert await chat.provider.inspector.events_of(conversation) == []


@in_event_loop
async def test_a_conversation_closed_while_a_turn_runs_takes_its_answer(
    place: Place, server: ProviderServer
) -> None:
    server.responses.reply("Just in time.")
    let_go = threading.Event()
    async with open_chat(place, server) as chat:
        conversation = await chat.begin()
        server.fail_next(RESPONSES, Hold(let_go))
        stream = chat.provider.stream(chat.turn("Hi."))
        await anext(stream)
        await chat.store.close_conversation(conversation.conversation_id)
        let_go.set()
        last = [event async for event in stream][-1]
        assert (last.kind, last.data["text"]) == ("turn.completed", "Just in time.")
        assert await chat.said() == [("user", "Hi."), ("assistant", "Just in time.")]
        assert short(await chat.items()) == "UA"
        with pytest.raises(ConflictError):
            await chat.say("One more.")


def test_an_owner_is_found_by_user_agent_and_tenant() -> None:
    from recollect.memory.conversation import Conversation

    owner = owner_of(Conversation("agent", "ada", conversation_id="c"), "acme")
    assert (owner.user_id, owner.agent_id, owner.title) == ("ada", "agent", None)
    assert owner.data == {"tenant": "acme", "conversation_id": "c"}
