"""The contract of an adapter for an agent framework, as tests. Needs pytest.

Inherit `AdapterContract` in a test module, implement `open`, `record` and `text_of`, and provide a fixture
`adapter_url`: a database that several processes can open.

    class TestMyAdapter(AdapterContract):
        async def open(self, url, name, **options):
            return MyConversation(url, name, **options)

This module is also the process that the tests kill: `python -m recollect.testing.adapters
<module>:<class> <url> <user> <conversation> <writer> <batches>`.
"""

import asyncio
import importlib
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol
from uuid import uuid4

import pytest

from ..memory.conversation import Conversation
from ..memory.store import MemoryStore
from ..sql.urls import sqlite_path
from .contract import assert_whole_and_ordered, in_event_loop

_SECRET = "Xylophonistenbrot"  # a word that nothing else contains


class AdaptedConversation(Protocol):
    """One conversation, through the interface of the framework."""

    async def add(self, records: Sequence[Any]) -> None:
        """Store records with one call of the framework."""
        ...

    async def records(self) -> list[Any]:
        """All records, as the framework reads them."""
        ...

    async def aclose(self) -> None:
        """Release what it has opened."""
        ...


class AdapterContract:
    """The rules for every adapter."""

    agent_id = "agent"
    """The agent of the conversations. `open` makes them of this one."""
    batch = 3
    """How many records one call of the framework stores, all or none."""
    kills = 1
    """How many processes are killed while they write."""
    records_messages = True
    """Whether what was said is recorded in a memory."""
    encrypts = True
    """Whether the adapter has an `encryption_key`."""

    async def open(self, url: str, name: str, **options: Any) -> AdaptedConversation:
        """Open a conversation. Options: `user_id`, and maybe `memory`, `learn` and `encryption_key`."""
        raise NotImplementedError

    def record(self, text: str) -> Any:
        """A message of the user, as a record of the framework."""
        raise NotImplementedError

    def text_of(self, record: Any) -> str:
        """The text of such a record."""
        raise NotImplementedError

    def odd_records(self) -> list[Any]:
        """Records with everything that the framework can store, also unknown fields."""
        return [self.record(text) for text in ("你好 😀", "two\nlines", " ", "'; DROP TABLE x; --")]

    # --- what is stored ---

    @in_event_loop
    async def test_records_come_back_equal(self, adapter_url: str) -> None:
        user = str(uuid4())
        first = await self.open(adapter_url, "odd", user_id=user)
        given = self.odd_records()
        for record in given:
            await first.add([record])
        assert await first.records() == given
        second = await self.open(adapter_url, "odd", user_id=user)
        assert await second.records() == given, "another handle reads the same"
        await first.aclose()
        await second.aclose()

    @in_event_loop
    async def test_another_user_or_conversation_sees_nothing(self, adapter_url: str) -> None:
        user = str(uuid4())
        mine = await self.open(adapter_url, "one", user_id=user)
        await mine.add([self.record("mine")])
        others = [
            await self.open(adapter_url, "one", user_id=str(uuid4())),
            await self.open(adapter_url, "two", user_id=user),
        ]
        assert [await each.records() for each in others] == [[], []]
        for each in (mine, *others):
            await each.aclose()

    # --- concurrent writers, processes, kills, cancellation ---

    async def _said(self, memory: MemoryStore, user: str) -> list[str]:
        return [message.content for message in (await self._conversation(memory, user)).messages]

    async def _conversation(self, memory: MemoryStore, user: str) -> Conversation:
        (listed,) = await memory.list_conversations(self.agent_id, user)
        found = await memory.get_conversation(listed["conversation_id"])
        assert found is not None
        return found

    def _batch(self, writer: object, number: int) -> list[Any]:
        return [self.record(f"{writer}/{number}/{n}") for n in range(self.batch)]

    async def _texts(self, conversation: AdaptedConversation) -> list[str]:
        return [self.text_of(record) for record in await conversation.records()]

    @in_event_loop
    async def test_concurrent_batches_stay_whole_and_in_order(self, adapter_url: str) -> None:
        user = str(uuid4())

        async def write(writer: int) -> None:
            conversation = await self.open(adapter_url, "c", user_id=user)
            for number in range(3):
                await conversation.add(self._batch(writer, number))
            await conversation.aclose()

        await asyncio.gather(*(write(writer) for writer in range(4)))
        conversation = await self.open(adapter_url, "c", user_id=user)
        found = await self._texts(conversation)
        assert_whole_and_ordered(found, writers=4, batches=3, size=self.batch)
        await conversation.aclose()

    @pytest.mark.proof
    @pytest.mark.timeout(600)
    @in_event_loop
    async def test_killed_processes_lose_nothing_they_acknowledged(self, adapter_url: str) -> None:
        await self._kill(adapter_url, self.kills)

    async def _kill(self, url: str, kills: int) -> None:
        """Write while another process writes too, and kill that one. Nothing acknowledged may be lost."""
        user, chance = str(uuid4()), random.Random(kills)
        acknowledged: list[str] = []
        async with MemoryStore(url, workers=0, embedder=None, create_tables=True) as memory:
            options = {"user_id": user, **({"memory": memory} if self.records_messages else {})}
            conversation = await self.open(url, "c", **options)
            for writer in range(kills):
                with self._worker(url, user, writer, batches=10_000) as process:
                    assert process.stdout is not None
                    await asyncio.to_thread(_read_lines, process.stdout, chance.randrange(2, 6), acknowledged)
                    await conversation.add(self._batch("here", writer))
                    acknowledged.append(f"here/{writer}")
                    process.send_signal(signal.SIGKILL)
                    await asyncio.to_thread(process.wait)
            found = await self._texts(conversation)
            batches = [text.rsplit("/", 1)[0] for text in found[:: self.batch]]
            assert found == [f"{each}/{n}" for each in batches for n in range(self.batch)], (
                "batches are whole"
            )
            assert set(acknowledged) <= set(batches)
            assert len(set(batches)) == len(batches)
            await conversation.add([self.record("and on")])
            if self.records_messages:
                said = await self._said(memory, user)
                # A server may finish the last write of a killed process after it was read above.
                assert said[: len(found)] == found
                assert said == await self._texts(conversation), "the memory has caught up"
            await conversation.aclose()

    @contextmanager
    def _worker(self, url: str, user: str, writer: int, batches: int) -> "Iterator[subprocess.Popen[str]]":
        name = f"{type(self).__module__}:{type(self).__name__}"
        arguments = [name, url, user, "c", str(writer), str(batches)]
        process = subprocess.Popen(
            [sys.executable, "-m", "recollect.testing.adapters", *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    @in_event_loop
    async def test_a_cancelled_call_has_happened_or_not(self, adapter_url: str) -> None:
        conversation = await self.open(adapter_url, "c", user_id=str(uuid4()))
        chance = random.Random(7)
        acknowledged = set()
        for number in range(20):
            task = asyncio.ensure_future(conversation.add(self._batch(0, number)))
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.choice([0, 0, 0.0005, 0.003]))
            task.cancel()
            try:
                await task
                acknowledged.add(number)
            except asyncio.CancelledError:
                pass
        found = await self._texts(conversation)
        stored = [int(text.split("/")[1]) for text in found[:: self.batch]]
        assert found == [f"0/{each}/{n}" for each in stored for n in range(self.batch)], "batches are whole"
        assert stored == sorted(set(stored))
        assert acknowledged <= set(stored)
        await conversation.aclose()

    # --- the rest of Recollect ---

    @in_event_loop
    async def test_what_was_said_is_recorded_searched_and_learned_if_asked(self, adapter_url: str) -> None:
        if not self.records_messages:
            return
        async with MemoryStore(adapter_url, create_tables=True) as memory:
            quiet, asked = str(uuid4()), str(uuid4())
            for user, learn in ((quiet, False), (asked, True)):
                conversation = await self.open(adapter_url, "c", user_id=user, memory=memory, learn=learn)
                await conversation.add([self.record("I live in Oslo.")])
                await conversation.aclose()
            await memory.drain()
            assert await self._said(memory, quiet) == ["I live in Oslo."]
            (hit,) = (await memory.search_conversations("Oslo", self.agent_id, quiet)).hits
            assert "Oslo" in hit.message.content
            entries = [await _entries(memory, user) for user in (quiet, asked)]
            assert entries[0] == []
            assert len(entries[1]) == 1
            assert "Oslo" in entries[1][0]

    @in_event_loop
    async def test_a_user_is_exported_and_erased_with_a_receipt(self, adapter_url: str) -> None:
        user = str(uuid4())
        async with MemoryStore(adapter_url, create_tables=True) as memory:
            options = {"memory": memory, "learn": True} if self.records_messages else {}
            conversation = await self.open(adapter_url, "c", user_id=user, **options)
            await conversation.add([self.record(f"I live in {_SECRET}.")])
            await memory.drain()
            assert _SECRET in str((await memory.export_user(user))["sessions"])
            receipt = await memory.erase_user(user)
            assert receipt.counts["sessions"] == 1
            assert await conversation.records() == []
            assert _tables_with(adapter_url, _SECRET) == []
            await conversation.aclose()

    @in_event_loop
    async def test_one_erased_message_leaves_the_others(self, adapter_url: str) -> None:
        if not self.records_messages:
            return
        user = str(uuid4())
        async with MemoryStore(adapter_url, create_tables=True) as memory:
            conversation = await self.open(adapter_url, "c", user_id=user, memory=memory)
            for text in ("before", f"I live in {_SECRET}.", "after"):
                await conversation.add([self.record(text)])
            found = await self._conversation(memory, user)
            await memory.erase_message(found.conversation_id, found.messages[1].message_id)
            texts = await self._texts(conversation)
            assert (texts[0], texts[-1]) == ("before", "after")
            assert _tables_with(adapter_url, _SECRET) == []
            await conversation.add([self.record("and on")])
            assert await self._said(memory, user) == ["before", "after", "and on"]
            await conversation.aclose()

    @in_event_loop
    async def test_records_are_encrypted_if_asked(self, adapter_url: str) -> None:
        if not self.encrypts:
            return
        user = str(uuid4())
        key = {"user_id": user, "encryption_key": "correct horse battery staple"}
        conversation = await self.open(adapter_url, "c", **key)
        given = [self.record(f"I live in {_SECRET}.")]
        await conversation.add(given)
        assert _tables_with(adapter_url, _SECRET) == []
        assert await conversation.records() == given
        await conversation.aclose()


def _read_lines(file: IO[str], count: int, found: list[str]) -> None:
    found += [file.readline().strip() for _ in range(count)]


async def _entries(memory: MemoryStore, user: str) -> list[str]:
    exported = await memory.export_user(user)
    return [entry["content_text"] for entry in exported["entries"]]


def _tables_with(url: str, word: str) -> list[str]:
    """The tables of a database that contain a word, in any row and column."""
    path = sqlite_path(url)
    return _tables_of_file(path, word) if path is not None else _tables_of_server(url, word)


def _tables_of_file(path: str, word: str) -> list[str]:
    file = sqlite3.connect(path)
    try:
        names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [
            name for name in names if any(word in str(row) for row in file.execute(f'SELECT * FROM "{name}"'))
        ]
    finally:
        file.close()


def _tables_of_server(url: str, word: str) -> list[str]:
    import psycopg

    with psycopg.connect(url.replace("+asyncpg", "").replace("+psycopg", "")) as server:
        listed = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return [name for (name,) in listed if _row_with(server, name, word)]


def _row_with(server: Any, table: str, word: str) -> bool:
    found = server.execute(f'SELECT 1 FROM "{table}" t WHERE t::text LIKE %s LIMIT 1', (f"%{word}%",))
    return found.fetchone() is not None


async def _write(name: str, url: str, user: str, conversation: str, writer: str, batches: str) -> None:
    """Write batches, and print each after it was acknowledged."""
    module, _, test = name.partition(":")
    contract: AdapterContract = getattr(importlib.import_module(module), test)()
    opened = await contract.open(url, conversation, user_id=user)
    for number in range(int(batches)):
        await opened.add(contract._batch(writer, number))
        print(f"{writer}/{number}", flush=True)
    await opened.aclose()


if __name__ == "__main__":
    asyncio.run(_write(*sys.argv[1:]))
