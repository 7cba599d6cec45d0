"""What every adapter stands on: records in sessions, and what was said in a memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from recollect import MemoryStore
from recollect.integrations.framework import Framework, FrameworkSessions
from recollect.testing.adapters import AdapterContract
from recollect.testing.contract import in_event_loop


def items_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A record with texts becomes a message for each; any other one says nothing."""
    return [{"type": "message", "role": "user", "content": text} for text in record.get("texts", [])]


PLAIN = Framework("plain", items_of)


@pytest.fixture(params=["file", "postgres"])
def adapter_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both databases, also in `make test`."""
    return str(request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "a.db")


class Conversation:
    """A conversation of a framework that has no interface of its own."""

    def __init__(self, sessions: FrameworkSessions, name: str) -> None:
        self.sessions = sessions
        self.log = sessions.open(name)

    async def add(self, records: Sequence[Any]) -> None:
        await self.log.append(records)

    async def records(self) -> list[Any]:
        return await self.log.load()

    async def aclose(self) -> None:
        await self.log.aclose()
        await self.sessions.aclose()


class TestFoundation(AdapterContract):
    async def open(self, url: str, name: str, **options: Any) -> Conversation:
        return Conversation(
            FrameworkSessions(PLAIN, url, agent_id=self.agent_id, create_tables=True, **options), name
        )

    def record(self, text: str) -> Any:
        return {"texts": [text]}

    def text_of(self, record: Any) -> str:
        return str(record["texts"][0])

    def odd_records(self) -> list[Any]:
        return [
            *super().odd_records(),
            {"texts": ["one", "two"], "more": {"of": [None, 1.5, {}]}},
            {"texts": ["lone \ud83d half", "nul \0"]},
            {},
        ]

    @in_event_loop
    async def test_a_killed_process_loses_nothing(self, adapter_url: str) -> None:
        await self._kill(adapter_url, kills=1)


def opened(path: Path, memory: MemoryStore | None = None, **options: Any) -> FrameworkSessions:
    return FrameworkSessions(PLAIN, path, agent_id="a", user_id="ada", memory=memory, **options)


async def said_in(memory: MemoryStore) -> list[str]:
    (listed,) = await memory.list_conversations("a", "ada")
    found = await memory.get_conversation(listed["conversation_id"])
    assert found is not None
    return [message.content for message in found.messages]


@in_event_loop
async def test_what_a_rewrite_repeats_is_recorded_once(tmp_path: Path) -> None:
    """Words that are said twice count twice, and a shorter history takes nothing back."""
    path = tmp_path / "a.db"
    async with MemoryStore(path, workers=0, embedder=None) as memory, opened(path, memory).open("c") as log:
        await log.append([{"texts": ["one"]}, {"texts": ["yes"]}])
        await log.change(lambda records: [{"texts": ["zero"]}, *records, {"texts": ["yes"]}])
        assert await said_in(memory) == ["one", "yes", "zero", "yes"]
        await log.change(lambda records: records[:1])
        await log.append([{"texts": ["two"]}])
        assert await said_in(memory) == ["one", "yes", "zero", "yes", "two"]


@in_event_loop
async def test_words_of_one_part_are_erased_from_the_record_of_all(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with MemoryStore(path, workers=0, embedder=None) as memory, opened(path, memory).open("c") as log:
        await log.append([{"texts": ["stays", "goes away now"], "more": {"copy": "goes away now"}}, {"n": 1}])
        (listed,) = await memory.list_conversations("a", "ada")
        found = await memory.get_conversation(listed["conversation_id"])
        assert found is not None
        await memory.erase_message(found.conversation_id, found.messages[1].message_id)
        assert await log.load() == [{"texts": ["stays", "[erased]"], "more": {"copy": "[erased]"}}, {"n": 1}]
        await log.append([{"texts": ["on"]}])
        assert await said_in(memory) == ["stays", "on"]


@in_event_loop
async def test_what_was_not_learned_from_is_when_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with MemoryStore(path) as memory:
        async with opened(path, memory).open("c") as log:
            await log.append([{"texts": ["I live in Oslo."]}])
        await memory.drain()
        assert (await memory.export_user("ada"))["entries"] == []
        async with opened(path, memory, learn=True).open("c") as log:
            await log.append([{"texts": ["I have two cats."]}])
        await memory.drain()
        learned = str((await memory.export_user("ada"))["entries"])
        assert "Oslo" in learned
        assert "cats" in learned


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    memory = MemoryStore(path, workers=0, embedder=None)
    with pytest.raises(ValueError, match="to learn from conversations, give a memory"):
        opened(path, learn=True)
    with pytest.raises(ValueError, match="either a memory or an encryption_key"):
        opened(path, memory, encryption_key="k")
    with pytest.raises(ValueError, match="needs a user_id"):
        FrameworkSessions(PLAIN, path, agent_id="a", memory=memory)


@in_event_loop
async def test_keys_are_listed_for_one_framework_and_user(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    sessions = opened(path)
    for key in (("p", "1"), ("p", "2"), ("q", "1")):
        async with sessions.open(*key) as log:
            await log.append([{"texts": ["x"]}])
    other = FrameworkSessions(Framework("other", items_of), path, agent_id="a", user_id="ada")
    assert sorted(each.key for each in await sessions.list("p")) == [("p", "1"), ("p", "2")]
    assert len(await sessions.list()) == 3
    assert await other.list() == []
    sessions.close()
    other.close()
