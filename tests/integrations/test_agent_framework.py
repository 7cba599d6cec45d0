"""The Microsoft Agent Framework: its own providers as the oracle, and its agent with a scripted client."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    InMemoryHistoryProvider,
    Message,
    tool,
)

from recollect import MemoryStore
from recollect.integrations.agent_framework import LongTermMemory, SessionHistory
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop

from .. import prompts


class Conversation:
    """A session, as the framework saves messages to it. They have no equality, so their JSON is compared."""

    def __init__(self, history: SessionHistory, name: str) -> None:
        self.history = history
        self.name = name

    async def add(self, records: Sequence[Any]) -> None:
        await self.history.save_messages(self.name, [Message.from_dict(each) for each in records])

    async def records(self) -> list[Any]:
        return [message.to_dict() for message in await self.history.get_messages(self.name)]

    async def aclose(self) -> None:
        await self.history.aclose()


class TestSessionHistory(AdapterContract):
    async def open(self, url: str, name: str, **options: Any) -> Conversation:
        options |= {"agent_id": self.agent_id, "create_tables": True}
        return Conversation(SessionHistory(url, **options), name)

    def record(self, text: str) -> Any:
        return Message("user", [text]).to_dict()

    def text_of(self, record: Any) -> str:
        return str(record["contents"][0]["text"])

    def odd_records(self) -> list[Any]:
        messages = [
            Message(
                "user", ["x"], author_name="Ada", additional_properties={"of": {"the": ["future", None]}}
            ),
            Message("assistant", [Content.from_text_reasoning(text="hm"), "a", "b"], message_id="1"),
            Message("assistant", [Content.from_function_call("1", "weather", arguments={"city": "Oslo"})]),
            Message("tool", [Content.from_function_result("1", result="12 °C")]),
            Message("user", [Content.from_data(b"\x89PNG", "image/png"), "what is this?"]),
            Message("user", [Content.from_uri("https://example.com/a.png", media_type="image/png")]),
            Message("assistant", []),
        ]
        return [*super().odd_records(), *(each.to_dict() for each in messages)]


# --- the provider in memory as the oracle ---


def given_messages(chance: random.Random, history: Sequence[Message]) -> list[Message]:
    """New messages, maybe after a replay of the history or of its end, of few different texts."""
    new = []
    for _ in range(chance.randrange(4)):
        message_id = chance.choice([None, None, str(chance.randrange(6))])
        new.append(
            Message(chance.choice(["user", "assistant"]), [chance.choice("ab")], message_id=message_id)
        )
    replay = chance.choice([[], [], history, history[-chance.randrange(1, 4) :]])
    return [*chance.choice([[], [], new[:1]]), *replay, *new]


async def compare(url: str, seed: int, steps: int) -> None:
    """Save the same with our provider and with that of the framework, and compare what is stored."""
    chance, state = random.Random(seed), {}
    oracle, history = InMemoryHistoryProvider(), SessionHistory(url, user_id=str(uuid4()), create_tables=True)
    for number in range(steps):
        stored = await oracle.get_messages("s", state=state)
        messages = given_messages(chance, stored)
        await oracle.save_messages("s", messages, state=state)
        await history.save_messages("s", messages)
        theirs, ours = await oracle.get_messages("s", state=state), await history.get_messages("s")
        assert [each.to_dict() for each in theirs] == [each.to_dict() for each in ours], (seed, number)
    await history.aclose()


@in_event_loop
async def test_the_same_messages_as_the_provider_in_memory(tmp_path: Path) -> None:
    for seed in range(20):
        await compare(str(tmp_path / "history.db"), seed, steps=8)


@pytest.mark.proof
@in_event_loop
async def test_the_same_messages_on_longer_sequences(adapter_url: str) -> None:
    for seed in range(100, 130):
        await compare(adapter_url, seed, steps=15)


@in_event_loop
async def test_sessions_are_listed_and_erased_and_excluded_messages_are_kept(tmp_path: Path) -> None:
    url = str(tmp_path / "history.db")
    async with MemoryStore(url) as store:
        history = SessionHistory(url, user_id="ada", memory=store, skip_excluded=True)
        await history.save_messages("one", [Message("user", ["hello"])])
        await history.save_messages(
            "two", [Message("user", ["out"], additional_properties={"_excluded": True})]
        )
        assert await history.get_messages("two") == []
        assert sorted(await history.list_sessions()) == ["one", "two"]
        await history.delete_session("one")
        assert await history.list_sessions() == ["two"]
        assert len(await store.list_conversations("agent-framework", "ada")) == 1
        await history.aclose()


# --- the framework's own agent ---


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that gives replies from a list, and keeps what it was asked."""

    def __init__(self, replies: Sequence[Sequence[Content | str]]) -> None:
        super().__init__()
        self.replies = list(replies)
        self.requests: list[str] = []
        self.prompts: list[list[prompts.Block]] = []

    async def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,  # noqa: ARG002
        options: Any,
        **_: Any,
    ) -> ChatResponse:
        self.requests.append(str(options.get("instructions")) + str([each.to_dict() for each in messages]))
        told = [prompts.Block("system", str(options.get("instructions")))]
        self.prompts.append([*told, *(prompts.Block(each.role, each.text) for each in messages)])
        return ChatResponse(messages=[Message("assistant", self.replies.pop(0))])


@in_event_loop
async def test_an_agent_goes_on_in_a_second_process(tmp_path: Path) -> None:
    """A new provider and a new agent, as a new process has them. A tool is called."""
    url = str(tmp_path / "history.db")

    @tool
    def weather(city: str) -> str:
        """The weather."""
        return f"sunny in {city}"

    call = Content.from_function_call("1", "weather", arguments={"city": "Oslo"})
    client = ScriptedClient([[call], ["It is sunny."], ["In Oslo."]])
    for question in ("I live in Oslo. How is the weather?", "Where do I live?"):
        history = SessionHistory(url, user_id="ada")
        agent = Agent(client, tools=[weather], context_providers=[history])
        await agent.run(question, session=AgentSession(session_id="one"))
    assert "I live in Oslo." in client.requests[-1]
    assert "sunny in Oslo" in client.requests[-1]
    roles = [message.role for message in await history.get_messages("one")]
    assert roles == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    await history.aclose()


@in_event_loop
async def test_an_agent_knows_what_an_earlier_session_said_and_remembers_more(tmp_path: Path) -> None:
    url = str(tmp_path / "history.db")
    async with MemoryStore(url) as store:
        history = SessionHistory(url, user_id="ada", memory=store, learn=True)
        memory = LongTermMemory(store, user_id="ada")
        arguments = {"text": "The user has two cats.", "kind": "profile"}
        call = Content.from_function_call("1", "remember", arguments=arguments)
        client = ScriptedClient([["Nice."], [call], ["In Oslo."]])
        agent = Agent(client, context_providers=[history, memory])
        for name, question in (("one", "I live in Oslo."), ("two", "In which city do I live?")):
            await agent.run(question, session=AgentSession(session_id=name))
            await store.drain()
        assert "Oslo" in client.requests[1], "it was recalled"
        assert "Remembered." in client.requests[2], "the tool has replied"
        found = await store.recall("Does the user have cats?", "agent-framework", "ada")
        assert "two cats" in found.text
        await history.aclose()


@in_event_loop
async def test_prompts_keep_their_prefix(tmp_path: Path) -> None:
    url = str(tmp_path / "history.db")
    client = ScriptedClient([["Noted."]] * len(prompts.QUESTIONS))
    async with MemoryStore(url, workers=0, embedder=None) as store:
        history = SessionHistory(url, user_id="ada", memory=store)
        memory = LongTermMemory(store, user_id="ada", agent_id="desk", with_tools=False)
        agent = Agent(client, instructions="Be brief.", context_providers=[history, memory])
        session = AgentSession(session_id="one")
        await prompts.converse(store, "desk", "ada", lambda question: agent.run(question, session=session))
        assert [each.role for each in await history.get_messages("one")] == ["user", "assistant"] * 20
        await history.aclose()
    prompts.check(client.prompts)
