"""Superseding one fact keeps the others: by rules, with a model, and for entries of old versions."""

from collections.abc import Sequence

import pytest

from recollect.memory.database import entries
from recollect.memory.database.access import column_now
from recollect.memory.database.entries import Changes, NewEntry
from recollect.memory.entry import Entry
from recollect.memory.offline import OfflineExtractor
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.pipeline.stages import (
    Answer,
    Candidate,
    Decision,
    Excerpt,
    Extractor,
    Mind,
    Modification,
    Update,
)
from recollect.memory.store import MemoryStore

from ..databases import Place

pytestmark = pytest.mark.anyio

UPDATES = [
    (
        "I live in Lisbon, and I am allergic to peanuts.",
        "I moved to Berlin.",
        "allergic to peanuts",
        "Lisbon",
    ),
    ("I work as a nurse and I have diabetes.", "I work as a teacher.", "has diabetes", "nurse"),
    ("My name is Ana and I'm allergic to latex.", "Actually my name is Hanna.", "allergic to latex", "Ana."),
    ("I'm 34 and allergic to bee stings.", "I am 35 years old.", "allergic to bee stings", "34"),
    ("I live in Lisbon and I have two kids.", "I moved to Berlin.", "two kids", "Lisbon"),
    ("我住在里斯本，对花生过敏。", "我搬到了柏林。", "对花生过敏", "里斯本"),
    ("我是护士，有糖尿病。", "我现在是老师。", "有糖尿病", "护士"),
]


class Model:
    """States what it is given, and supersedes all it is shown, as a careless model does."""

    model = "careless"

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        cited = (excerpt.messages[0].message_id,)
        return Answer(
            Modification(
                "",
                tuple(
                    Candidate("profile", text, cited, slot=None if number else "home")
                    for number, text in enumerate(self._texts)
                ),
            )
        )

    async def update(
        self,
        excerpt: Excerpt,  # noqa: ARG002
        candidates: Sequence[Candidate],
        known: Sequence[Entry],
    ) -> Answer[Update]:
        everything = tuple(entry.content_id for entry in known)
        return Answer(Update((Decision(0, "supersede", everything),) if candidates else ()))

    async def mind(self, excerpt: Excerpt, known: Sequence[Entry]) -> Answer[Mind]:  # noqa: ARG002
        return Answer(Mind("", None, ()))

    async def aclose(self) -> None:
        return


async def learn(store: MemoryStore, said: str, extractor: Extractor) -> None:
    """Record a message, and do all that is due."""
    await store.record_conversation("a", "u", [{"role": "user", "content": said}])
    runner = Runner(store._database, extractor, RunOptions(attempts=1))
    while (task := await runner.claim("learning")) is not None:
        await runner.execute(task)


async def known_texts(store: MemoryStore) -> list[str]:
    return [entry.text for entry in await store.list_entries("a", "u")]


@pytest.mark.parametrize(("first", "then", "kept", "gone"), UPDATES)
async def test_an_update_of_one_fact_keeps_the_other(
    file_place: Place, first: str, then: str, kept: str, gone: str
) -> None:
    extractor = OfflineExtractor()
    async with file_place.open() as store:
        await learn(store, first, extractor)
        assert any(gone in text for text in await known_texts(store))
        await learn(store, then, extractor)
        assert any(kept in text for text in await known_texts(store))
        assert not any(gone in text for text in await known_texts(store))


async def test_a_model_that_states_two_facts_in_one_text_loses_neither(shared_place: Place) -> None:
    model = Model("The user lives in Lisbon and is allergic to peanuts.")
    async with shared_place.open() as store:
        await learn(store, "I live in Lisbon and I am allergic to peanuts.", model)
        assert await known_texts(store) == ["The user lives in Lisbon.", "The user is allergic to peanuts."]


async def _keep_as_earlier_versions(store: MemoryStore, text: str) -> Entry:
    """An entry that states two facts, with its evidence, as stored before facts were told apart."""
    said = {"role": "user", "content": "Good morning to all."}
    conversation = await store.record_conversation("a", "u", [said])
    cited = ((conversation.conversation_id, conversation.messages[0].message_id),)
    new = NewEntry("profile", text, slot="home", evidence=cited, said_at=conversation.created_at)
    assert conversation.memory_id is not None
    memory_id = conversation.memory_id
    await store._database.write(
        lambda: entries.change("default", memory_id, None, Changes((new,)), column_now())
    )
    entry = await store.get_entry(new.content_id)
    assert entry is not None
    return entry


async def test_the_other_fact_of_a_stored_entry_stays_with_its_evidence(shared_place: Place) -> None:
    text = "The user lives in Lisbon, and the user is allergic to peanuts."
    async with shared_place.open() as store:
        stored = await _keep_as_earlier_versions(store, text)
        await learn(store, "I moved to Berlin.", Model("The user moved to Berlin."))
        assert sorted(await known_texts(store)) == [
            "The user is allergic to peanuts.",
            "The user moved to Berlin.",
        ]
        allergy = next(each for each in await store.list_entries("a", "u") if "allergic" in each.text)
        assert [(each.conversation_id, each.message_id) for each in allergy.evidence] == [
            (each.conversation_id, each.message_id) for each in stored.evidence
        ]
        assert allergy.said_at == stored.said_at
        old = await store.get_entry(stored.content_id)
        assert old is not None
        berlin = next(each for each in await store.list_entries("a", "u") if "Berlin" in each.text)
        assert old.superseded_by == berlin.content_id


async def test_a_remaining_fact_goes_when_its_message_is_erased(shared_place: Place) -> None:
    text = "The user lives in Lisbon, and the user is allergic to peanuts."
    async with shared_place.open() as store:
        stored = await _keep_as_earlier_versions(store, text)
        await learn(store, "I moved to Berlin.", Model("The user moved to Berlin."))
        await store.erase_conversation(stored.evidence[0].conversation_id)
        assert await known_texts(store) == ["The user moved to Berlin."]


async def test_a_remaining_fact_that_is_denied_in_the_same_breath_goes_too(file_place: Place) -> None:
    text = "The user lives in Lisbon, and the user is allergic to peanuts."
    async with file_place.open() as store:
        await _keep_as_earlier_versions(store, text)
        model = Model("The user moved to Berlin.", "The user is not allergic to peanuts.")
        await learn(store, "I moved to Berlin. I'm not allergic to peanuts.", model)
        assert sorted(await known_texts(store)) == [
            "The user is not allergic to peanuts.",
            "The user moved to Berlin.",
        ]


@pytest.mark.parametrize(
    ("known", "said", "left"),
    [
        ("The user lives in Lisbon.", "I moved to Berlin.", ["The user lives in Berlin."]),
        ("用户住在里斯本。", "我搬到了柏林。", ["用户住在柏林。"]),
        ("The user lives in Lisbon, and likes it.", "My name is Ana.", None),
    ],
)
async def test_by_rule_what_a_person_wrote_in_plain_words_is_replaced(
    file_place: Place, known: str, said: str, left: list[str] | None
) -> None:
    async with file_place.open() as store:
        await store.add_entry("a", "u", "profile", known)
        await learn(store, said, OfflineExtractor())
        assert await known_texts(store) == (left or [known, "The user's name is Ana."])
