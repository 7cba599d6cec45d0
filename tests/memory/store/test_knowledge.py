"""Memories and entries: nothing is overwritten, and only a deletion by a person deletes."""

import asyncio
import io
import json
from typing import Any

import pytest

from recollect.errors import ConflictError
from recollect.memory.memory import Memory
from recollect.memory.store import MemoryStore
from recollect.memory.times import now
from recollect.testing.contract import in_event_loop

from ..databases import Place

PARIS, LISBON, CAT = "The user lives in Paris", "The user lives in Lisbon", "The user has a cat"


async def profile(store: MemoryStore, **more: Any) -> list[str]:
    memory = await store.get_memory("agent", "user", **more)
    assert memory is not None
    return memory.profile_content


@in_event_loop
async def test_a_memory_that_was_saved_is_read_again(place: Place) -> None:
    async with place.open() as store:
        given = Memory("agent", "user", {"profile": [PARIS, CAT], "mind": ["The user likes tea"]})
        saved = await store.save_memory(given)
        assert (saved.memory_id, saved.version) == (given.memory_id, 2)
        assert (saved.profile_content, saved.mind_content) == ([PARIS, CAT], ["The user likes tea"])
        assert (await store.get_memory("agent", "user")) == saved
        assert (await store.get_memory_by_id(given.memory_id)) == saved
        assert await store.get_memory("agent", "nobody") is None
        assert await store.get_memory_by_id("unknown") is None


@in_event_loop
async def test_saving_adds_what_is_more_and_deletes_what_is_less(place: Place) -> None:
    async with place.open() as store:
        memory = await store.save_memory(Memory("agent", "user", {"profile": [PARIS, CAT]}))
        kept = (await store.list_entries("agent", "user"))[1]
        memory.profile_content = [CAT, LISBON]
        memory = await store.save_memory(memory)
        assert memory.profile_content == [CAT, LISBON]
        entries = await store.list_entries("agent", "user", include_retired=True)
        assert [entry.text for entry in entries] == [CAT, LISBON]
        assert entries[0] == kept
        memory.profile_content = []
        assert (await store.save_memory(memory)).profile_content == []


@in_event_loop
async def test_saving_what_another_has_changed_is_a_conflict(place: Place) -> None:
    async with place.open() as store:
        mine = await store.save_memory(Memory("agent", "user", {"profile": [PARIS]}))
        await store.add_entry("agent", "user", "profile", CAT)
        mine.profile_content.append(LISBON)
        with pytest.raises(ConflictError, match="changed since it was read"):
            await store.save_memory(mine)
        with pytest.raises(ConflictError, match="another memory_id"):
            await store.save_memory(Memory("agent", "user", {"profile": []}))
        assert await profile(store) == [PARIS, CAT]


@in_event_loop
async def test_a_memory_from_elsewhere_keeps_its_id_and_its_version(place: Place) -> None:
    async with place.open() as store:
        saved = await store.save_memory(Memory("agent", "user", {"profile": [CAT]}, "m", version=7))
        assert (saved.memory_id, saved.version, saved.profile_content) == ("m", 8, [CAT])


@in_event_loop
async def test_of_those_who_save_at_once_one_wins(shared_place: Place) -> None:
    async with shared_place.open() as store, shared_place.open() as other:
        memory = await store.save_memory(Memory("agent", "user"))

        async def save(each: MemoryStore, number: int) -> bool:
            mine = Memory.from_dict({**memory.to_dict(), "profile_content": [f"The user has {number} cats"]})
            try:
                await each.save_memory(mine)
            except ConflictError:
                return False
            return True

        won = await asyncio.gather(*(save(each, n) for n, each in enumerate([store, other] * 4)))
        assert sum(won) == 1
        assert await profile(store) == [f"The user has {won.index(True)} cats"]


@in_event_loop
async def test_entries_are_added_and_told_in_order(place: Place) -> None:
    async with place.open() as store:
        added = await store.add_entry("agent", "user", "profile", PARIS, valid_from="2024-05", confidence=0.5)
        await store.add_entry("agent", "user", "event", "The user went to the zoo")
        assert (added.text, added.valid_from, added.confidence, added.evidence) == (PARIS, "2024-05", 0.5, ())
        assert await store.get_entry(added.content_id) == added
        assert await store.list_entries("agent", "user", content_type="profile") == [added]
        assert len(await store.list_entries("agent", "user")) == 2
        assert len(await store.list_entries("agent", "user", limit=1)) == 1
        assert await store.list_entries("agent", "nobody") == []
        assert await store.get_entry("unknown") is None


@in_event_loop
async def test_an_edit_takes_the_place_of_what_was_there(place: Place) -> None:
    async with place.open() as store:
        first = await store.add_entry("agent", "user", "profile", PARIS)
        second = await store.edit_entry(first.content_id, LISBON)
        third = await store.edit_entry(second.content_id, "The user lives in Porto")
        assert await profile(store) == ["The user lives in Porto"]
        history = await store.get_history(third.content_id)
        assert [entry.text for entry in history] == [PARIS, LISBON, "The user lives in Porto"]
        assert [entry.superseded_by for entry in history] == [second.content_id, third.content_id, None]
        assert third.supersedes == (second.content_id,)
        with pytest.raises(ConflictError, match="no current entry"):
            await store.edit_entry(first.content_id, "The user lives in Rome")
        with pytest.raises(ConflictError, match="no current entry"):
            await store.edit_entry("unknown", "The user lives in Rome")


@in_event_loop
async def test_of_those_who_edit_at_once_none_is_lost(shared_place: Place) -> None:
    async with shared_place.open() as store:
        entry = await store.add_entry("agent", "user", "profile", PARIS)

        async def edit(number: int) -> bool:
            try:
                await store.edit_entry(entry.content_id, f"The user lives in house {number}")
            except ConflictError:
                return False
            return True

        won = await asyncio.gather(*(edit(number) for number in range(4)))
        assert len(await profile(store)) == sum(won)


@in_event_loop
async def test_the_past_is_read_as_it_was(place: Place) -> None:
    async with place.open() as store:
        start = now()
        first = await store.add_entry("agent", "user", "profile", PARIS)
        in_paris = now()
        second = await store.edit_entry(first.content_id, LISBON)
        in_lisbon = now()
        await store.add_entry("agent", "user", "profile", CAT)
        assert await profile(store, as_of=start) == []
        assert await profile(store, as_of=in_paris) == [PARIS]
        assert await profile(store, as_of=in_lisbon.isoformat()) == [LISBON]
        assert await profile(store) == [LISBON, CAT]
        entries = await store.list_entries("agent", "user", as_of=in_paris)
        assert [entry.content_id for entry in entries] == [first.content_id]
        everything = await store.list_entries("agent", "user", include_retired=True)
        assert [entry.text for entry in everything] == [PARIS, LISBON, CAT]
        assert (await store.get_memory_by_id(second.memory_id, as_of=in_paris)) is not None


@in_event_loop
async def test_a_deletion_takes_the_history_with_it(place: Place) -> None:
    async with place.open() as store:
        start = now()
        first = await store.add_entry("agent", "user", "profile", PARIS)
        second = await store.edit_entry(first.content_id, LISBON)
        await store.add_entry("agent", "user", "profile", CAT)
        assert await store.delete_entry(second.content_id) == 2
        assert await store.delete_entry(second.content_id) == 0
        assert await profile(store) == [CAT]
        assert await store.get_entry(first.content_id) is None
        assert await profile(store, as_of=now()) == [CAT]
        assert await profile(store, as_of=start) == []


@in_event_loop
async def test_memories_are_listed_page_by_page(place: Place) -> None:
    async with place.open() as store:
        for number in range(5):
            await store.add_entry("agent", f"u{number}", "profile", CAT)
        first = await store.list_memories(limit=3)
        rest = await store.list_memories(limit=3, after=first[-1].memory_id)
        assert sorted(memory.user_id for memory in first + rest) == [f"u{number}" for number in range(5)]
        assert {tuple(memory.counts.items()) for memory in first + rest} == {
            (("profile", 1), ("event", 0), ("mind", 0), ("instruction", 0))
        }


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"content_type": "wish"}, ValueError, "content_type must be one of profile, event, mind"),
    ({"text": " "}, ValueError, "text must not be empty"),
    ({"text": 7}, TypeError, "text must be a string"),
    ({"confidence": 1.5}, ValueError, "confidence must be from 0 to 1"),
    ({"confidence": float("nan")}, ValueError, "confidence must be from 0 to 1"),
    ({"confidence": True}, TypeError, "confidence must be a number"),
    ({"valid_from": "May"}, ValueError, "valid_from must be a date"),
    ({"valid_to": "2024-02-31"}, ValueError, "valid_to must be a date"),
    ({"agent_id": ""}, ValueError, "agent_id must not be empty"),
    ({"user_id": ""}, ValueError, "user_id must not be empty"),
]


@pytest.mark.parametrize(("given", "kind", "told"), BAD, ids=range(len(BAD)))
@in_event_loop
async def test_an_entry_without_sense_is_refused(
    file_place: Place, given: dict[str, Any], kind: type[Exception], told: str
) -> None:
    fields = {"agent_id": "agent", "user_id": "user", "content_type": "profile", "text": CAT, **given}
    async with file_place.open() as store:
        with pytest.raises(kind, match=told):
            await store.add_entry(**fields)
        assert await store.list_memories() == []


@in_event_loop
async def test_any_text_is_an_entry(place: Place) -> None:
    async with place.open() as store:
        for text in ("nul \x00", "half \ud83d", "\x01", "用户住在北京", "%' ?1"):
            assert (await store.add_entry("agent", "user", "profile", text)).text == text


# --- tenants ---


@in_event_loop
async def test_a_tenant_sees_nothing_of_another(lasting_place: Place) -> None:
    async with lasting_place.open(tenant="ours") as ours, lasting_place.open(tenant="theirs") as theirs:
        message = [{"role": "user", "content": "I went to the zoo"}]
        recorded = await ours.record_conversation("agent", "user", message, conversation_id="c")
        entry = await ours.add_entry("agent", "user", "profile", CAT)
        (run,) = await ours.list_runs()
        assert await theirs.get_conversation("c") is None
        assert await theirs.list_conversations("agent", "user") == []
        assert await theirs.get_memory("agent", "user") is None
        assert recorded.memory_id is not None
        assert await theirs.get_memory_by_id(recorded.memory_id) is None
        assert await theirs.list_memories() == []
        assert await theirs.list_entries("agent", "user") == []
        assert await theirs.get_entry(entry.content_id) is None
        assert await theirs.get_history(entry.content_id) == []
        assert await theirs.list_runs() == []
        assert await theirs.get_run(run.run_id) is None
        assert await theirs.list_runs_of("c") == []
        assert (await theirs.coverage()).pending == 0
        assert await theirs.drain(1) == await theirs.coverage()


@in_event_loop
async def test_a_tenant_changes_nothing_of_another(shared_place: Place) -> None:
    async with shared_place.open(tenant="ours") as ours, shared_place.open(tenant="theirs") as theirs:
        message = [{"role": "user", "content": "I went to the zoo"}]
        await ours.record_conversation("agent", "user", message, conversation_id="c")
        entry = await ours.add_entry("agent", "user", "profile", CAT)
        memory = await ours.get_memory("agent", "user")
        assert memory is not None
        (run,) = await ours.list_runs()
        assert await theirs.delete_entry(entry.content_id) == 0
        refused = [
            theirs.edit_entry(entry.content_id, "The user has a dog"),
            theirs.append_messages("c", message),
            theirs.retry_run(run.run_id),
            theirs.record_conversation("agent", "user", message, conversation_id="c"),
            theirs.record_conversation("agent", "user", message, memory_id=memory.memory_id),
        ]
        for call in refused:
            with pytest.raises(ConflictError):
                await call
        with pytest.raises(ConflictError):
            await theirs.save_memory(memory)
        assert await ours.get_memory("agent", "user") == memory
        assert len(await ours.list_runs()) == 1


@in_event_loop
async def test_the_same_entry_under_the_same_id_is_written_once(place: Place) -> None:
    async with place.open() as store:
        first = await store.add_entry("agent", "user", "profile", PARIS, content_id="one")
        again = await asyncio.gather(
            *(store.add_entry("agent", "user", "profile", PARIS, content_id="one") for _ in range(3))
        )
        assert again == [first] * 3
        assert first.content_id == "one"
        assert await store.list_entries("agent", "user") == [first]


@in_event_loop
async def test_something_else_under_an_id_that_is_taken_is_a_conflict(place: Place) -> None:
    async with place.open(all_tenants=True) as store:
        await store.add_entry("agent", "user", "profile", PARIS, content_id="one")
        others = (("agent", "user", "profile", CAT), ("agent", "user", "mind", PARIS))
        for given in (*others, ("agent", "another", "profile", PARIS)):
            with pytest.raises(ConflictError, match="another entry with this content_id"):
                await store.add_entry(*given, content_id="one")
        with pytest.raises(ConflictError):
            await store.for_tenant("b").add_entry("agent", "user", "profile", PARIS, content_id="one")
        with pytest.raises(ValueError, match="content_id"):
            await store.add_entry("agent", "user", "profile", PARIS, content_id="x" * 256)


@in_event_loop
async def test_an_outline_of_a_memory_tells_how_much_it_holds(place: Place) -> None:
    async with place.open(all_tenants=True) as store:
        memory = await store.save_memory(Memory("agent", "user", {"profile": [PARIS, CAT]}))
        outline = await store.get_memory_outline(memory.memory_id)
        assert outline is not None
        assert [outline] == await store.list_memories()
        assert (outline.user_id, outline.version, outline.counts["profile"]) == ("user", memory.version, 2)
        assert await store.get_memory_outline("unknown") is None
        view = store.for_tenant("b")
        assert (store.tenant, view.tenant) == ("default", "b")
        assert await view.get_memory_outline(memory.memory_id) is None


@in_event_loop
async def test_the_lines_of_an_export_are_what_is_written_to_a_file(place: Place) -> None:
    async with place.open() as store:
        await store.add_entry("agent", "user", "profile", PARIS)
        lines = [line async for line in store.export_user_lines("user", agent_id="agent")]
        assert lines[0] == {"format": "recollect.user/2", "user_id": "user", "agent_id": "agent"}
        assert [line["kind"] for line in lines[1:]] == ["memories", "entries"]
        file = io.StringIO()
        assert await store.export_user_to(file, "user", agent_id="agent") == len(lines)
        assert [json.loads(line) for line in file.getvalue().splitlines()] == lines
