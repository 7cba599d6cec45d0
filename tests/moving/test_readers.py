"""The readers. mem0's files, the SDK's and LangGraph's are written by the real packages.

The others follow the documented formats: the export of ChatGPT and of Claude, agent files of Letta
(`letta/schemas/agent_file.py`) and the classes of Graphiti (`graphiti_core/nodes.py`, `edges.py`).
"""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from recollect import AdvancedSQLiteSession, SQLiteSession
from recollect.testing.providers import ProviderServer

from .kit import import_from, reasons, rows_in, store_at

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parent / "fixtures"
"""`mem0/` was written by mem0ai 2.2.1 with its embedded Qdrant, by `write_mem0_files.py`."""


def node(name: str, parent: str | None, role: str, text: Any, time: float | None = None) -> dict[str, Any]:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    message = {"id": name, "author": {"role": role}, "create_time": time, "content": content, "metadata": {}}
    return {"id": name, "message": message, "parent": parent, "children": []}


def chatgpt(**more: Any) -> dict[str, Any]:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f1", "size_bytes": 12}
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["system"]},
        node("system", "root", "system", ""),
        node("q1", "system", "user", "I live in Lisbon", 1_700_000_000.5),
        node("a1", "q1", "assistant", "Nice", 1_700_000_010.0),
        node("q2", "a1", "user", "the first try", 1_700_000_020.0),
        node(
            "q2b",
            "a1",
            "user",
            {"content_type": "multimodal_text", "parts": [picture, "look"]},
            1_700_000_030.0,
        ),
        node("a2b", "q2b", "assistant", "A cat", 1_700_000_040.0),
    ]
    mapping = {each["id"]: each for each in nodes}
    heading = {"conversation_id": "c-1", "title": "Lisbon", "create_time": 1_700_000_000.0}
    return {**heading, "update_time": 1_700_000_050.0, "current_node": "a2b", "mapping": mapping, **more}


async def test_a_tree_of_chatgpt_becomes_a_conversation_with_branches(url: str, tmp_path: Path) -> None:
    source = tmp_path / "export.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt()]))
        archive.writestr("user.json", "{}")
    report = await import_from("chatgpt", source, url)
    assert reasons(report) == []
    assert report.added == {"conversations": 1, "messages": 4, "sessions": 1, "items": 5}
    assert (await import_from("chatgpt", source, url)).added.total() == 0
    async with store_at(url) as store:
        (outline,) = await store.list_conversations("assistant", "ada")
        conversation = await store.get_conversation(outline["conversation_id"])
    assert conversation is not None
    assert [message.content for message in conversation.messages] == [
        "I live in Lisbon",
        "Nice",
        "look",
        "A cat",
    ]
    assert conversation.messages[0].created_at.isoformat() == "2023-11-14T22:13:20.500000+00:00"
    assert conversation.messages[2].attachments[0]["asset_pointer"] == "file-service://f1"
    assert conversation.metadata["title"] == "Lisbon"
    if not url.startswith("postgresql"):
        async with AdvancedSQLiteSession(session_id=conversation.conversation_id, db_path=url) as session:
            branches = {branch["branch_id"]: branch for branch in await session.list_branches()}
            assert set(branches) == {"main", "branch-1"}
            assert len(await session.get_items()) == 4
            await session.switch_to_branch("branch-1")
            assert [item["content"] for item in await session.get_items()] == [  # type: ignore[typeddict-item]
                "I live in Lisbon",
                "Nice",
                "the first try",
            ]


async def test_an_export_of_claude_keeps_times_and_files_as_references(tmp_path: Path) -> None:
    file = {
        "file_name": "plan.txt",
        "file_size": 3,
        "file_type": "txt",
        "extracted_content": "a word, " * 625,
    }
    messages = [
        {"uuid": "m1", "text": "Read this", "sender": "human", "created_at": "2024-02-01T10:00:00.123456Z"},
        {
            "uuid": "m2",
            "text": "",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Done"}],
        },
    ]
    messages[0]["attachments"] = [file]  # type: ignore[assignment]
    messages[1] |= {"sender": "assistant", "created_at": "2024-02-01T10:00:09Z"}
    chat = {"uuid": "c1", "name": "Plan", "created_at": "2024-02-01T10:00:00Z", "chat_messages": messages}
    source = tmp_path / "conversations.json"
    source.write_text(json.dumps([chat, {**chat, "uuid": "c2", "chat_messages": []}]))
    report = await import_from("claude", source, str(tmp_path / "new.db"))
    assert (report.added, reasons(report)) == ({"conversations": 1, "messages": 2}, [])
    assert report.empty == {"conversations without a message": 1}
    rows = rows_in(tmp_path / "new.db", "SELECT content, created_at, attachments FROM conversation_messages")
    assert rows[0][:2] == ("Read this", "2024-02-01T10:00:00.123456Z")
    assert json.loads(rows[0][2])[0]["extracted_content"]["bytes"] == 5000
    assert rows[1][0] == "Done"


async def test_files_of_mem0_become_entries_with_their_history(url: str) -> None:
    report = await import_from("mem0", FIXTURES / "mem0", url)
    assert (report.added, reasons(report)) == ({"entries": 5}, [])
    assert (await import_from("mem0", FIXTURES / "mem0", url)).existing == {"entries": 5}
    async with store_at(url) as store:
        (current,) = await store.list_entries("assistant", "ada")
        assert (current.text, current.metadata["category"]) == ("Ada lives in Lisbon", "home")
        former = await store.list_entries("assistant", "ada", include_retired=True)
        assert [entry.text for entry in former] == [
            "Ada lives in Porto",
            "Ada lives in Lisbon",
            "Ada has a dog",
        ]
        assert former[0].superseded_by == current.content_id
        theirs = await store.list_entries("helper", "ada")
        assert {entry.text for entry in theirs} == {"I like green tea", "noted"}
        assert theirs[0].metadata["run_id"] == "r1"


async def test_the_json_of_mem0_becomes_entries(tmp_path: Path) -> None:
    memory = {
        "id": "m1",
        "memory": "Likes tea",
        "user_id": "bob",
        "categories": ["food"],
        "metadata": {"a": 1},
    }
    memory |= {"created_at": "2024-05-01T00:00:00-07:00", "updated_at": "2024-06-01T00:00:00-07:00"}
    source = tmp_path / "mem0.json"
    source.write_text(json.dumps({"count": 2, "results": [memory, {"id": "m2"}]}))
    report = await import_from("mem0", source, str(tmp_path / "new.db"))
    assert (report.added, report.lost) == ({"entries": 1}, 1)
    async with store_at(str(tmp_path / "new.db")) as store:
        (entry,) = await store.list_entries("assistant", "bob")
    assert (entry.tags, entry.metadata["a"], entry.learned_at.isoformat()) == (
        ("food",),
        1,
        "2024-06-01T07:00:00+00:00",
    )


async def test_a_pickle_that_is_no_point_is_not_run(tmp_path: Path) -> None:
    import pickle
    import sqlite3
    from contextlib import closing

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "run",))

    with closing(sqlite3.connect(tmp_path / "storage.sqlite")) as connection:
        connection.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        connection.execute("INSERT INTO points VALUES ('1', ?)", (pickle.dumps(Evil()),))
        connection.commit()
    report = await import_from("mem0", tmp_path, str(tmp_path / "new.db"))
    assert (report.lost, (tmp_path / "run").exists()) == (1, False)


async def test_an_agent_file_of_letta(tmp_path: Path) -> None:
    packed = json.dumps({"type": "user_message", "message": "I live in Lisbon", "time": "2025"})
    reply = {"function": {"name": "send_message", "arguments": json.dumps({"message": "Lovely"})}}
    messages = [
        {"id": "message-0", "role": "system", "content": [{"type": "text", "text": "You are…"}]},
        {"id": "message-1", "role": "user", "content": [{"type": "text", "text": packed}]},
        {
            "id": "message-2",
            "role": "assistant",
            "content": [{"type": "text", "text": "thinks"}],
            "tool_calls": [reply],
        },
        {"id": "message-3", "role": "user", "content": [{"type": "text", "text": '{"type": "heartbeat"}'}]},
    ]
    for number, message in enumerate(messages):
        message["created_at"] = f"2025-03-0{number + 1}T10:00:00+00:00"
    agent = {"id": "agent-0", "name": "helper", "block_ids": ["block-0", "gone"], "messages": messages}
    agent["passages"] = [{"id": "p1", "text": "Ada went to Rome", "created_at": "2025-01-01T00:00:00+00:00"}]
    block = {"id": "block-0", "label": "human", "value": "Name: Ada\n- likes tea\n\n", "limit": 5000}
    source = tmp_path / "helper.af"
    source.write_text(json.dumps({"agents": [agent], "blocks": [block], "files": [], "metadata": {}}))
    report = await import_from("letta", source, str(tmp_path / "new.db"))
    assert report.added == {"conversations": 1, "messages": 2, "entries": 3}
    assert reasons(report) == ["1 blocks that it refers to are missing"]
    async with store_at(str(tmp_path / "new.db")) as store:
        texts = {entry.text: entry.content_type for entry in await store.list_entries("helper", "ada")}
    assert texts == {"Name: Ada": "profile", "likes tea": "profile", "Ada went to Rome": "event"}
    said = rows_in(tmp_path / "new.db", "SELECT content, created_at FROM conversation_messages ORDER BY 2")
    assert said == [
        ("I live in Lisbon", "2025-03-02T10:00:00.000000Z"),
        ("Lovely", "2025-03-03T10:00:00.000000Z"),
    ]


async def test_facts_of_graphiti_keep_both_times_and_their_episodes(tmp_path: Path) -> None:
    episode = {"uuid": "e1", "content": "Ada: I moved to Lisbon", "group_id": "g", "source": "message"}
    episode |= {"valid_at": "2024-05-01T10:00:00Z", "created_at": "2024-05-01T10:00:01Z"}
    edge = {
        "uuid": "x1",
        "fact": "Ada lives in Porto",
        "name": "LIVES_IN",
        "episodes": ["e1", "gone"],
        "group_id": "g",
    }
    edge |= {"created_at": "2023-01-01T00:00:00Z", "valid_at": "2020-01-01T00:00:00Z"}
    edge |= {"invalid_at": "2024-05-01T00:00:00Z", "expired_at": "2024-05-01T10:00:02Z"}
    nodes = [
        {"uuid": "n1", "name": "Ada", "summary": "Ada is an engineer.", "labels": ["Person"], "group_id": "g"}
    ]
    source = tmp_path / "graph.json"
    source.write_text(json.dumps({"nodes": nodes, "edges": [edge, {"fact": "x"}], "episodes": [episode]}))
    report = await import_from("graphiti", source, str(tmp_path / "new.db"))
    assert report.added == {"conversations": 1, "messages": 1, "entries": 2}
    assert len(reasons(report)) == 2
    async with store_at(str(tmp_path / "new.db")) as store:
        (current,) = await store.list_entries("assistant", "ada")
        assert current.text == "Ada is an engineer."
        (past,) = await store.list_entries("assistant", "ada", as_of="2024-01-01")
        assert (past.valid_from, past.valid_to, past.text) == (
            "2020-01-01",
            "2024-05-01",
            "Ada lives in Porto",
        )
        assert past.evidence[0].message_id == "e1"
    nothing = await import_from("zep", source, str(tmp_path / "new.db"))
    assert nothing.added.total() == 0


async def test_sessions_of_the_sdk_keep_branches_usage_and_times(tmp_path: Path) -> None:
    from agents import RunContextWrapper, Usage
    from agents import SQLiteSession as TheirSession
    from agents.extensions.memory import AdvancedSQLiteSession as TheirAdvanced

    old = TheirAdvanced(session_id="s1", db_path=tmp_path / "old.db", create_tables=True)
    await old.add_items([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}])
    await old.add_items([{"role": "user", "content": "three"}])
    result = type(
        "Result", (), {"context_wrapper": RunContextWrapper(None, usage=Usage(requests=1, input_tokens=7))}
    )
    await old.store_run_usage(result())  # type: ignore[arg-type]
    await old.create_branch_from_turn(2, "other")
    await old.add_items([{"role": "user", "content": "four"}])
    old.close()
    plain = TheirSession("s2", tmp_path / "old.db")
    await plain.add_items([{"role": "user", "content": "plain"}])
    plain.close()
    stamps = "UPDATE agent_messages SET created_at = '2024-01-02 03:04:05'"
    _execute(tmp_path / "old.db", stamps)
    for _ in range(2):
        report = await import_from("openai-agents", tmp_path / "old.db", str(tmp_path / "new.db"))
        assert reasons(report) == []
    assert report.existing == {"sessions": 2, "items": 5}
    assert {row[0] for row in rows_in(tmp_path / "new.db", "SELECT created_at FROM agent_messages")} == {
        "2024-01-02 03:04:05"
    }
    assert rows_in(tmp_path / "new.db", "SELECT user_turn_number, input_tokens FROM turn_usage") == [(2, 7)]
    async with AdvancedSQLiteSession(session_id="s1", db_path=tmp_path / "new.db") as session:
        assert [item["content"] for item in await session.get_items()] == ["one", "two", "three"]  # type: ignore[typeddict-item]
        await session.switch_to_branch("other")
        assert [item["content"] for item in await session.get_items()] == ["one", "two", "four"]  # type: ignore[typeddict-item]


def _execute(path: Path, statement: str) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


async def test_encrypted_sessions_open_with_their_key(tmp_path: Path) -> None:
    from agents import SQLiteSession as TheirSession
    from agents.extensions.memory import EncryptedSession as TheirEncrypted

    from recollect import EncryptedSession

    plain = TheirSession("s1", tmp_path / "old.db")
    theirs = TheirEncrypted("s1", plain, "a key of some length")
    await theirs.add_items([{"role": "user", "content": "secret"}])
    plain.close()
    report = await import_from("openai-agents", tmp_path / "old.db", str(tmp_path / "new.db"))
    assert (report.added["items"], reasons(report)) == (1, [])
    async with SQLiteSession("s1", tmp_path / "new.db") as stored:
        ours = EncryptedSession("s1", stored, "a key of some length")
        assert await ours.get_items() == [{"role": "user", "content": "secret"}]


async def test_sessions_of_the_sdk_on_postgresql(migrated_postgres: str, tmp_path: Path) -> None:
    from agents.extensions.memory import SQLAlchemySession as TheirSession
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(migrated_postgres.replace("postgresql:", "postgresql+asyncpg:"))
    theirs = TheirSession("s1", engine=engine, create_tables=True)
    await theirs.add_items([{"role": "user", "content": "hello"}])
    await engine.dispose()
    report = await import_from("openai-agents", migrated_postgres, str(tmp_path / "new.db"))
    assert (report.added, reasons(report)) == ({"sessions": 1, "items": 1}, [])


async def test_sessions_of_the_sdk_on_redis(redis_url: str, tmp_path: Path) -> None:
    from agents.extensions.memory import RedisSession as TheirSession

    theirs = TheirSession.from_url("moving/1", url=redis_url)
    await theirs.add_items([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}])
    await theirs.close()
    report = await import_from("openai-agents", redis_url, str(tmp_path / "new.db"))
    assert reasons(report) == []
    async with SQLiteSession("moving/1", tmp_path / "new.db") as session:
        assert len(await session.get_items()) == 2


async def test_conversations_of_the_openai_api(running_server: ProviderServer, tmp_path: Path) -> None:
    import openai

    options = {"api_key": running_server.api_key, "base_url": running_server.base_url}
    async with openai.AsyncOpenAI(**options) as client:
        made = await client.conversations.create(items=[{"role": "user", "content": "I live in Lisbon"}])
    source = f"{made.id},conv_missing"
    report = await import_from("openai-conversations", source, str(tmp_path / "new.db"), **options)
    assert report.added == {"sessions": 1, "items": 1, "conversations": 1, "messages": 1}
    assert reasons(report) == ["the API has no such conversation"]
    again = await import_from("openai-conversations", made.id, str(tmp_path / "new.db"), **options)
    assert again.added.total() == 0


async def test_checkpoints_and_a_store_of_langgraph(tmp_path: Path) -> None:
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    from recollect.moving.readers.langgraph import copy_langgraph

    path = str(tmp_path / "graph.db")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        config = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
        await saver.aput(config, empty_checkpoint(), {"source": "input", "step": -1, "parents": {}}, {})  # type: ignore[arg-type]
    async with AsyncSqliteStore.from_conn_string(path) as store:
        await store.setup()
        await store.aput(("users", "ada"), "k", {"likes": "tea"})
    report = await copy_langgraph(path, str(tmp_path / "new.db"))
    assert report.added == {"checkpoints": 1, "store items": 1}
    assert (await copy_langgraph(path, str(tmp_path / "new.db"))).existing == {
        "checkpoints": 1,
        "store items": 1,
    }
