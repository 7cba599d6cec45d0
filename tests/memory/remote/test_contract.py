"""What every store does, whether its data is in a database or in a service."""

import asyncio
import inspect
import math
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import UNCHANGED, ConflictError, Memory, MemoryStore, RemoteMemoryStore
from recollect.memory.operations.description import Operation
from recollect.testing.contract import in_event_loop

from .conftest import OpenStore

AGENT = "assistant"
SAID = [
    {"role": "user", "content": "I'm Ada. I moved to Lisbon.", "name": "Ada"},
    {"role": "assistant", "content": "Enjoy Lisbon!"},
]
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}


async def record(store: MemoryStore, user: str, *messages: Any, **more: Any) -> Any:
    said = messages or [{"role": "user", "content": "I moved to Lisbon. I am allergic to nuts."}]
    return await store.record_conversation(AGENT, user, said, **more)


async def learned(store: MemoryStore, user: str) -> None:
    assert await store.wait_until_learned(AGENT, user, timeout=60)


@in_event_loop
async def test_what_is_recorded_is_read_again(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        made = await store.record_conversation(
            AGENT,
            user,
            [*SAID, {"role": "user", "content": [{"type": "text", "text": "look"}, PICTURE]}],
            session_id="monday",
            created_at=datetime(2025, 3, 2, 10, 30, 1, 234567, tzinfo=UTC),
            metadata={"source": "test", "deep": [1, {"two": None}]},
            tags=["b", "a"],
        )
        read = await store.get_conversation(made.conversation_id)
        assert read is not None
        assert read.to_dict() | {"pipeline_result": None} == made.to_dict() | {"pipeline_result": None}
        assert [message.content for message in read.messages] == [SAID[0]["content"], "Enjoy Lisbon!", "look"]
        assert read.messages[2].attachments[0]["type"] == "image_url"
        assert read.created_at == datetime(2025, 3, 2, 10, 30, 1, 234567, tzinfo=UTC)
        assert (read.metadata, set(read.tags)) == ({"source": "test", "deep": [1, {"two": None}]}, {"a", "b"})
        assert read.messages == made.messages


@in_event_loop
async def test_the_same_twice_is_once_and_another_is_a_conflict(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        first = await record(store, user, *SAID, conversation_id=str(uuid.uuid4()))
        same = [message.to_dict() | {"attachments": None} for message in first.messages]
        again = await record(
            store, user, *same, conversation_id=first.conversation_id, session_id=first.session_id
        )
        assert again.messages == first.messages
        assert len(await store.list_conversations(AGENT, user)) == 1
        with pytest.raises(ConflictError):
            await record(
                store, user, {"role": "user", "content": "else"}, conversation_id=first.conversation_id
            )


@in_event_loop
async def test_attachments_of_a_message_are_written_again(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        made = await record(store, user, {"role": "user", "content": [PICTURE]})
        same = {"content": made.messages[0].content, "attachments": made.messages[0].attachments}
        copy = await record(store, user, {"role": "user", **same})
        assert copy.messages[0].attachments == made.messages[0].attachments


@in_event_loop
async def test_a_conversation_is_opened_appended_to_and_closed(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        opened = await store.open_conversation(
            AGENT, user, memory_strategy={"mode": "trim", "max_user_turns": 3}, memory_injection=True
        )
        again = await store.open_conversation(AGENT, user, conversation_id=opened.conversation_id)
        assert again.to_dict() == opened.to_dict()
        with pytest.raises(ConflictError):
            await store.open_conversation(AGENT, "another", conversation_id=opened.conversation_id)
        added = await store.append_messages(opened.conversation_id, SAID, learn_after=3600)
        assert [message.message_index for message in added] == [0, 1]
        assert await store.append_messages(opened.conversation_id, added) == added
        closed = await store.close_conversation(opened.conversation_id)
        assert closed is not None
        assert closed.closed_at is not None
        assert closed.messages == tuple(added)
        with pytest.raises(ConflictError):
            await store.append_messages(opened.conversation_id, [{"role": "user", "content": "more"}])
        late = [{"role": "assistant", "content": "reply"}]
        assert len(await store.append_messages(opened.conversation_id, late, even_if_closed=True)) == 1


@in_event_loop
async def test_messages_can_be_recorded_without_learning(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        opened = await store.open_conversation(AGENT, user)
        await store.append_messages(opened.conversation_id, SAID, learn_after=math.inf)
        assert await store.wait_until_learned(AGENT, user, timeout=30)
        assert await store.list_entries(AGENT, user) == []
        assert (await store.search_conversations("Lisbon", AGENT, user)).hits


@in_event_loop
async def test_settings_change_one_by_one_and_have_a_version(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        opened = await store.open_conversation(AGENT, user)
        key = opened.conversation_id
        first = await store.get_conversation_settings(key)
        assert first is not None
        changed = await store.change_conversation_settings(key, memory_injection=False, version=first.version)
        assert changed is not None
        assert (changed.memory_injection, changed.memory_strategy) == (False, None)
        with pytest.raises(ConflictError):
            await store.change_conversation_settings(key, memory_injection=True, version=first.version)
        cleared = await store.change_conversation_settings(
            key, memory_injection=None, memory_strategy=UNCHANGED
        )
        assert cleared is not None
        assert cleared.memory_injection is None


@in_event_loop
async def test_unknown_things_are_none_or_empty(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        assert await store.get_conversation("nothing") is None
        assert await store.get_conversation_outline("nothing") is None
        assert await store.close_conversation("nothing") is None
        assert await store.get_conversation_settings("nothing") is None
        assert await store.change_conversation_settings("nothing", memory_injection=True) is None
        assert await store.list_messages("nothing") is None
        assert await store.get_memory(AGENT, user) is None
        assert await store.get_memory_by_id("nothing") is None
        assert await store.get_memory_outline("nothing") is None
        assert await store.get_entry("nothing") is None
        assert await store.get_history("nothing") == []
        assert await store.delete_entry("nothing") == 0
        assert await store.list_entries(AGENT, user) == []
        assert await store.list_entries_of("nothing") is None
        assert await store.why("nothing") is None
        assert await store.get_run("nothing") is None
        assert await store.list_runs_of("nothing") == []
        assert (await store.search_memories("anything", AGENT, user)).hits == ()
        assert (await store.search_conversations("anything", AGENT, user, limit=0)).hits == ()
        assert (await store.recall("anything", AGENT, user)).text == ""
        assert (await store.erase_conversation("nothing")).counts == {}
        assert (await store.erase_message("nothing", "nothing")).counts == {}
        assert not any((await store.erase_user(user)).counts.values())
        for change in (store.confirm_entry, store.reject_entry, store.retry_run):
            with pytest.raises(ConflictError):
                await change("nothing")
        with pytest.raises(ConflictError):
            await store.edit_entry("nothing", "text")
        with pytest.raises(ConflictError):
            await store.append_messages("nothing", SAID)


@in_event_loop
async def test_lists_are_read_page_by_page(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        start = datetime(2025, 1, 1, tzinfo=UTC)
        made = [
            await record(store, user, created_at=start + timedelta(hours=hour), session_id="s")
            for hour in range(5)
        ]
        rows = await store.list_conversations(AGENT, user, limit=2)
        rest = await store.list_conversations(AGENT, user, before=rows[-1]["position"], limit=90)
        ids = [row["conversation_id"] for row in [*rows, *rest]]
        assert ids == [each.conversation_id for each in reversed(made)]
        assert await store.list_conversations(AGENT, user, before=rest[-1]["position"]) == []
        assert len(await store.list_conversations(AGENT, user, session_id="s")) == 5
        assert await store.list_conversations(AGENT, user, session_id="other") == []
        outline = await store.get_conversation_outline(ids[0])
        assert outline is not None
        assert {**outline, "pipeline_result": None} == {**rows[0], "pipeline_result": None}

        long = await record(
            store, user, *[{"role": "user", "content": f"number {number}"} for number in range(45)]
        )
        page = await store.list_messages(long.conversation_id, after=9, limit=3)
        assert page is not None
        assert [message.content for message in page] == ["number 10", "number 11", "number 12"]
        everything = await store.list_messages(long.conversation_id, limit=1000)
        assert everything == list(long.messages)
        around = await store.list_messages(long.conversation_id, around=long.messages[20].message_id, limit=3)
        assert around == list(long.messages[19:22])

        found = await store.find_conversations("number 44", user_id=user)
        assert [row["conversation_id"] for row in found.conversations] == [long.conversation_id]
        mine = [row.user_id for row in await store.list_memories(AGENT, user)]
        assert mine == [user]


@in_event_loop
async def test_learned_entries_are_listed_with_their_reasons(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        made = await record(store, user)
        await learned(store, user)
        entries = await store.list_entries(AGENT, user)
        assert any("Lisbon" in entry.text for entry in entries)
        memory = await store.get_memory(AGENT, user)
        assert memory is not None
        outline = await store.get_memory_outline(memory.memory_id)
        assert outline is not None
        assert [outline] == await store.list_memories(AGENT, user)
        positioned = await store.list_entries_of(memory.memory_id, limit=1)
        assert positioned is not None
        rest = await store.list_entries_of(memory.memory_id, after=positioned[0][0])
        assert rest is not None
        assert [entry.content_id for _, entry in [*positioned, *rest]] == [
            each.content_id for each in entries
        ]
        why = await store.why(entries[0].content_id)
        assert why is not None
        assert why.entry.content_id == entries[0].content_id
        assert why.evidence[0].content == made.messages[0].content
        assert why.origin is not None
        runs = await store.list_runs_of(made.conversation_id)
        assert [run.status for run in runs] == ["done"]
        assert await store.get_run(runs[0].run_id) == runs[0]
        assert runs[0].run_id in {
            run.run_id for run in await store.list_newest_runs("done", made.conversation_id)
        }
        assert runs == await store.list_runs(None, made.conversation_id)
        coverage = await store.coverage(AGENT, user)
        assert (coverage.remembered, coverage.pending) == (1, 0)
        with pytest.raises(ConflictError):
            await store.retry_run(runs[0].run_id)


@in_event_loop
async def test_entries_are_added_edited_reviewed_and_deleted(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        entry = await store.add_entry(
            AGENT, user, "profile", "Ada plays the cello.", valid_from="2024-05", confidence=0.5,
            metadata={"by": "form"}, tags=["music"], expires_at=datetime(2090, 1, 1, tzinfo=UTC),
        )  # fmt: skip
        assert (entry.text, entry.valid_from, entry.confidence) == ("Ada plays the cello.", "2024-05", 0.5)
        assert (entry.metadata, entry.tags) == ({"by": "form"}, ("music",))
        assert entry.expires_at == datetime(2090, 1, 1, tzinfo=UTC)
        assert await store.get_entry(entry.content_id) == entry
        again = await store.add_entry(
            AGENT, user, "profile", "Ada plays the cello.", content_id=entry.content_id,
            metadata={"by": "form"}, tags=["music"],
        )  # fmt: skip
        assert again.content_id == entry.content_id
        with pytest.raises(ConflictError):
            await store.add_entry(AGENT, user, "profile", "Another.", content_id=entry.content_id)
        known, is_new = await store.add_entry_unless_known(AGENT, user, "profile", "Ada plays the cello")
        assert (known.content_id, is_new) == (entry.content_id, False)
        other, is_new = await store.add_entry_unless_known(AGENT, user, "mind", "Ada likes rain.")
        assert is_new
        edited = await store.edit_entry(entry.content_id, "Ada plays the viola.")
        assert edited.supersedes == (entry.content_id,)
        assert edited.metadata == {"by": "form"}
        assert [each.text for each in await store.get_history(edited.content_id)] == [entry.text, edited.text]
        with pytest.raises(ConflictError):
            await store.edit_entry(entry.content_id, "Ada plays the harp.")
        rejected = await store.reject_entry(other.content_id)
        assert rejected.rejected_at is not None
        assert (await store.confirm_entry(other.content_id)).rejected_at is None
        kinds = await store.list_entries(AGENT, user, content_type="profile", include_retired=True)
        assert {each.content_id for each in kinds} == {entry.content_id, edited.content_id}
        assert await store.delete_entry(edited.content_id) == 2
        assert [each.content_id for each in await store.list_entries(AGENT, user)] == [other.content_id]


@in_event_loop
async def test_a_page_is_read_now_and_in_the_past_with_its_versions(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        empty = await store.page(AGENT, user)
        assert (empty.text, empty.lines) == ("", ())
        await record(store, user, {"role": "user", "content": "I am allergic to nuts."})
        await learned(store, user)
        page = await store.page(AGENT, user)
        (entry,) = await store.list_entries(AGENT, user)
        (line,) = page.lines
        assert (line.content_id, line.evidence) == (entry.content_id, entry.evidence)
        assert page.text.endswith(f"{line.text} [{line.mark}]\n")
        assert line.text in page.prompt
        before = await store.page(AGENT, user, as_of=entry.learned_at - timedelta(days=1))
        assert (before.text, before.as_of) == ("", entry.learned_at - timedelta(days=1))
        short = await store.page(AGENT, user, budget=10)
        assert (short.lines, short.left_out) == ((), 1)
        (version,) = await store.page_history(AGENT, user)
        assert (version.version, version.as_of) == (page.version, entry.learned_at)
        assert await store.page_history(AGENT, user, limit=0) == []


@in_event_loop
async def test_a_memory_is_saved_and_saved_again(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        saved = await store.save_memory(Memory(AGENT, user, {"profile": ["Ada is a nurse."]}))
        assert saved.profile_content == ["Ada is a nurse."]
        old = await store.get_memory_by_id(saved.memory_id)
        assert old is not None
        saved.instruction_content = ["Answer briefly."]
        changed = await store.save_memory(saved)
        assert (changed.version, changed.instruction_content) == (saved.version + 1, ["Answer briefly."])
        with pytest.raises(ConflictError):
            await store.save_memory(old)
        receipt = await store.delete_memory(saved.memory_id)
        assert receipt.counts


@in_event_loop
async def test_search_and_recall_find_what_was_said_and_learned(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        await record(store, user, tags=["home"])
        await store.add_entry(AGENT, user, "instruction", "Answer in French.")
        await learned(store, user)
        search = await store.search_memories("What is Ada allergic to?", AGENT, user)
        assert "allergic to nuts" in search.hits[0].entry.text
        assert search.hits[0].parts
        assert 0 < search.relevance <= 1
        assert search.hits[0].entry.evidence
        turns = await store.search_conversations("Lisbon", None, user, tags=["home"], role="user")
        assert turns.hits[0].passage
        assert turns.hits[0].agent_id == AGENT
        assert not (await store.search_conversations("Lisbon", AGENT, user, tags=["work"])).hits
        recalled = await store.recall("Which allergies does she have?", AGENT, user, budget=500)
        assert "allergic to nuts" in recalled.text
        assert [entry.text for entry in recalled.instructions] == ["Answer in French."]
        later = datetime.now(UTC) + timedelta(days=1)
        assert not (await store.search_conversations("Lisbon", AGENT, user, since=later)).hits


@in_event_loop
async def test_a_user_is_exported_and_erased(open_store: OpenStore, user: str, tmp_path: Path) -> None:
    async with open_store() as store:
        made = await record(store, user, *SAID)
        await learned(store, user)
        exported = await store.export_user(user)
        assert [each["conversation_id"] for each in exported["conversations"]] == [made.conversation_id]
        lines = [line async for line in store.export_user_lines(user, agent_id=AGENT)]
        assert await store.export_user_to(tmp_path / "export.jsonl", user, agent_id=AGENT) == len(lines)
        receipt = await store.erase_message(made.conversation_id, made.messages[1].message_id)
        assert receipt.counts["messages"] == 1
        assert receipt.subject
        assert (await store.erase_user(user)).counts["conversations"] == 1
        assert (await store.export_user(user))["conversations"] == []


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("record_conversation", (AGENT, "", SAID)),
        ("record_conversation", (AGENT, "ada", [])),
        ("record_conversation", (AGENT, "ada", [{"role": "nobody", "content": "x"}])),
        ("record_conversation", (AGENT, "ada", "text")),
        (
            "record_conversation",
            (AGENT, "ada", [{"role": "user", "content": "x", "created_at": "2190-01-01"}]),
        ),
        ("append_messages", ("c", [])),
        ("list_conversations", (AGENT, None)),
        ("search_memories", (7, AGENT, "ada")),
        ("search_memories", ("x", AGENT, "")),
        ("add_entry", (AGENT, "ada", "gossip", "text")),
        ("add_entry", (AGENT, "ada", "profile", "   ")),
        ("get_entry", ("",)),
    ],
)
@in_event_loop
async def test_bad_arguments_are_the_same_errors(open_store: OpenStore, call: str, arguments: Any) -> None:
    async with open_store() as store:
        with pytest.raises((ValueError, TypeError)) as raised:
            await getattr(store, call)(*arguments)
        assert not isinstance(raised.value, ConflictError)


@in_event_loop
async def test_many_calls_at_once(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        await asyncio.gather(*(record(store, user) for _ in range(20)))
        assert len(await store.list_conversations(AGENT, user)) == 20


def test_every_method_of_each_part_is_remote(tmp_path: Path) -> None:
    """A method that a remote part inherits would look for a database that it does not have."""
    local = MemoryStore(tmp_path / "memory.db", embedder=None)
    remote = vars(RemoteMemoryStore("http://127.0.0.1:1")._parts)
    sent = {
        name
        for name, _ in inspect.getmembers(MemoryStore, inspect.iscoroutinefunction)
        for operation in Operation.__subclasses__()
        if operation.__name__ == name.title().replace("_", "") and operation.route is not None
    }
    assert set(remote) == set(vars(local._parts)) - {"searcher", "users_searcher"}  # all of theirs are sent
    inherited = {
        f"{type(part).__name__}.{name}"
        for part in remote.values()
        if not isinstance(part, str)
        for name, method in inspect.getmembers(type(part), inspect.isfunction)
        if not name.startswith("_")
        and name not in sent
        and not method.__module__.startswith("recollect.memory.remote")
    }
    # `export_user` and `export_user_to` call `export_user_lines`. The store does not offer the others: the
    # service calls them for parts of its transactions.
    assert inherited == {
        "RemoteConversationWriter.announce_work",
        "RemoteConversationWriter.append_script",
        "RemoteDataRights.export_user",
        "RemoteDataRights.export_user_to",
        "RemoteEntryRepository.read_page",
    }


@in_event_loop
async def test_many_users_are_searched_at_once(open_store: OpenStore, user: str) -> None:
    async with open_store() as store:
        others = [f"{user}-1", f"{user}-2"]
        for each in others:
            await record(store, each)
            await learned(store, each)
        known = await store.search_memories_of_users("Who moved to Lisbon?", others)
        said = await store.search_conversations_of_users("Who moved to Lisbon?", others, agent_id=AGENT)
        assert {hit.user_id for hit in known.hits} == {hit.user_id for hit in said.hits} == set(others)
        with pytest.raises(ValueError, match="user_ids must be 1 to 1000 ids"):
            await store.search_memories_of_users("Lisbon", [])
