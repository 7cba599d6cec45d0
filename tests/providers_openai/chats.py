"""A chat as a service holds it: one store, one provider, one conversation, and a model over real HTTP."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from recollect import MemoryStore
from recollect.items import find_orphans
from recollect.memory.conversation import Conversation
from recollect.providers.openai.options import ChatOptions, ModelEndpoint
from recollect.providers.openai.provider import OpenAIAgentProvider, build_openai_provider
from recollect.providers.openai.registry import AgentDescriptor, AgentRegistry
from recollect.providers.values import ChatEvent, ChatReply, ChatTurn
from recollect.testing.providers import ProviderServer

TENANT = "acme"
RESPONSES = "POST /v1/responses"
COMPLETIONS = "POST /v1/chat/completions"


@dataclass(frozen=True)
class Place:
    """A database."""

    url: str
    create_tables: bool = False


def options_for(server: ProviderServer | None, **more: Any) -> ChatOptions:
    """Options with a model at the server, by default by its Responses API; with none, the offline agent."""
    if server is None:
        return ChatOptions(**more)
    api = more.pop("api", "responses")
    # A long timeout: on a loaded machine a process that has just started may need seconds for a request.
    endpoint = ModelEndpoint(server.base_url, server.api_key, timeout=60, max_retries=0, api=api)
    return ChatOptions(**{"model": "gpt-test", "endpoint": endpoint, "lock_seconds": 0.2, **more})


class Meter:
    """Counts tokens by tenant."""

    def __init__(self) -> None:
        self.tokens: dict[str, int] = {}
        self.reached = asyncio.Event()
        self.may_count = asyncio.Event()
        self.may_count.set()

    async def wait(self, tenant: str) -> float:  # noqa: ARG002
        return 0.0

    async def spent(self, tenant: str, tokens: int) -> None:
        self.reached.set()
        await self.may_count.wait()
        self.tokens[tenant] = self.tokens.get(tenant, 0) + tokens


@dataclass
class Chat:
    """A chat of one user."""

    store: MemoryStore
    provider: OpenAIAgentProvider
    meter: Meter
    conversation: Conversation = field(init=False)

    async def begin(self, user_id: str = "ada", **settings: Any) -> Conversation:
        """A new conversation."""
        self.conversation = await self.store.open_conversation("assistant", user_id, **settings)
        return self.conversation

    def turn(self, text: str, turn_id: str | None = None, **more: Any) -> ChatTurn:
        agent = more.pop("agent", "assistant")
        made = turn_id or str(uuid.uuid4())
        return ChatTurn(self.store, TENANT, self.conversation, agent, text, made, **more)

    async def say(self, text: str, turn_id: str | None = None, **more: Any) -> ChatReply:
        """A turn, and its answer."""
        return await self.provider.run(self.turn(text, turn_id, **more))

    async def stream(self, text: str, turn_id: str | None = None, **more: Any) -> list[ChatEvent]:
        """A turn, and all of its events."""
        return [event async for event in self.provider.stream(self.turn(text, turn_id, **more))]

    async def said(self) -> list[tuple[str, str]]:
        """The durable history."""
        told = await self.store.get_conversation(self.conversation.conversation_id)
        assert told is not None
        return [(message.role, message.content) for message in told.messages]

    async def whole(self) -> Conversation:
        """The conversation with its messages."""
        told = await self.store.get_conversation(self.conversation.conversation_id)
        assert told is not None
        return told

    async def items(self) -> list[dict[str, Any]]:
        """What the session holds, which a model must be able to read."""
        found = await self.provider.inspector.view_of(self.conversation, {"mode": "none"})
        assert find_orphans(found, spare_newest_turn=False) == []
        return found

    async def turns(self) -> list[dict[str, Any]]:
        """The turns that are recorded."""
        told = await self.provider.inspector.usage_of(self.conversation)
        found: list[dict[str, Any]] = told["turns"]
        return found


@asynccontextmanager
async def open_chat(
    place: Place,
    server: ProviderServer | None = None,
    agents: Iterable[AgentDescriptor] = (),
    options: ChatOptions | None = None,
    **more: Any,
) -> AsyncIterator[Chat]:
    """A chat on a database, with the agents that are given; without a server, the offline agent."""
    meter = Meter()
    at = {"create_tables": place.create_tables}
    store = MemoryStore(place.url, embedder=None, workers=0, all_tenants=True, **at)
    provider = build_openai_provider(
        place.url, AgentRegistry(agents), options or options_for(server), meter=meter, **at, **more
    )
    try:
        yield Chat(store.for_tenant(TENANT), provider, meter)
    finally:
        await provider.aclose(0)
        await store.aclose()


def short(items: Iterable[dict[str, Any]]) -> str:
    """Items in short: U user, A assistant, S system, C call, O output."""
    letters = {"function_call": "C", "function_call_output": "O", "reasoning": "R"}
    return "".join(letters.get(item.get("type", ""), item.get("role", "?")[0].upper()) for item in items)


def kinds(events: Iterable[ChatEvent]) -> list[str]:
    """The kinds of events, one of those that repeat."""
    found: list[str] = []
    for event in events:
        if not found or found[-1] != event.kind or event.kind != "text.delta":
            found.append(event.kind)
    return found
