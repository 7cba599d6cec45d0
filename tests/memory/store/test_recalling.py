"""What a search shows, and what goes into a prompt."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect import CallableEmbedder, LocalEmbedder
from recollect.memory.conversation import Message
from recollect.memory.entry import Entry, Evidence
from recollect.memory.hits import MemoryHit, TurnHit, TurnSearch
from recollect.memory.store.recalling import Cut, choose
from recollect.testing.contract import in_event_loop

from ..databases import Place

AGENT, USER = "agent", "ada"
NOON = datetime(2026, 5, 7, 12, tzinfo=UTC)
ONE, SEVERAL = "Where does she live?", "How many cities has she seen?"
NURSE = (
    "The user moved to Lisbon in March.",
    "The user works as a nurse at the children's hospital.",
    "The user is allergic to peanuts.",
    "The user has a greyhound called Biscuit.",
    "The user plays the cello on Thursdays.",
    "The user's sister runs a bakery near the harbour.",
)
UNRELATED = ("How do I reverse a list in Python?", "asdfghjkl", "What is the capital of France?")


def entry(name: str, score: float = 0.9, **more: Any) -> MemoryHit:
    learned = more.pop("learned_at", NOON)
    return MemoryHit(Entry(name, "memory", "profile", f"The user sees {name}.", learned, **more), score, {})


def turn(name: str, score: float = 0.9, content: str = "", passage: str = "", hours: int = 0) -> TurnHit:
    message = Message("user", content or f"I see {name}.", name, hours, NOON + timedelta(hours=hours))
    return TurnHit(message, "c1", "s1", score, {}, passage=passage or message.content)


def names(hits: tuple[MemoryHit, ...] | tuple[TurnHit, ...]) -> list[str]:
    return [hit.entry.content_id if isinstance(hit, MemoryHit) else hit.message.message_id for hit in hits]


# --- the cut ---


@pytest.mark.parametrize(
    ("cut", "left"),
    [
        (Cut(), ["a", "b"]),
        (Cut.of(None, None), ["a", "b"]),
        (Cut.of(0.5, None), ["a"]),
        (Cut.of(0.2, 0.8), ["a", "b"]),
        (Cut.of(None, 0.81), []),
        (Cut.of(1, 1), []),
    ],
)
def test_hits_below_a_cut_are_left_out(cut: Cut, left: list[str]) -> None:
    found = TurnSearch((turn("a", 0.7), turn("b", 0.2)), ("a warning",), 0.8)
    shown = cut.apply(found)
    assert names(shown.hits) == left
    assert (shown.warnings, shown.relevance) == (found.warnings, found.relevance)


WRONG = (
    (-0.1, ValueError, "must be from 0 to 1, and it is -0.1"),
    (1.5, ValueError, "must be from 0 to 1, and it is 1.5"),
    (float("nan"), ValueError, "must be from 0 to 1, and it is nan"),
    (float("-inf"), ValueError, "must be from 0 to 1, and it is -inf"),
    ("0.5", TypeError, "must be a number, not str"),
    (False, TypeError, "must be a number, not bool"),
)


@pytest.mark.parametrize("name", ["min_score", "min_relevance"])
@pytest.mark.parametrize(("given", "kind", "told"), WRONG)
@in_event_loop
async def test_a_cut_that_is_no_chance_is_refused(
    file_place: Place, name: str, given: Any, kind: type[Exception], told: str
) -> None:
    async with file_place.open() as store:
        searches: list[Any] = [store.search_memories, store.search_conversations]
        if name == "min_relevance":
            searches.append(store.recall)
        for search in searches:
            with pytest.raises(kind, match=f"^{name} {told}"):
                await search("tram", AGENT, USER, **{name: given})


# --- the choice ---


def test_a_message_that_an_entry_was_learned_from_is_left_out() -> None:
    known = entry("Ghent", evidence=(Evidence("c1", "learned", "run"),))
    same_id_elsewhere = replace(turn("learned"), conversation_id="c2")
    chosen = choose(ONE, [known], [turn("learned"), same_id_elsewhere, turn("other")])
    assert names(chosen.entries) == ["Ghent"]
    assert [(hit.conversation_id, hit.message.message_id) for hit in chosen.turns] == [
        ("c2", "learned"),
        ("c1", "other"),
    ]


def test_a_message_with_the_words_of_an_entry_is_left_out() -> None:
    chosen = choose(ONE, [entry("Ghent")], [turn("again", content="The user sees Ghent.")])
    assert chosen.turns == ()
    assert chosen.lines == ("The user sees Ghent.",)


def test_of_a_slot_only_the_newest_entry_stays() -> None:
    old = entry("Ghent", 0.9, slot="home", learned_at=NOON)
    new = entry("Bruges", 0.5, slot="home", learned_at=NOON + timedelta(days=1))
    other = entry("Lisbon", 0.4, slot="work")
    elsewhere = entry("Porto", 0.3, slot="home")
    elsewhere = replace(elsewhere, entry=replace(elsewhere.entry, memory_id="another"))
    assert names(choose(ONE, [old, new, other, elsewhere], []).entries) == ["Bruges", "Lisbon", "Porto"]
    assert names(choose(ONE, [entry("a"), entry("b")], []).entries) == ["a", "b"]


def test_hits_far_below_the_best_one_are_left_out() -> None:
    chosen = choose(ONE, [entry("a", 0.9), entry("b", 0.05)], [turn("c", 0.5), turn("d", 0.04)])
    assert (names(chosen.entries), names(chosen.turns)) == (["a"], ["c"])


def test_several_things_come_in_the_order_of_time_and_one_thing_by_its_rank() -> None:
    known = [
        entry("third", said_at=NOON),
        entry("first", valid_from="2024-02"),
        entry("fourth", learned_at=NOON + timedelta(days=1)),
        entry("second", valid_from="2025"),
    ]
    said = [turn("late", hours=5), turn("early", hours=1)]
    several, one = choose(SEVERAL, known, said), choose(ONE, known, said)
    assert names(several.entries) == ["first", "second", "third", "fourth"]
    assert names(several.turns) == ["early", "late"]
    assert names(one.entries) == ["third", "first", "fourth", "second"]
    assert names(one.turns) == ["late", "early"]


@pytest.mark.parametrize(
    ("passage", "quote"),
    [
        ("One. Two. Three.", '"One. Two. Three."'),
        ("One.", '"One. …"'),
        ("Two.", '"… Two. …"'),
        ("Three.", '"… Three."'),
    ],
)
def test_a_long_message_is_quoted_in_part(passage: str, quote: str) -> None:
    said = turn("m", content="One. Two. Three.", passage=passage)
    assert choose(ONE, [], [said]).lines == (f"7 May 2026, user: {quote}",)


# --- recall ---


@in_event_loop
async def test_a_block_is_empty_if_there_is_nothing_to_say(file_place: Place) -> None:
    async with file_place.open(embedder=LocalEmbedder()) as store:
        for text in NURSE:
            await store.add_entry(AGENT, USER, "profile", text)
        await store.embed_pending()
        for question in UNRELATED:
            recalled = await store.recall(question, AGENT, USER)
            assert (recalled.text, recalled.entries, recalled.turns) == ("", (), ()), question
            assert (await store.recall(question, AGENT, USER, min_relevance=0.0)).entries, question
            found = await store.search_memories(question, AGENT, USER)
            assert all(0 <= hit.score <= found.relevance < 0.4 for hit in found.hits), question
        recalled = await store.recall("Where does she live?", AGENT, USER)
        assert recalled.entries[0].entry.text == NURSE[0]
        assert NURSE[0] in recalled.text


@in_event_loop
async def test_a_long_message_is_found_by_its_passage_and_quoted_by_it(place: Place) -> None:
    filler = "The weather was fine and nothing else happened. " * 40
    answer = "The cello stands in the attic of the old mill."
    said = [{"role": "assistant", "content": f"{filler}\n\n{answer}\n\n{filler}", "message_id": "long"}]
    async with place.open() as store:
        await store.record_conversation(AGENT, USER, said, conversation_id="c1", created_at=NOON)
        found = await store.search_conversations("Where is the cello in the attic?", AGENT, USER)
        (hit,) = found.hits
        assert answer in hit.passage
        assert len(hit.passage) < len(hit.message.content) / 2
        assert hit.message.content == said[0]["content"]
        recalled = await store.recall("Where is the cello in the attic?", AGENT, USER)
        assert "… " in recalled.text
        assert answer in recalled.text
        assert len(recalled.text) < len(filler)


@in_event_loop
async def test_vectors_of_another_model_or_none_are_a_warning(shared_place: Place) -> None:
    small = CallableEmbedder(lambda texts: [[1.0, float(len(t))] for t in texts], name="small", dimensions=2)
    other = CallableEmbedder(lambda texts: [[float(len(t)), 1.0, 2.0] for t in texts], name="o", dimensions=3)
    async with shared_place.open(embedder=small) as store:
        for text in NURSE[:3]:
            await store.add_entry(AGENT, USER, "profile", text)
        await store.embed_pending()
        for text in NURSE[3:]:
            await store.add_entry(AGENT, USER, "profile", text)
        half = await store.search_memories("Which cello?", AGENT, USER)
        assert half.warnings == ("3 of 6 documents have no vector yet",)
        assert NURSE[4] in [hit.entry.text for hit in half.hits]
    async with shared_place.open(embedder=other) as store:
        strange = await store.search_memories("Which cello?", AGENT, USER)
        assert len(strange.warnings) == 1
        assert strange.hits[0].entry.text == NURSE[4]
        assert all("vector" not in hit.parts for hit in strange.hits)
        assert strange.warnings == (await store.recall("Which cello?", AGENT, USER)).warnings
