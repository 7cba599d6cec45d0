"""Transcripts of the Claude Agent SDK: its own contracts, ours, and its store in memory as the oracle."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, InMemorySessionStore
from claude_agent_sdk.testing import run_session_store_conformance

from recollect import MemoryStore
from recollect.integrations.claude_agent_sdk import TranscriptStore, with_memory
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop

from .. import prompts


class Transcript:
    """A transcript, as the SDK appends to it."""

    def __init__(self, store: TranscriptStore, name: str) -> None:
        self.store = store
        self.key: Any = {"project_key": "project", "session_id": name}

    async def add(self, records: Sequence[Any]) -> None:
        await self.store.append(self.key, list(records))

    async def records(self) -> list[Any]:
        return await self.store.load(self.key) or []

    async def aclose(self) -> None:
        await self.store.aclose()


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """An entry of a transcript."""
    message = {"role": role, "content": content}
    return {
        "type": role,
        "uuid": str(uuid4()),
        "timestamp": "2026-11-17T12:00:00.000Z",
        "message": message,
    } | more


class TestTranscripts(AdapterContract):
    async def open(self, url: str, name: str, **options: Any) -> Transcript:
        return Transcript(TranscriptStore(url, agent_id=self.agent_id, create_tables=True, **options), name)

    def record(self, text: str) -> Any:
        return said("user", text)

    def text_of(self, record: Any) -> str:
        return str(record["message"]["content"])

    def odd_records(self) -> list[Any]:
        call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a"}]}
        return [
            *super().odd_records(),
            said("assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"}, call]),
            said("user", [result], toolUseResult={"stdout": "a"}, isSidechain=False),
            {"type": "summary", "summary": "x", "leafUuid": "y"},
            {"type": "of-the-future", "message": 7, "deep": {"er": [None, {"": 1.5}]}},
        ]


@in_event_loop
async def test_the_contracts_of_the_sdk(adapter_url: str) -> None:
    """All 14; each gets a store of a user of its own, and so an empty one."""
    stores: list[TranscriptStore] = []

    def fresh() -> TranscriptStore:
        stores.append(TranscriptStore(adapter_url, user_id=str(uuid4()), create_tables=True))
        return stores[-1]

    await run_session_store_conformance(fresh)
    for store in stores:
        await store.aclose()
    assert len(stores) == 15, "one to look at, and one for each contract"


async def compare(url: str, seed: int, steps: int) -> None:
    """Do the same with our store and with that of the SDK, and compare all answers."""
    chance, oracle = random.Random(seed), InMemorySessionStore()
    async with TranscriptStore(url, user_id=str(uuid4()), create_tables=True) as store:
        for step in range(steps):
            key: Any = {"project_key": chance.choice("pq"), "session_id": chance.choice("ab")}
            if chance.random() < 0.4:
                key["subpath"] = f"subagents/{chance.choice('xy')}"
            if chance.random() < 0.15:
                await oracle.delete(key)
                await store.delete(key)
            else:
                entries: Any = [said("user", f"{step}/{n}") for n in range(chance.randrange(1, 4))]
                entries += [{"type": "title", "customTitle": str(step)}] * chance.randrange(2)
                await oracle.append(key, entries)
                await store.append(key, entries)
        for project in "pqr":
            await compare_project(oracle, store, project)


async def compare_project(oracle: Any, store: Any, project: str) -> None:
    ids = [sorted(each["session_id"] for each in await one.list_sessions(project)) for one in (oracle, store)]
    assert ids[0] == ids[1]
    wanted = [
        {each["session_id"]: each["data"] for each in await one.list_session_summaries(project)}
        for one in (oracle, store)
    ]
    assert wanted[0] == wanted[1]
    for session in "ab":
        main = {"project_key": project, "session_id": session}
        assert sorted(await store.list_subkeys(main)) == sorted(await oracle.list_subkeys(main))
        for key in (main, {**main, "subpath": "subagents/x"}, {**main, "subpath": "subagents/y"}):
            assert await store.load(key) == await oracle.load(key)


@in_event_loop
async def test_the_same_answers_as_the_store_of_the_sdk(tmp_path: Path) -> None:
    for seed in range(6):
        await compare(str(tmp_path / "claude.db"), seed, steps=12)


@pytest.mark.proof
@in_event_loop
async def test_the_same_answers_on_longer_sequences(adapter_url: str) -> None:
    for seed in range(100, 108):
        await compare(adapter_url, seed, steps=30)


@in_event_loop
async def test_an_entry_is_stored_once(tmp_path: Path) -> None:
    """The SDK repeats a batch that failed, or a part of it; titles have no uuid and are repeated."""
    key: Any = {"project_key": "p", "session_id": "s"}
    first, second = said("user", "one"), said("assistant", "two")
    async with TranscriptStore(tmp_path / "claude.db", user_id="ada") as store:
        await store.append(key, [first])
        await store.append(key, [first])
        await store.append(key, [first, second, {"type": "title"}])
        await store.append(key, [{"type": "title"}])
        assert await store.load(key) == [first, second, {"type": "title"}, {"type": "title"}]


@in_event_loop
async def test_erasing_words_also_erases_them_from_lines_about_them(tmp_path: Path) -> None:
    """The title and the last prompt of a session are lines of their own, and in its summary."""
    url, key = str(tmp_path / "claude.db"), {"project_key": "p", "session_id": "s"}
    words = "My password is Xylophonistenbrot"
    async with (
        MemoryStore(url, workers=0, embedder=None) as memory,
        TranscriptStore(url, user_id="ada", memory=memory) as store,
    ):
        await store.append(key, [said("user", words), {"type": "last-prompt", "lastPrompt": words}])  # type: ignore[arg-type, typeddict-unknown-key]
        assert words in str(await store.list_session_summaries("p"))
        (conversation,) = await memory.list_conversations("claude", "ada")
        found = await memory.get_conversation(conversation["conversation_id"])
        assert found is not None
        await memory.erase_message(found.conversation_id, found.messages[0].message_id)
        assert "Xylophonistenbrot" not in str(await store.load(key))  # type: ignore[arg-type]
        assert "Xylophonistenbrot" not in str(await store.list_session_summaries("p"))


@in_event_loop
async def test_deleting_a_session_erases_what_was_recorded(tmp_path: Path) -> None:
    url, key = str(tmp_path / "claude.db"), {"project_key": "p", "session_id": "s"}
    async with (
        MemoryStore(url, workers=0, embedder=None) as memory,
        TranscriptStore(url, user_id="ada", memory=memory) as store,
    ):
        await store.append(key, [said("user", "I live in Oslo.")])  # type: ignore[arg-type]
        assert len(await memory.list_conversations("claude", "ada")) == 1
        await store.delete(key)  # type: ignore[arg-type]
        assert await memory.list_conversations("claude", "ada") == []
        assert await store.list_sessions("p") == []


# --- prompts ---


def given_to_hook(question: str) -> Any:
    """What Claude Code tells a hook of a prompt."""
    return {"hook_event_name": "UserPromptSubmit", "session_id": "one", "prompt": question}


@pytest.mark.parametrize(
    "given", [None, "Be brief.", {"type": "preset", "preset": "claude_code", "append": "Be brief."}]
)
@in_event_loop
async def test_a_client_gets_a_page_once_and_what_is_remembered_with_each_prompt(given: Any) -> None:
    """Claude Code builds the requests itself: the system prompt is given once, and hooks add to a prompt."""
    added: list[str] = []
    async with MemoryStore(":memory:", workers=0, embedder=None) as store:
        await prompts.remember(store, "claude", "ada")
        own = HookMatcher()
        options = ClaudeAgentOptions(system_prompt=given, hooks={"UserPromptSubmit": [own]})
        remembering = await with_memory(options, store, "ada")
        first, matcher = (remembering.hooks or {})["UserPromptSubmit"]
        assert first is own
        for turn, question in enumerate(prompts.QUESTIONS):
            if turn in prompts.LATER:
                await store.add_entry("claude", "ada", *prompts.LATER[turn])  # type: ignore[arg-type]
            output: Any = await matcher.hooks[0](given_to_hook(question), None, {"signal": None})
            added.append(output.get("hookSpecificOutput", {}).get("additionalContext", ""))
    told: Any = remembering.system_prompt
    page = told["append"] if isinstance(told, dict) else told
    assert page.startswith("" if given is None else "Be brief.\n\n<remembered-data>")
    assert prompts.PAGE in page
    assert options.system_prompt == given
    assert {3, 16} <= {turn for turn, tail in enumerate(added) if prompts.TAIL in tail}
    assert prompts.PAGE not in added[9], "the page says it"
    for turn, (_, text) in prompts.LATER.items():
        assert text in added[turn]
