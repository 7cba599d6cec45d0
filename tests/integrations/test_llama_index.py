"""LlamaIndex: its chat store in memory as the oracle, its chat engine and memory with a model of its own."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from llama_index.core.base.llms.types import (
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.storage.chat_store import SimpleChatStore
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import MemoryStore
from recollect.integrations.llama_index import ChatStore, RecallBlock, RememberingMemory
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop

from .. import prompts


class Chat:
    """A chat, as LlamaIndex adds to it."""

    def __init__(self, store: ChatStore, key: str) -> None:
        self.store = store
        self.key = key

    async def add(self, records: Sequence[Any]) -> None:
        for record in records:
            await self.store.async_add_message(self.key, record)

    async def records(self) -> list[Any]:
        return await self.store.aget_messages(self.key)

    async def aclose(self) -> None:
        await self.store.aclose()


class TestChatStore(AdapterContract):
    batch = 1

    async def open(self, url: str, name: str, **options: Any) -> Chat:
        return Chat(ChatStore(url, agent_id=self.agent_id, create_tables=True, **options), name)

    def record(self, text: str) -> Any:
        return ChatMessage(role="user", content=text)

    def text_of(self, record: Any) -> str:
        return str(record.content)

    def odd_records(self) -> list[Any]:
        call = ToolCallBlock(tool_call_id="1", tool_name="f", tool_kwargs={"a": 1})
        return [
            *super().odd_records(),
            ChatMessage(role="user", content="x", additional_kwargs={"of": {"the": ["future", None, 1.5]}}),
            ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm"), TextBlock(text="a"), call]),
            ChatMessage(role="tool", content="out", additional_kwargs={"tool_call_id": "1"}),
            ChatMessage(
                role="user", blocks=[ImageBlock(image=b"\x89PNG"), DocumentBlock(data=b"x", title="t")]
            ),
            ChatMessage(role="assistant", blocks=[]),
        ]


STEPS = ("add", "add", "add", "set", "delete", "delete at", "delete last")


def step(store: Any, chance: random.Random, number: int) -> Any:
    """One random call. The store in memory raises where there is nothing to remove; ours returns `None`."""
    key, kind, place = chance.choice("abc"), chance.choice(STEPS), chance.randrange(-4, 5)
    many = [ChatMessage(role="user", content=f"{number}/{n}") for n in range(chance.randrange(3))]
    try:
        if kind == "add":
            return store.add_message(key, ChatMessage(role="assistant", content=str(number)))
        if kind == "set":
            return store.set_messages(key, many)
        if kind == "delete":
            return store.delete_messages(key)
        return store.delete_message(key, place) if kind == "delete at" else store.delete_last_message(key)
    except IndexError:
        return None


def compare(url: str, seed: int, steps: int) -> None:
    """Do the same with our store and with that of LlamaIndex, and compare all answers."""
    oracle, store = SimpleChatStore(), ChatStore(url, user_id=str(uuid4()), create_tables=True)
    for number in range(steps):
        theirs, ours = (step(each, random.Random(f"{seed}/{number}"), number) for each in (oracle, store))
        assert theirs == ours, number
        assert sorted(oracle.get_keys()) == sorted(store.get_keys())
    for key in "abcd":
        assert oracle.get_messages(key) == store.get_messages(key)


def test_the_same_answers_as_the_store_in_memory(tmp_path: Path) -> None:
    for seed in range(4):
        compare(str(tmp_path / "chats.db"), seed, steps=25)


@pytest.mark.proof
def test_the_same_answers_on_longer_sequences(adapter_url: str) -> None:
    for seed in range(100, 105):
        compare(adapter_url, seed, steps=60)


def test_a_chat_engine_goes_on_in_a_second_process(tmp_path: Path) -> None:
    """A new store and a new engine, as a new process has them."""
    url = str(tmp_path / "chats.db")
    for question in ("Hello!", "And again?"):
        store = ChatStore(url, user_id="ada")
        memory = ChatMemoryBuffer.from_defaults(chat_store=store, chat_store_key="chat")
        SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory).chat(question)
    said = [(each.role.value, each.content) for each in store.get_messages("chat")]
    assert said[::2] == [("user", "Hello!"), ("user", "And again?")]
    assert [role for role, _ in said[1::2]] == ["assistant", "assistant"]


@in_event_loop
async def test_a_block_learns_from_old_messages_and_recalls_them(tmp_path: Path) -> None:
    url, engine = str(tmp_path / "chats.db"), create_async_engine("sqlite+aiosqlite:///:memory:")
    async with MemoryStore(url) as store:
        block = RecallBlock(store, url, user_id="ada")
        options = {"memory_blocks": [block], "async_engine": engine}
        memory = Memory.from_defaults(session_id="one", token_limit=40, **options)
        await memory.aput(ChatMessage(role="user", content="I live in Oslo with my two cats."))
        for number in range(12):
            await memory.aput(
                ChatMessage(role="assistant", content=f"Answer number {number}, of some words.")
            )
            await memory.aput(ChatMessage(role="user", content=f"Question number {number}, of some words."))
        await store.drain()
        other = Memory.from_defaults(session_id="two", **options)
        await other.aput(ChatMessage(role="user", content="In which city do I live?"))
        assert "Oslo" in str(await other.aget())
        await block.aclose()
    await engine.dispose()


@in_event_loop
async def test_prompts_keep_their_prefix(tmp_path: Path) -> None:
    url, engine = str(tmp_path / "chats.db"), create_async_engine("sqlite+aiosqlite:///:memory:")
    seen: list[list[prompts.Block]] = []
    async with MemoryStore(url, workers=0, embedder=None) as store:
        block = RecallBlock(store, url, user_id="ada", agent_id="desk")
        memory = RememberingMemory.from_defaults(session_id="one", memory_blocks=[block], async_engine=engine)

        async def ask(question: str) -> None:
            """As an agent of LlamaIndex does."""
            message = ChatMessage(role="user", content=question)
            await memory.aput(message)
            given = await memory.aget(input=message)
            seen.append([prompts.Block(str(each.role.value), each.content or "") for each in given])
            await memory.aput(ChatMessage(role="assistant", content="Noted."))

        await prompts.converse(store, "desk", "ada", ask)
        assert [each.role.value for each in await memory.aget_all()] == ["user", "assistant"] * 20
        await block.aclose()
    await engine.dispose()
    prompts.check(seen)
