"""Taking data along, and bringing it back."""

import copy
import io
import json
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import ConflictError, ImportFormatError
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Somewhere, Store, known, learn, said, tell
from .people import attach_words, move_in

IMPORTED = ("memories", "entries", "conversations", "runs")


async def lived(store: Store) -> None:
    """A user of whom much is known: superseded, supported, failed, queued, erased, odd."""
    await tell(store, "c1", "home: lives in Ghent", "pet: has a tortoise named Ida \0 \ud83d")
    await tell(store, "c2", "home: moved to a farm near Oslo", "feeling: misses the castle")
    await tell(store, "c3", "pet: owns a slow animal (again)", "garden: grows leek")
    await tell(store, "c4", "garbage from Lisbon")
    await store.erase_message("c3", "m1")
    await store.add_entry("other desk", "ann", "event", "was born in Ghent", valid_from="1990-04")
    await store.record_conversation(AGENT, "ann", said("job: mends clocks"), conversation_id="c5")


@in_event_loop
async def test_an_export_holds_everything_about_a_user(shared: Somewhere) -> None:
    async with shared.open() as store:
        await move_in(shared, store, "annann", "bobbob")
        exported = json.loads(json.dumps(await store.export_user("user annann")))
        assert "bobbob" not in json.dumps(exported)
        (memory,) = exported["memories"]
        assert memory["profile_content"] == ["keeps a tortoise called annann", "moved to a farm near annann"]
        assert memory["mind_content"] == ["longs for the sea at annann"]
        assert memory["event_content"] == []
        assert [entry["retired_at"] is None for entry in exported["entries"]] == [False, True, True, True]
        assert exported["entries"][0]["superseded_by"] == exported["entries"][2]["content_id"]
        assert exported["entries"][0]["evidence"][0]["wording"] == "lives in annann town"
        assert len(exported["conversations"]) == 4
        first = exported["conversations"][0]
        assert first["conversation_data"]["messages"][0]["content"] == "home: lives in annann town"
        assert first["summary"].startswith("Conversation with 2 turns: home: lives in annann town")
        assert first["pipeline_result"]["pipeline_metadata"]["llm_model"] == "rules"
        assert [run["status"] for run in exported["runs"]] == ["done", "done", "failed", "pending"]
        assert exported["runs"][0]["stages"][0]["raw_response"].startswith("found lives in annann")
        assert "annann" in exported["runs"][2]["failures"][0]["raw_response"]
        (session,) = exported["sessions"]
        assert (session["title"], session["data"]) == ("title annann", {"mark": "annann"})
        assert [item["content"] for item in session["items"]] == [
            "hello from annann",
            "more from annann",
            "aside from annann",
        ]
        assert {event["text"] for event in exported["events"]} == {"event of annann", "said by annann"}
        assert len(exported["summaries"]) == 2


@in_event_loop
async def test_an_export_comes_back_as_it_was(somewhere: Somewhere) -> None:
    async with Somewhere(":memory:").open() as old, somewhere.open() as new:
        await lived(old)
        exported = json.loads(json.dumps(await old.export_user("ann")))
        counts = await new.import_user(exported)
        assert counts == {"memories": 2, "entries": 5, "conversations": 5, "messages": 7, "runs": 5}
        assert await new.export_user("ann") == exported
        # What was never done is done now, and nothing else; it meets what is known.
        await learn(new)
        assert sorted(run.status for run in await new.list_runs()) == ["done"] * 4 + ["failed"]
        assert await known(new) == await known(old) + ["mends clocks"]
        await tell(new, "c6", "home: rents a boat at Lisbon")
        assert "moved to a farm near Oslo" not in await known(new)


@in_event_loop
async def test_an_export_of_one_agent_is_of_that_alone(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await lived(store)
        exported = await store.export_user("ann", agent_id="other desk")
        assert [memory["event_content"] for memory in exported["memories"]] == [["was born in Ghent"]]
        assert exported["conversations"] == []
        await store.erase_user("ann", agent_id="other desk")
        assert not (await store.export_user("ann", agent_id="other desk"))["memories"]
        assert len((await store.export_user("ann"))["conversations"]) == 5


@in_event_loop
async def test_an_export_by_lines_says_the_same(tmp_path: Path) -> None:
    async with Somewhere(":memory:").open() as store:
        await lived(store)
        exported = await store.export_user("ann")
        lines = await store.export_user_to(tmp_path / "ann.jsonl", "ann")
        heading, *records = map(json.loads, (tmp_path / "ann.jsonl").read_text().splitlines())
        assert lines == 1 + len(records)
        assert heading == {name: exported[name] for name in ("format", "user_id", "agent_id")}
        for kind in IMPORTED:
            assert [record["data"] for record in records if record["kind"] == kind] == exported[kind]
        file = io.StringIO()
        await store.export_user_to(file, "ann")
        assert file.getvalue() == (tmp_path / "ann.jsonl").read_text()


@in_event_loop
async def test_pages_of_an_export_leave_nothing_out(somewhere: Somewhere) -> None:
    """More than one page of entries, conversations and runs."""
    async with somewhere.open() as store:
        memory = {"agent_id": AGENT, "user_id": "ann", "profile": [f"fact {n}" for n in range(450)]}
        conversations = [
            {
                "agent_id": AGENT,
                "user_id": "ann",
                "created_at": f"2024-01-01T00:{n % 7:02}:00Z",
                "conversation_data": [{"role": "user", "content": f"word {n}"}],
            }
            for n in range(410)
        ]
        await store.import_user({"memories": [memory], "conversations": conversations})
        exported = await store.export_user("ann")
        assert exported["memories"][0]["profile_content"] == memory["profile"]
        assert [entry["content_text"] for entry in exported["entries"]] == memory["profile"]
        contents = [each["conversation_data"]["messages"][0]["content"] for each in exported["conversations"]]
        assert sorted(contents) == sorted(f"word {n}" for n in range(410))


@in_event_loop
async def test_the_short_shapes_are_read_too(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        counts = await store.import_user(
            {
                "memories": [
                    {"agent_id": AGENT, "user_id": "ann", "profile": ["lives in Ghent"], "mind": ["calm"]}
                ],
                "conversations": [
                    {
                        "agent_id": AGENT,
                        "user_id": "ann",
                        "conversation_data": [{"role": "user", "content": "hi"}],
                    },
                    {
                        "agent_id": "new desk",
                        "user_id": "ann",
                        "messages": [{"role": "user", "content": "ho"}],
                    },
                ],
            }
        )
        assert counts == {"memories": 2, "entries": 2, "conversations": 2, "messages": 2, "runs": 0}
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        assert (memory.profile_content, memory.mind_content) == (["lives in Ghent"], ["calm"])
        assert await store.list_runs() == []
        await tell(store, "c1", "home: lives in Ghent")  # what came in is known, and is not learned twice
        assert await known(store) == ["lives in Ghent", "calm"]


@in_event_loop
async def test_what_is_here_already_is_not_brought_again() -> None:
    async with Somewhere(":memory:").open() as store:
        await lived(store)
        exported = await store.export_user("ann")
        with pytest.raises(ConflictError):
            await store.import_user(exported)
        assert await store.export_user("ann") == exported
        await store.erase_user("ann")
        await store.import_user(exported)
        assert await store.export_user("ann") == exported


FAILURE = {
    "attempt": 1,
    "stage": "mind",
    "failed_at": "2026-03-01T12:00:00Z",
    "error": "",
    "raw_response": "",
    "prompt_tokens": 2**40,
    "completion_tokens": 2**40,
}
BROKEN = [
    ("entries", 0, {"content_type": "gossip"}, "content_type of entries"),
    ("entries", 0, {"content_text": 5}, "content_text of entries"),
    ("entries", 0, {"position": "first"}, "position of entries"),
    ("entries", 0, {"position": 2**63}, "position of entries"),
    ("entries", 0, {"position": -7}, "position of entries"),
    ("entries", 0, {"position": 1}, "same memory_id and position"),
    ("entries", 0, {"valid_from": "soon"}, "valid_from of entries"),
    ("entries", 0, {"valid_to": "2024-02-31"}, "valid_to of entries"),
    ("entries", 0, {"confidence": 1.5}, "confidence of entries"),
    ("entries", 0, {"confidence": float("nan")}, "confidence of entries"),
    ("entries", 0, {"content_data": ["x"]}, "content_data of entries"),
    ("entries", 0, {"content_data": {"x": float("nan")}}, "content_data of entries"),
    ("entries", 0, {"run_id": "another"}, "run_id in memory_contents"),
    ("entries", 0, {"evidence": [{"conversation_id": "c9", "message_id": "m0"}]}, "evidence cites"),
    ("entries", 0, {"evidence": [{"conversation_id": "c1", "message_id": "m9"}]}, "evidence cites"),
    (
        "entries",
        0,
        {"evidence": [{"conversation_id": "c1", "message_id": "m0", "source": "another"}]},
        "source of evidence",
    ),
    ("entries", 0, {"evidence": [{"conversation_id": "c1", "message_id": "m0"}] * 2}, "two rows"),
    ("entries", 0, {"memory_id": "another"}, "memory_id in memory_contents"),
    ("entries", 0, {"superseded_by": "nothing"}, "superseded_by in memory_contents"),
    ("entries", 0, {"learned_at": "some day"}, "learned_at of entries"),
    ("entries", 0, {"evidence": [{"message_id": "m0"}]}, "conversation_id of evidence"),
    ("entries", 0, {"evidence": "none"}, "evidence must be a list"),
    ("conversations", 0, {"user_id": "bob"}, "one user"),
    ("conversations", 0, {"memory_id": "another"}, "must be the memory of its agent and user"),
    ("conversations", 0, {"conversation_data": [{"role": "spirit", "content": "x"}]}, "role"),
    ("conversations", 0, {"conversation_id": "nul \0"}, "no conversation"),
    ("conversations", 1, {"conversation_id": "c1"}, "same conversation_id"),
    ("memories", 0, {"version": 0}, "no memory"),
    ("runs", 0, {"status": "lost"}, "status of runs"),
    ("runs", 0, {"sequence": -1}, "sequence of runs"),
    ("runs", 0, {"sequence": 2}, "same memory_id and sequence"),
    ("runs", 0, {"first_index": 5}, "first_index of runs"),
    ("runs", 0, {"created_at": "soon"}, "created_at of runs"),
    ("runs", 0, {"stages": [{"stage": "dream"}]}, "of stages"),
    ("runs", 0, {"failures": [{**FAILURE, "prompt_tokens": 2**40 + 1}]}, "prompt_tokens of failures"),
    ("runs", 0, {"failures": [{**FAILURE, "completion_tokens": 2**62}]}, "completion_tokens of failures"),
    ("runs", 0, {"conversation_id": "c0"}, "conversation_id in memory_runs"),
    ("runs", 0, {"run_id": None}, "run_id of runs"),
    ("runs", 0, {"conversation_id": "another"}, "conversation_id in memory_runs"),
]


@pytest.mark.parametrize(("kind", "place", "change", "told"), BROKEN)
@in_event_loop
async def test_an_export_that_is_not_one_changes_nothing_and_says_where(
    kind: str, place: int, change: dict[str, Any], told: str
) -> None:
    async with Somewhere(":memory:").open() as old, Somewhere(":memory:").open() as new:
        await tell(old, "c1", "home: lives in Ghent")
        await tell(old, "c2", "pet: has a tortoise named Ida")
        exported = copy.deepcopy(await old.export_user("ann"))
        exported[kind][place].update(change)
        with pytest.raises(ImportFormatError, match=told) as caught:
            await new.import_user(exported)
        assert "Ghent" not in str(caught.value)
        assert not (await new.export_user("ann"))["memories"]


@in_event_loop
async def test_what_is_no_object_is_refused() -> None:
    async with Somewhere(":memory:").open() as store:
        for given in ([], "text", {"memories": {}}, {"entries": ["x"]}):
            with pytest.raises(ImportFormatError):
                await store.import_user(given)  # type: ignore[arg-type]


@in_event_loop
async def test_an_export_of_two_agents_keeps_their_memories_apart() -> None:
    """What one agent knows cites what was said to it."""
    async with Somewhere(":memory:").open() as old, Somewhere(":memory:").open() as new:
        await tell(old, "c1", "home: lives in Ghent")
        await old.record_conversation("other desk", "ann", said("hello"), conversation_id="c2")
        exported = copy.deepcopy(await old.export_user("ann"))
        (entry,) = exported["entries"]
        entry["evidence"][0].update(conversation_id="c2")
        with pytest.raises(ImportFormatError, match="evidence cites"):
            await new.import_user(exported)


@in_event_loop
async def test_names_attachments_metadata_and_tags_are_exported_and_come_back(somewhere: Somewhere) -> None:
    async with Somewhere(":memory:").open() as old, somewhere.open() as new:
        await attach_words(old, "annann")
        exported = json.loads(json.dumps(await old.export_user("user annann")))
        messages = [each["conversation_data"]["messages"][0] for each in exported["conversations"]]
        assert [each["name"] for each in messages if each["name"]] == ["annann participant"]
        assert [each["attachments"][0]["type"] for each in messages if each["attachments"]] == ["image_url"]
        metadata = [each["metadata"] for each in exported["conversations"] if each["metadata"]]
        assert metadata == [{"source": "annann source"}]
        assert [each["metadata"] for each in exported["entries"]] == [{"by": "annann writer"}]
        assert [each["tags"] for each in exported["conversations"] if each["tags"]] == [["annann tag"]]
        assert [each["tags"] for each in exported["entries"]] == [["annann label"]]
        await new.import_user(exported)
        assert await new.export_user("user annann") == exported


@in_event_loop
async def test_an_export_of_before_has_none_of_these_and_is_imported(somewhere: Somewhere) -> None:
    async with Somewhere(":memory:").open() as old, somewhere.open() as new:
        await lived(old)
        exported = json.loads(json.dumps(await old.export_user("ann")))
        for each in (*exported["conversations"], *exported["entries"]):
            del each["metadata"], each["tags"]
        for conversation in exported["conversations"]:
            for message in conversation["conversation_data"]["messages"]:
                del message["name"], message["attachments"]
        await new.import_user(exported)
        stored = await new.get_conversation("c1")
        assert stored is not None
        assert (stored.metadata, stored.messages[0].name, stored.messages[0].attachments) == ({}, None, ())


@pytest.mark.parametrize(
    ("kind", "tags", "told"),
    [
        ("entries", "work", "tags of entries.0. must be a list of texts, not str"),
        ("entries", ["x" * 65], "each of tags of entries.0. must have 1 to 64 characters"),
        ("conversations", [7], "conversations.0. is no conversation: tags must be texts, not int"),
    ],
)
@in_event_loop
async def test_tags_beyond_their_bounds_are_refused_and_nothing_is_imported(
    kind: str, tags: Any, told: str
) -> None:
    async with Somewhere(":memory:").open() as store:
        await attach_words(store, "annann")
        exported = await store.export_user("user annann")
        exported[kind][0]["tags"] = tags
        await store.erase_user("user annann")
        with pytest.raises(ImportFormatError, match=told):
            await store.import_user(exported)
        assert await store.list_users() == []


@pytest.mark.parametrize(
    ("kind", "metadata", "told"),
    [
        ("entries", [], "metadata of entries.0. must be an object, not list"),
        ("entries", {"a": {"b": {"c": {"d": {"e": {}}}}}}, "metadata of entries.0. must not be nested"),
        (
            "conversations",
            {"a": "x" * 20_000},
            "conversations.0. is no conversation: metadata must be at most",
        ),
    ],
)
@in_event_loop
async def test_metadata_beyond_its_bounds_is_refused_and_nothing_is_imported(
    kind: str, metadata: Any, told: str
) -> None:
    async with Somewhere(":memory:").open() as store:
        await attach_words(store, "annann")
        exported = await store.export_user("user annann")
        exported[kind][0]["metadata"] = metadata
        await store.erase_user("user annann")
        with pytest.raises(ImportFormatError, match=told):
            await store.import_user(exported)
        assert await store.list_users() == []
