"""Threads are seen like everything else: listed, shown, learned from, and erased with a receipt."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from recollect import MemoryStore
from recollect.cli import main
from recollect.errors import InvalidValueError
from recollect.integrations.langgraph import Checkpointer, Store, learn_from_thread
from recollect.memory.rights.langgraph_data import THREAD_TABLES, label_of_user
from recollect.testing.contract import in_event_loop

from .graphs import ask, chat_graph, config_of

OWNERS = [("notes", "{user_id}"), ("{user_id}", "inner")]


def run_turns(url: str, thread_id: str, user_id: str, *texts: str) -> None:
    """Run a graph, one turn for each text."""
    with Checkpointer(url, create_tables=True) as checkpointer:
        for text in texts:
            chat_graph(checkpointer).invoke(ask(text), config_of(thread_id, user_id=user_id))


def test_the_command_line_lists_shows_and_deletes_threads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = str(tmp_path / "agents.db")
    run_turns(url, "trip", "ada", "Where is Oslo?", "And Rome?")
    run_turns(url, "other", "bob", "hi")

    def run(*arguments: str) -> Any:
        assert main(["sessions", *arguments, "--threads", "--url", url, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    (listed,) = run("list", "--user", "ada")
    assert (listed["session_id"], listed["item_count"], listed["user_id"]) == ("trip", 6, "ada")
    assert [each["session_id"] for each in run("list")] == ["other", "trip"]
    said = [item["content"] for item in run("show", "trip")["items"]]
    assert said == ["Where is Oslo?", "re: Where is Oslo?", "And Rome?", "re: And Rome?"]
    assert main(["sessions", "list", "--threads", "--url", url]) == 0
    assert "CHECKPOINTS" in capsys.readouterr().out
    assert run("delete", "trip", "--yes") == {"session_id": "trip", "deleted": True}
    assert [each["session_id"] for each in run("list")] == ["other"]
    assert main(["sessions", "show", "trip", "--threads", "--url", url]) != 0
    assert main(["sessions", "delete", "trip", "--yes", "--threads", "--url", url]) != 0


def test_an_export_of_a_user_has_their_threads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "agents.db")
    run_turns(url, "trip", "ada", "Where is Oslo?")
    run_turns(url, "other", "bob", "hi")
    assert main(["export", "--user", "ada", "--url", url, "--json"]) == 0
    (thread,) = json.loads(capsys.readouterr().out)["threads"]
    assert thread["thread_id"] == "trip"
    assert [item["content"] for item in thread["items"]] == ["Where is Oslo?", "re: Where is Oslo?"]
    target = tmp_path / "ada.jsonl"
    assert main(["export", "--user", "ada", "--url", url, "--output", str(target)]) == 0
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["data"] for line in lines[1:] if line["kind"] == "threads"] == [thread]
    assert main(["import", str(target), "--url", str(tmp_path / "new.db")]) == 0  # which skips threads


def test_an_export_without_langgraph_has_all_but_the_messages_of_threads(tmp_path: Path) -> None:
    url = str(tmp_path / "agents.db")
    run_turns(url, "trip", "ada", "Where is Oslo?")

    async def record() -> None:
        async with MemoryStore(url, workers=0, embedder=None) as store:
            await store.record_conversation("assistant", "ada", [{"role": "user", "content": "Hello."}])

    asyncio.run(record())
    script = (
        "import sys; sys.modules['langgraph'] = None\n"  # Python then treats it as not installed
        "from recollect.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for options in ([], ["--json"]):
        ended = subprocess.run(
            [sys.executable, "-c", script, "export", "--user", "ada", "--url", url, *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        assert "the messages of 1 thread are not in the export" in ended.stderr
        if options:
            exported = json.loads(ended.stdout)
            conversations, threads = exported["conversations"], exported["threads"]
        else:
            lines = [json.loads(line) for line in ended.stdout.splitlines()][1:]
            conversations, threads = (
                [line["data"] for line in lines if line["kind"] == kind]
                for kind in ("conversations", "threads")
            )
        assert len(conversations) == 1
        assert [(thread["thread_id"], thread["is_readable"]) for thread in threads] == [("trip", False)]


def test_an_export_of_all_has_threads_and_items_of_users_without_a_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, new, target = str(tmp_path / "agents.db"), str(tmp_path / "new.db"), tmp_path / "all.jsonl"
    run_turns(url, "trip", "ada", "Where is Oslo?")
    run_turns(url, "other", "bob", "hi")
    with Store(url, embedder=None, owners=OWNERS) as items:
        items.put(("notes", "ada"), "diet", {"text": "no meat"})
        items.put(("of", "nobody"), "1", {"text": "shared"})
    assert main(["export", "--all", "--url", url, "--output", str(target)]) == 0
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    threads = {line["data"]["thread_id"]: line["data"] for line in lines[1:] if line["kind"] == "threads"}
    assert {name: thread["user_id"] for name, thread in threads.items()} == {"trip": "ada", "other": "bob"}
    assert [item["content"] for item in threads["other"]["items"]] == ["hi", "re: hi"]
    capsys.readouterr()
    assert main(["import", "jsonl", str(target), "--url", new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == {"store_items": 2}
    with Store(new, embedder=None) as items:
        assert {item.value["text"] for item in items.search(())} == {"no meat", "shared"}
    assert main(["export", "--all", "--agent", "assistant", "--url", url, "--output", str(target)]) == 0
    assert len(target.read_text().splitlines()) == 1


def test_a_database_without_threads_is_not_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE own (id)")
    assert main(["sessions", "list", "--threads", "--url", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("own",)]


@in_event_loop
async def test_erasing_a_user_erases_their_threads_and_items(shared_url: str) -> None:
    user, other = f"ada.{uuid4().hex}", uuid4().hex
    for name in (user, other):
        await asyncio.to_thread(run_turns, shared_url, f"thread of {name}", name, "I live in Oslo.")
    async with (
        Store(shared_url, embedder=None, create_tables=True, owners=OWNERS) as items,
        MemoryStore(shared_url, workers=0, embedder=None, create_tables=True) as store,
        Checkpointer(shared_url) as checkpointer,
    ):
        for name in (user, other):
            await items.aput(("notes", label_of_user(name)), "1", {"text": "a note"})
            await items.aput((label_of_user(name), "inner"), "2", {"text": "a note"})
        receipt = await store.erase_user(user)
        assert (receipt.counts["threads"], receipt.counts["store_items"]) == (1, 2)
        assert user not in str(receipt)
        assert await checkpointer.aget_tuple(config_of(f"thread of {user}")) is None
        assert await checkpointer.aget_tuple(config_of(f"thread of {other}")) is not None
        assert await items.asearch(("notes", label_of_user(user))) == []
        assert len(await items.asearch(("notes", label_of_user(other)))) == 1
        for table in THREAD_TABLES[1:]:  # nothing is left behind by the cascade
            left = f"SELECT count(*) FROM {table} WHERE thread NOT IN (SELECT id FROM langgraph_threads)"
            assert await checkpointer._tables.fetch(left, (), lambda rows: rows[0][0]) == 0
        assert "threads" not in (await store.erase_user(user)).counts


@in_event_loop
async def test_a_checkpointer_learns_as_it_stores(shared_url: str) -> None:
    user, thread = f"ada {uuid4().hex}", uuid4().hex
    async with Checkpointer(shared_url, create_tables=True, learn=True) as checkpointer:
        memory = checkpointer.memory
        assert memory is not None
        await chat_graph(checkpointer).ainvoke(ask("I live in Oslo."), config_of(thread, user_id=user))
        await chat_graph(checkpointer).ainvoke(ask("I like tea."), config_of("nobody's " + thread))
        await memory.drain(timeout=60)
        assert any("Oslo" in entry.text for entry in await memory.list_entries("assistant", user))
        assert await learn_from_thread(checkpointer, memory, "assistant", thread, user_id=user) == []
    async with Checkpointer(shared_url, learn=True) as checkpointer:  # as in another process
        memory = checkpointer.memory
        assert memory is not None
        await chat_graph(checkpointer).ainvoke(ask("I am a vegetarian."), config_of(thread, user_id=user))
        (outline,) = await memory.list_conversations("assistant", user)
        conversation = await memory.get_conversation(outline["conversation_id"])
        assert conversation is not None
        assert [message.content for message in conversation.messages] == [
            "I live in Oslo.",
            "re: I live in Oslo.",
            "I am a vegetarian.",
            "re: I am a vegetarian.",
        ]


def test_a_checkpointer_learns_in_synchronous_runs_and_in_a_memory_of_yours(tmp_path: Path) -> None:
    with Checkpointer(tmp_path / "a.db", learn=True) as checkpointer:
        chat_graph(checkpointer).invoke(ask("I live in Oslo."), config_of("t", user_id="ada"))

    async def learned() -> list[str]:
        async with MemoryStore(tmp_path / "own.db", workers=1, embedder=None) as memory:
            own = Checkpointer(tmp_path / "b.db", learn=True, memory=memory, agent_id="cook")
            async with own:
                await chat_graph(own).ainvoke(ask("I live in Oslo."), config_of("t", user_id="ada"))
            await memory.drain(timeout=60)
            return [entry.text for entry in await memory.list_entries("cook", "ada")]

    assert any("Oslo" in text for text in asyncio.run(learned()))


@in_event_loop
async def test_a_run_goes_on_if_its_messages_cannot_be_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nowhere = "postgresql://postgres@127.0.0.1:1/none"
    async with (
        MemoryStore(nowhere, workers=0, embedder=None) as memory,
        Checkpointer(tmp_path / "a.db", learn=True, memory=memory) as checkpointer,
    ):
        done = await chat_graph(checkpointer).ainvoke(ask("a secret"), config_of("t", user_id="ada"))
        assert len(done["messages"]) == 2
    assert "messages of a thread were not recorded" in caplog.text
    assert "a secret" not in caplog.text


@in_event_loop
async def test_a_thread_is_learned_from_once(tmp_path: Path) -> None:
    url = str(tmp_path / "agents.db")
    async with (
        Checkpointer(url) as checkpointer,
        MemoryStore(url, workers=1, embedder=None) as store,
    ):
        graph = chat_graph(checkpointer)
        await graph.ainvoke(ask("I live in Oslo."), config_of("trip", user_id="ada"))
        first = await learn_from_thread(checkpointer, store, "assistant", "trip")
        assert [(each.role, each.content) for each in first] == [
            ("user", "I live in Oslo."),
            ("assistant", "re: I live in Oslo."),
        ]
        assert await learn_from_thread(checkpointer, store, "assistant", "trip") == []
        await graph.ainvoke(ask("I am a vegetarian."), config_of("trip", user_id="ada"))
        assert len(await learn_from_thread(checkpointer, store, "assistant", "trip")) == 2
        await store.drain(timeout=60)
        entries = await store.list_entries("assistant", "ada")
        assert any("Oslo" in entry.text for entry in entries)
        assert all(entry.evidence for entry in entries)
        with pytest.raises(InvalidValueError, match="does not exist"):
            await learn_from_thread(checkpointer, store, "assistant", "no such thread")
