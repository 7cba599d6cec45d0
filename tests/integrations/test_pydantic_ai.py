"""Pydantic AI: its store in memory as the oracle, and its own models for tests."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryImage,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.models.test import TestModel as FixedModel  # pytest would take it for a test
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RunUsage

from recollect import Compact, ExtractiveSummarizer, MemoryStore, Summarize, Trim
from recollect.integrations.pydantic_ai import (
    Conversations,
    LongTermMemory,
    history_processor,
    memory_toolset,
)
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer

from .. import prompts as prompts_


class Stored:
    """A conversation, as an application saves it: load, add messages, save, and again after a conflict."""

    def __init__(self, store: Conversations, name: str) -> None:
        self.store = store
        self.name = name

    async def add(self, records: Sequence[Any]) -> None:
        while True:
            loaded = await self.store.load(self.name) or Conversation(conversation_id=self.name)
            loaded.messages.extend(records)
            try:
                await self.store.save(loaded)
                return
            except ConversationConflict:
                continue

    async def records(self) -> list[Any]:
        loaded = await self.store.load(self.name)
        return loaded.messages if loaded else []

    async def aclose(self) -> None:
        await self.store.aclose()


class TestConversations(AdapterContract):
    async def open(self, url: str, name: str, **options: Any) -> Stored:
        return Stored(Conversations(url, agent_id=self.agent_id, create_tables=True, **options), name)

    def record(self, text: str) -> Any:
        return ModelRequest(parts=[UserPromptPart(text)])

    def text_of(self, record: Any) -> str:
        return str(record.parts[0].content)

    def odd_records(self) -> list[Any]:
        pictures = [
            "look",
            ImageUrl(url="https://example.com/a.png"),
            BinaryImage(b"ab", media_type="image/png"),
        ]
        answer = [ThinkingPart("hm", signature="s"), TextPart("x"), ToolCallPart("f", {"a": [1, None]}, "id")]
        return [
            *super().odd_records(),
            ModelRequest(parts=[SystemPromptPart("s"), UserPromptPart(pictures)], instructions="be kind"),
            ModelResponse(parts=answer, model_name="m", provider_details={"of": {"the": "future"}}),
            ModelRequest(parts=[ToolReturnPart("f", {"r": [1.5]}, "id")], metadata={"x": {"y": 1}}),
            ModelResponse(parts=[]),
        ]


# --- the store of the framework in memory as the oracle ---


async def outcome_of(call: Any) -> Any:
    """What a call returns, as far as it does not depend on ids; or the type of its error."""
    try:
        found = await call
    except (ConversationConflict, UserError, LookupError) as error:
        return type(error).__name__
    return len(found) if isinstance(found, list) else found and described(found)


def described(found: Conversation) -> Any:
    return found.conversation_id, found.messages, found.usage, found.revision is not None


async def do(store: Any, held: dict[str, Conversation], chance: random.Random) -> Any:
    """One random call on a store."""
    name, scope = chance.choice("abc"), chance.choice((None, None, "s", "t"))
    kind = chance.choice(
        ("load", "load", "save", "save", "save", "rewrite", "branch", "fork", "delete", "list")
    )
    text, at = str(chance.random()), chance.randrange(4)
    if kind == "load":
        loaded = await store.load(name, limit=chance.choice((None, None, 2)), scope=scope)
        if loaded is not None:
            held[name] = loaded
        return loaded and described(loaded)
    conversation = held.setdefault(name, Conversation(conversation_id=name))
    if kind in ("save", "rewrite"):
        conversation.usage = conversation.usage + RunUsage(requests=1)
        if kind == "rewrite" and conversation.messages:
            conversation.messages[at % len(conversation.messages)] = ModelResponse(
                parts=[TextPart("rewritten")]
            )
        conversation.messages.append(
            ModelRequest(parts=[UserPromptPart(text, timestamp=MOMENT)], timestamp=MOMENT)
        )
        return await outcome_of(store.save(conversation, scope=scope))
    if kind == "branch":
        return await outcome_of(store.branch(name, at=at, expected_revision=conversation.revision))
    if kind == "fork":
        return await outcome_of(store.fork(name, at=at, new_conversation_id=chance.choice("cde")))
    if kind == "delete":
        return await outcome_of(store.delete(name, scope=scope))
    listed = await store.list_conversations(scope=scope)
    return [(each.conversation_id, each.scope, each.forked_from, len(each.branches)) for each in listed]


MOMENT = ModelResponse(parts=[]).timestamp


async def compare(url: str, seed: int, steps: int) -> None:
    """Do the same with both stores, each with its own copies, and compare all answers."""
    async with Conversations(url, user_id=str(uuid4()), create_tables=True) as store:
        both: Any = [(InMemoryConversationStore(), {}), (store, {})]
        for number in range(steps):
            answers = [await do(each, held, random.Random(f"{seed}/{number}")) for each, held in both]
            assert equal(*answers), number
        for name in "abcde":
            loaded = [await outcome_of(each.load(name)) for each, _ in both]
            assert equal(*loaded), name


def equal(theirs: Any, ours: Any) -> bool:
    """The answers of a model get the time at which they are made."""
    return without_times(theirs) == without_times(ours)


def without_times(answer: Any) -> Any:
    if isinstance(answer, tuple) and len(answer) == 4 and isinstance(answer[1], list):
        return (answer[0], [[str(part.content) for part in each.parts] for each in answer[1]], *answer[2:])
    return answer


@in_event_loop
async def test_the_same_answers_as_the_store_in_memory(tmp_path: Path) -> None:
    for seed in range(6):
        await compare(str(tmp_path / "conversations.db"), seed, steps=25)


@pytest.mark.proof
@in_event_loop
async def test_the_same_answers_on_longer_sequences(adapter_url: str) -> None:
    for seed in range(100, 108):
        await compare(adapter_url, seed, steps=50)


@in_event_loop
async def test_an_agent_goes_on_in_a_second_process(tmp_path: Path) -> None:
    agent = Agent(FixedModel(custom_output_text="Fine."))
    for question in ("Hello!", "And again?"):
        async with Conversations(tmp_path / "conversations.db", user_id="ada") as store:
            conversation = await store.load("chat") or Conversation(conversation_id="chat")
            result = await agent.run(question, conversation=conversation)
            await store.save(result)
            loaded = await store.load("chat")
            assert loaded is not None
            assert loaded.messages == result.all_messages()
    assert loaded.usage.requests == 2
    assert len(loaded.messages) == 4


@in_event_loop
async def test_a_fork_outlives_the_conversation_it_came_from(tmp_path: Path) -> None:
    async with Conversations(tmp_path / "conversations.db", user_id="ada") as store:
        first = Conversation(conversation_id="first", messages=[ModelRequest(parts=[UserPromptPart("one")])])
        (entry,) = await store.save(first)
        await store.fork("first", new_conversation_id="second")
        await store.delete("first")
        second = await store.load("second")
        assert second is not None
        assert second.messages == first.messages
    async with Conversations(tmp_path / "conversations.db", user_id="ada") as store:
        assert await store.read_entry(entry.id) == entry, "also by a store that has not seen it"
        with pytest.raises(LookupError):
            await store.read_entry("none")


# --- strategies ---


def turns(count: int) -> list[ModelMessage]:
    """Turns with a tool call each."""
    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart("Be kind.")])]
    for number in range(count):
        messages += [
            ModelRequest(parts=[UserPromptPart(f"question {number}")]),
            ModelResponse(parts=[ThinkingPart("hm"), ToolCallPart("look", {"n": number}, f"c{number}")]),
            ModelRequest(parts=[ToolReturnPart("look", f"found {number} " * 50, f"c{number}")]),
            ModelResponse(parts=[TextPart(f"answer {number}")]),
        ]
    return messages


async def seen_by_model(strategy: Any, history: list[ModelMessage], **options: Any) -> list[ModelMessage]:
    """What a model is given for one more question."""
    seen: list[ModelMessage] = []

    def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        seen[:] = messages
        return ModelResponse(parts=[TextPart("ok")])

    agent = Agent(
        FunctionModel(answer), capabilities=[ProcessHistory(history_processor(strategy, **options))]
    )
    await agent.run("the newest question", message_history=history)
    return seen


def prompts(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for each in messages for part in each.parts if isinstance(part, UserPromptPart)]


@in_event_loop
async def test_a_strategy_trims_whole_turns() -> None:
    history = turns(10)
    trim = Trim(max_user_turns=3, keep_last_user_turns=3)
    assert prompts(await seen_by_model(trim, history)) == ["question 8", "question 9", "the newest question"]
    shown = await history_processor(trim)(history)
    kept = [history[0], *history[-12:]]
    assert [id(each) for each in shown] == [id(each) for each in kept], "the same objects"
    assert prompts(await seen_by_model(Trim(max_user_turns=99), history))[:-1] == prompts(history)


@in_event_loop
async def test_a_strategy_compacts_the_outputs_of_tools() -> None:
    history = turns(6)
    seen = await seen_by_model(Compact(trigger_turns=2, keep=2), history)
    outputs = [part.content for each in seen for part in each.parts if isinstance(part, ToolReturnPart)]
    assert len(outputs) == 6
    assert "found" not in str(outputs[0])
    assert outputs[-1] == history[-2].parts[0].content  # type: ignore[union-attr]
    assert prompts(seen)[:-1] == prompts(history), "nobody's words are changed"


@in_event_loop
async def test_a_strategy_summarizes() -> None:
    strategy = Summarize(max_user_turns=3, keep_last_user_turns=2)
    seen = await seen_by_model(strategy, turns(10), summarizer=ExtractiveSummarizer())
    assert prompts(seen)[0] == strategy.summary_prefix
    assert prompts(seen)[-1] == "the newest question"
    assert prompts(seen)[1:-1] == ["question 8", "question 9"]


# --- long-term memory ---


@in_event_loop
async def test_an_agent_recalls_and_remembers(tmp_path: Path) -> None:
    url = str(tmp_path / "memory.db")
    async with (
        MemoryStore(url) as store,
        Conversations(url, user_id="ada", memory=store, learn=True) as chats,
    ):
        agent = Agent(FixedModel(call_tools=[], custom_output_text="Nice."))
        chat = Conversation(conversation_id="one")
        await chats.save(await agent.run("I live in Oslo.", conversation=chat))
        await store.drain()
        told: list[str] = []

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            told.append(info.instructions or "")
            if len(messages) > 2:
                told.append(str(messages[-1].parts[0].content))
                return ModelResponse(parts=[TextPart("Oslo.")])
            call = {"text": "The user has two cats.", "kind": "profile"}
            return ModelResponse(
                parts=[ToolCallPart("remember", call), ToolCallPart("recall", {"query": "home"})]
            )

        memory = LongTermMemory(store, "pydantic-ai", "ada")
        await Agent(FunctionModel(answer), capabilities=[memory]).run("In which city do I live?")
        assert "Oslo" in told[0]
        assert told[2] == "Remembered."
        assert "cats" in str((await store.recall("pets", "pydantic-ai", "ada")).text)


@pytest.mark.parametrize("api", ["responses", "chat_completions", "anthropic"])
@in_event_loop
async def test_prompts_keep_their_prefix(server: ProviderServer, api: str) -> None:
    for scripted in (server.responses, server.chat, server.messages):
        scripted.reply_always("Noted.")
    async with MemoryStore(":memory:", workers=0, embedder=None) as store, model_on(server, api) as model:
        memory = LongTermMemory(store, "assistant", "ada", with_tools=False)
        agent = Agent(model, instructions="Be brief.", capabilities=[memory])
        history: list[ModelMessage] = []

        async def ask(question: str) -> None:
            result = await agent.run(question, message_history=history)
            history[:] = result.all_messages()

        await prompts_.converse(store, "assistant", "ada", ask)
    assert "remembered-data" not in str([message.parts for message in history]), "nothing of it is stored"
    prompts_.check([prompts_.prompt_of(request.body) for request in server.requests()])


@asynccontextmanager
async def model_on(server: ProviderServer, api: str) -> AsyncIterator[Model]:
    """A model of the server, by one of its APIs."""
    key = {"api_key": server.api_key, "max_retries": 0}
    if api == "anthropic":
        async with AsyncAnthropic(base_url=server.root_url, **key) as client:
            yield AnthropicModel("claude-test", provider=AnthropicProvider(anthropic_client=client))
        return
    async with AsyncOpenAI(base_url=server.base_url, **key) as client:
        kind = OpenAIResponsesModel if api == "responses" else OpenAIChatModel
        yield kind("gpt-4o-mini", provider=OpenAIProvider(openai_client=client))


@in_event_loop
async def test_a_toolset_refuses_what_steers_the_agent(tmp_path: Path) -> None:
    async with MemoryStore(tmp_path / "memory.db") as store:
        told: list[str] = []

        def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
            if len(messages) > 2:
                told.append(str(messages[-1].parts[0].content))
                return ModelResponse(parts=[TextPart("ok")])
            return ModelResponse(parts=[ToolCallPart("remember", {"text": " ", "kind": "profile"})])

        agent = Agent(FunctionModel(answer), toolsets=[memory_toolset(store, "a", "ada")])
        await agent.run("Remember nothing.")
        assert told == ["Nothing was remembered: text must not be empty."]
