"""One corrupt row never hides the others: it is left out, and the log names it once."""

import logging

import pytest

from recollect.errors import RecollectError
from recollect.memory.database.corruption import report_corrupt
from recollect.memory.store import MemoryStore

from ..databases import Place
from ..rights.kit import AGENT
from .kit import ANYWHERE, IN_SQLITE, OPTIONS, SECRET, UNREAD, USER, Case, Told, corrupt, fill

pytestmark = pytest.mark.anyio

HEALTHY = "allergic to peanuts"


@pytest.fixture(autouse=True)
def _report_again() -> None:
    report_corrupt.cache_clear()


async def _read_everything(store: MemoryStore, told: Told) -> None:
    """Every way to read. The second conversation and what was learned from it are healthy."""
    listed = await store.list_conversations(limit=2)
    rest = await store.list_conversations(before=listed[-1]["position"], limit=50)
    assert told.second in [each["conversation_id"] for each in listed + rest]
    assert len(listed + rest) >= 2
    found = await store.find_conversations("peanuts")
    assert [each["conversation_id"] for each in found.conversations] == [told.second]
    for conversation_id in (told.first, told.second, told.third):
        conversation = await store.get_conversation(conversation_id)
        if conversation is not None:
            conversation.to_dict()
        await store.get_conversation_outline(conversation_id)
        await store.get_conversation_settings(conversation_id)
        await store.list_messages(conversation_id, limit=1)
        await store.list_runs_of(conversation_id)
    await _read_knowledge(store)
    await _read_runs(store)


async def _read_knowledge(store: MemoryStore) -> None:
    memory = await store.get_memory(AGENT, USER)
    assert memory is not None
    assert HEALTHY in memory.profile_content
    assert await store.get_memory_by_id(memory.memory_id) is not None
    assert [outline.memory_id for outline in await store.list_memories()] == [memory.memory_id]
    entries = await store.list_entries(AGENT, USER, include_retired=True)
    page = await store.list_entries_of(memory.memory_id, limit=1)
    assert page is not None
    assert len(page) == 1
    healthy = next(entry for entry in entries if entry.text == HEALTHY)
    assert await store.get_entry(healthy.content_id) == healthy
    why = await store.why(healthy.content_id)
    assert why is not None
    assert why.to_dict()["evidence"]
    searched = await store.search_memories("peanuts", AGENT, USER)
    assert HEALTHY in [hit.entry.text for hit in searched.hits]
    said = await store.search_conversations("peanuts", AGENT, USER)
    assert any(HEALTHY in hit.message.content for hit in said.hits)
    assert HEALTHY in (await store.recall("peanuts", AGENT, USER)).text
    exported = await store.export_user(USER)
    assert HEALTHY in [entry["content_text"] for entry in exported["entries"]]
    assert len(exported["conversations"]) == 3
    assert exported["memories"]


async def _read_runs(store: MemoryStore) -> None:
    runs = [*await store.list_runs(limit=2), *await store.list_newest_runs(limit=2)]
    assert runs
    for run in runs:
        run.to_dict()
        assert await store.get_run(run.run_id) == run


async def _check(place: Place, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    told = await fill(place)
    caplog.set_level(logging.WARNING)
    row_id = corrupt(place, case)
    async with place.open(**OPTIONS) as store:
        await _read_everything(store, told)
        await _read_everything(store, told)
    logged = [record.getMessage() for record in caplog.records if "corrupt" in record.getMessage()]
    assert len(logged) <= len({*logged})
    if (case.table, case.column) not in UNREAD:
        assert any(row_id in message and case.table in message for message in logged)
    assert SECRET not in caplog.text
    await _erase(place, told, row_id)


async def _erase(place: Place, told: Told, row_id: str) -> None:
    """Whatever a person has erased goes, whether it is corrupt or not."""
    async with place.open(**OPTIONS) as store:
        entries = await store.list_entries(AGENT, USER)
        assert await store.delete_entry(entries[-1].content_id) == 1
        receipt = await store.erase_message(told.first, "m0")
        assert receipt.counts["messages"] == 1
        receipt = await store.erase_conversation(told.first)
        assert receipt.counts["conversations"] == 1
        await store.erase_user(USER)
        assert await store.list_memories() == []
        exported = await store.export_user(USER)
        assert row_id not in str(exported)


@pytest.mark.parametrize("case", ANYWHERE, ids=lambda case: f"{case.table}.{case.column}")
async def test_a_corrupt_row_never_hides_the_rest(
    shared_place: Place, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    await _check(shared_place, case, caplog)


@pytest.mark.parametrize("case", IN_SQLITE, ids=lambda case: f"{case.table}.{case.column}")
async def test_a_value_of_another_type_never_hides_the_rest(
    file_place: Place, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    await _check(file_place, case, caplog)


@pytest.mark.parametrize("column", ["content_text", "content_type"])
async def test_a_corrupt_entry_can_be_deleted(shared_place: Place, column: str) -> None:
    await fill(shared_place)
    case = next(case for case in ANYWHERE if case[:2] == ("memory_contents", column))
    content_id = corrupt(shared_place, case)
    async with shared_place.open(**OPTIONS) as store:
        assert await store.get_entry(content_id) is None
        with pytest.raises(RecollectError):
            await store.edit_entry(content_id, "something else")
        assert await store.delete_entry(content_id) == 1
        assert await store.delete_entry(content_id) == 0
        assert len(await store.list_entries(AGENT, USER)) == 1


async def test_a_page_is_filled_from_behind_corrupt_rows(shared_place: Place) -> None:
    async with shared_place.open(**OPTIONS) as store:
        for number in range(4):
            await store.add_entry(AGENT, USER, "profile", f"fact {number}")
        messages = [{"role": "user", "content": f"word {number}"} for number in range(4)]
        messages[0]["message_id"] = "m0"
        talk = await store.record_conversation(AGENT, USER, messages)
    corrupt(shared_place, Case("memory_contents", "content_type", "wrong"))
    corrupt(shared_place, Case("conversation_messages", "role", "wrong"))
    async with shared_place.open(**OPTIONS) as store:
        memory = await store.get_memory(AGENT, USER)
        assert memory is not None
        page = await store.list_entries_of(memory.memory_id, limit=3)
        assert page is not None
        assert [entry.text for _, entry in page] == ["fact 1", "fact 2", "fact 3"]
        said = await store.list_messages(talk.conversation_id, limit=3)
        assert said is not None
        assert [message.content for message in said] == ["word 1", "word 2", "word 3"]


async def test_a_corrupt_text_does_not_keep_others_from_their_vectors(shared_place: Place) -> None:
    async with shared_place.open(**OPTIONS) as store:
        await store.add_entry(AGENT, USER, "profile", "fact 0")
        await store.add_entry(AGENT, USER, "profile", "fact 1")
    corrupt(shared_place, Case("memory_contents", "content_text", "\x01\\ud8"))
    async with shared_place.open(**OPTIONS) as store:
        assert await store.embed_pending() == 1
        found = await store.search_memories("fact", AGENT, USER)
        assert [hit.entry.text for hit in found.hits] == ["fact 1"]
        assert "vector" in found.hits[0].parts


async def test_a_run_whose_row_is_corrupt_does_not_stop_the_queue(file_place: Place) -> None:
    async with file_place.open() as store:
        await store.record_conversation(AGENT, "bob", [{"role": "user", "content": "I live in Rome."}])
    run_id = corrupt(file_place, Case("memory_runs", "first_index", SECRET))
    async with file_place.open(workers=1) as store:
        await store.record_conversation(AGENT, USER, [{"role": "user", "content": "I live in Lisbon."}])
        coverage = await store.drain(60)
        assert (coverage.remembered, coverage.failed) == (1, 1)
        assert run_id not in [run.run_id for run in await store.list_runs()]
        assert await store.list_entries(AGENT, USER)
