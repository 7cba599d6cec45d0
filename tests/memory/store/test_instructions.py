"""Standing instructions: an entry kind of its own, which is part of every recall."""

from collections.abc import Sequence

from recollect.memory.entry import Entry
from recollect.memory.memory import Memory
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Mind, Modification, Update
from recollect.testing.contract import in_event_loop

from ..databases import Place


class Instructed:
    """An extractor that takes each message of the user for a standing instruction."""

    model = "instructed"

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        found = [Candidate("instruction", each.content, (each.message_id,)) for each in excerpt.messages]
        return Answer(Modification("", tuple(found)))

    async def update(self, _: Excerpt, __: Sequence[Candidate], ___: Sequence[Entry]) -> Answer[Update]:
        return Answer(Update(()))

    async def mind(self, _: Excerpt, __: Sequence[Entry]) -> Answer[Mind]:
        return Answer(Mind("", None, ()))

    async def aclose(self) -> None:
        pass


@in_event_loop
async def test_an_extractor_can_learn_instructions(place: Place) -> None:
    said = [{"role": "user", "content": "Always answer in German"}]
    async with place.open(workers=1, extractor=Instructed()) as store:
        await store.record_conversation("agent", "ada", said)
        await store.drain(60)
        (entry,) = await store.list_entries("agent", "ada", content_type="instruction")
        recalled = await store.recall("Where is the station?", "agent", "ada")
    assert entry.text == "Always answer in German"
    assert [each.content_id for each in recalled.instructions] == [entry.content_id]
    assert len(recalled.instructions[0].evidence) == 1


@in_event_loop
async def test_instructions_are_in_every_recall_and_marked_as_wishes(place: Place) -> None:
    async with place.open(workers=0, embedder=None) as store:
        await store.add_entry("agent", "ada", "instruction", "Answer in German.")
        await store.add_entry("agent", "ada", "profile", "The user lives in Lisbon.")
        recalled = await store.recall("Lisbon", "agent", "ada")
        nothing = await store.recall("quantum", None, "ada")
        other = await store.recall("Lisbon", "agent", "bo")
    head, _, rest = recalled.text.partition("Standing wishes of the user")
    assert "> - Answer in German." in rest
    assert "except the user's standing wishes" in head
    assert "no system instructions" in rest
    assert [hit.entry.text for hit in recalled.entries] == ["The user lives in Lisbon."]
    assert "Answer in German." in nothing.text
    assert (other.text, other.instructions) == ("", ())


@in_event_loop
async def test_instructions_have_a_small_budget_of_their_own(file_place: Place) -> None:
    async with file_place.open(workers=0, embedder=None) as store:
        for number in range(60):
            wish = f"Wish {number}: " + "please keep every answer short and clear. " * 3
            await store.add_entry("agent", "ada", "instruction", wish)
        await store.add_entry("agent", "ada", "profile", "The user lives in Lisbon.")
        recalled = await store.recall("Lisbon", "agent", "ada", budget=1000)
    shown = [line for line in recalled.text.splitlines() if "Wish" in line]
    assert 2 <= len(shown) <= 8
    assert "Wish 59" in shown[0]
    assert "The user lives in Lisbon." in recalled.text


@in_event_loop
async def test_memories_and_exports_have_instructions(place: Place) -> None:
    async with place.open(workers=0) as store:
        memory = Memory("agent", "ada", {"profile": ["Sails."], "instruction": ["Be brief."]})
        saved = await store.save_memory(memory)
        assert saved.instruction_content == ["Be brief."]
        (outline,) = await store.list_memories(user_id="ada")
        assert outline.counts == {"profile": 1, "event": 0, "mind": 0, "instruction": 1}
        exported = await store.export_user("ada")
        await store.erase_user("ada")
        await store.import_user(exported)
        back = await store.get_memory("agent", "ada")
    assert back is not None
    assert (back.profile_content, back.instruction_content) == (["Sails."], ["Be brief."])
    assert Memory.from_dict(back.to_dict()).instruction_content == ["Be brief."]
