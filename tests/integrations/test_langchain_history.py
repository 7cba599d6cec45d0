"""The chat history and the retriever, with real sessions, a real store and LangChain's own runnables."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from recollect import (
    AdvancedSQLiteSession,
    EncryptedSession,
    InMemorySession,
    InvalidItemError,
    MemoryStore,
    SQLiteSession,
    StrategySession,
    Trim,
)
from recollect.integrations.langchain import ChatHistory, MemoryRetriever
from recollect.testing.contract import in_event_loop

TALK = [
    HumanMessage("hi", id="1"),
    AIMessage("", tool_calls=[{"name": "find", "args": {"q": "tea"}, "id": "c1"}], id="2"),
    ToolMessage("found", tool_call_id="c1", id="3"),
    AIMessage("here", id="4", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
]


@pytest.mark.parametrize("kind", ["sqlite", "memory", "encrypted", "advanced"])
@in_event_loop
async def test_a_history_over_any_session(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    sessions: dict[str, Any] = {
        "sqlite": lambda: SQLiteSession("s", path),
        "memory": lambda: InMemorySession("s"),
        "encrypted": lambda: EncryptedSession("s", SQLiteSession("s", path), "a key of the application"),
        "advanced": lambda: AdvancedSQLiteSession(session_id="s", db_path=path, create_tables=True),
    }
    history = ChatHistory(sessions[kind]())
    assert isinstance(history, BaseChatMessageHistory)
    await history.aadd_messages(TALK)
    assert await history.aget_messages() == TALK
    assert history.messages == TALK  # the synchronous face, on another event loop
    history.add_user_message("bye")
    assert len(await history.aget_messages()) == 5
    await history.aclear()
    assert history.messages == []


@in_event_loop
async def test_a_strategy_applies(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), Trim(max_user_turns=1))
    history = ChatHistory(session)
    await history.aadd_messages([*TALK, HumanMessage("again"), AIMessage("yes")])
    assert [each.content for each in await history.aget_messages()] == ["again", "yes"]


@in_event_loop
async def test_a_message_that_cannot_be_stored_adds_none(tmp_path: Path) -> None:
    history = ChatHistory(SQLiteSession("s", tmp_path / "s.db"))
    with pytest.raises(InvalidItemError):
        await history.aadd_messages([HumanMessage("a"), HumanMessage("b", additional_kwargs={"x": object()})])
    assert await history.aget_messages() == []


def test_a_chain_of_langchain_uses_it(tmp_path: Path) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("one"), AIMessage("two")]))
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    history = ChatHistory(SQLiteSession("ada", tmp_path / "s.db"))
    for asked in ("first", "second"):
        answer = (prompt | model).invoke({"history": history.messages, "input": asked})
        history.add_messages([HumanMessage(asked), answer])
    found = ChatHistory(SQLiteSession("ada", tmp_path / "s.db")).messages
    assert [each.content for each in found] == ["first", "one", "second", "two"]


@in_event_loop
async def test_a_retriever_finds_entries_and_messages(tmp_path: Path) -> None:
    async with MemoryStore(tmp_path / "m.db", workers=1, embedder=None) as store:
        told = "I am a vegetarian and I live in Oslo."
        await store.record_conversation("agent", "ada", messages=[{"role": "user", "content": told}])
        await store.drain(timeout=60)
        retriever = MemoryRetriever(store=store, user_id="ada", search="all", limit=3)
        found = await retriever.ainvoke("Where does she live? Oslo?")
        kinds = {each.metadata["kind"]: each for each in reversed(found)}
        assert "Oslo" in kinds["entry"].page_content
        assert kinds["entry"].metadata["evidence"][0]["message_id"] == kinds["message"].id
        assert kinds["message"].page_content == told
        only = retriever.model_copy(update={"search": "memories"})
        assert {each.metadata["kind"] for each in only.invoke("Oslo")} == {"entry"}
        stranger = MemoryRetriever(store=store, user_id="bob", search="all")
        assert await stranger.ainvoke("Oslo") == []
