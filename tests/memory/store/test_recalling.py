"""What a search shows, and what goes into a prompt."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect import CallableEmbedder, LocalEmbedder
from recollect.memory.block import Block, Line
from recollect.memory.conversation import Message
from recollect.memory.entry import Entry, Evidence
from recollect.memory.hits import MemoryHit, MemorySearch, TurnHit, TurnSearch
from recollect.memory.store.recalling import Cut, Found, build_block, relevance_of, shorten
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


# --- the block ---

LATER = NOON + timedelta(days=400)
FORMER = "Where did she live before?"


def block(query: str = ONE, *, budget: int = 1000, **found: Any) -> Block:
    return build_block(query, Found(**found), now=NOON + timedelta(days=30), budget=budget)


def ids(lines: tuple[Line, ...]) -> list[str]:
    return [line.id for line in lines]


def said(name: str, content: str, score: float = 0.5, hours: int = 0) -> TurnHit:
    return turn(name, score, content, hours=hours)


def test_a_line_has_its_kind_id_time_score_reason_and_messages() -> None:
    known = entry("Ghent", 0.8, said_at=NOON, evidence=(Evidence("c1", "m1", "run"),))
    built = block(entries=[known], turns=[turn("m2", 0.4)])
    assert built.lines == (
        Line(
            "fact", "Ghent", "7 May 2026: The user sees Ghent.", NOON, 0.8, "relevant", None, (("c1", "m1"),)
        ),
        Line("quote", "m2", '7 May 2026, user: "I see m2."', NOON, 0.4, "relevant", "c1", (("c1", "m2"),)),
    )
    assert (built.facts, built.quotes, built.wishes) == (built.lines[:1], built.lines[1:], ())


def test_the_text_says_what_now_is_and_gives_every_line_its_date() -> None:
    text = block(entries=[entry("Ghent", said_at=NOON)], turns=[turn("m2", 0.4, hours=24)]).render().text
    assert "Now it is Saturday, 6 June 2026." in text
    assert "> - 7 May 2026: The user sees Ghent." in text
    assert '> - 8 May 2026, user: "I see m2."' in text


def test_a_fact_and_its_message_are_one_line_with_the_score_of_the_message() -> None:
    known = entry("Ghent", 0.4, evidence=(Evidence("c1", "learned", "run"),))
    same = turn("learned", 0.5, "I see Ghent.")
    elsewhere = replace(turn("learned", 0.3), conversation_id="c2")
    built = block(entries=[known], turns=[same, elsewhere])
    assert [(line.conversation_id, line.id, line.score) for line in built.lines] == [
        (None, "Ghent", 0.5),
        ("c2", "learned", 0.3),
    ]


MORE = "I see Ghent on Sundays, since Saturdays do not work for my son any more."


def test_a_message_that_says_more_than_its_fact_is_shown_instead() -> None:
    known = entry("Ghent", 0.4, evidence=(Evidence("c1", "learned", "run"),))
    built = block(entries=[known], turns=[turn("learned", 0.2, MORE)])
    assert [(line.kind, line.id, line.score) for line in built.lines] == [("quote", "learned", 0.4)]


def test_a_question_about_the_past_gets_the_fact_with_its_date_and_the_words() -> None:
    known = entry("Ghent", 0.4, evidence=(Evidence("c1", "learned", "run"),))
    (line,) = block(FORMER, entries=[known], turns=[turn("learned", 0.2, MORE)]).lines
    assert line.id == "Ghent"
    assert line.text.endswith(f'The user sees Ghent. Said: "{MORE}"')


def test_words_with_another_value_than_their_fact_are_not_shown_with_it() -> None:
    learned = (Evidence("c1", "learned", "run"),)
    known = MemoryHit(
        Entry("e", "memory", "profile", "The user weighs 77 kilos.", NOON, evidence=learned), 0.4, {}
    )
    said = turn("learned", 0.2, "I weigh 71 kilos, the form of the club asks for it every year.")
    assert [line.text for line in block(entries=[known], turns=[said]).lines] == [
        "7 May 2026: The user weighs 77 kilos."
    ]


@pytest.mark.parametrize("content", ["OK.", "Nice!", "哈哈。"])
def test_a_message_that_says_nothing_is_left_out(content: str) -> None:
    assert block(turns=[said("m", content)]).lines == ()
    assert ids(block(turns=[said("m", "77 kilos.")]).lines) == ["m"]


def test_of_a_slot_only_the_newest_entry_stays() -> None:
    old = entry("Ghent", 0.9, slot="home", learned_at=NOON)
    new = entry("Bruges", 0.5, slot="home", learned_at=NOON + timedelta(days=1))
    other = entry("Lisbon", 0.4, slot="work")
    elsewhere = entry("Porto", 0.3, slot="home")
    elsewhere = replace(elsewhere, entry=replace(elsewhere.entry, memory_id="another"))
    texts = {"Ghent": "x in Ghent", "Bruges": "y in Bruges", "Lisbon": "z", "Porto": "w"}
    hits = [
        replace(hit, entry=replace(hit.entry, text=texts[hit.entry.content_id]))
        for hit in (old, new, other, elsewhere)
    ]
    assert ids(block(entries=hits).lines) == ["Bruges", "Lisbon", "Porto"]


def test_hits_with_hardly_a_chance_are_left_out_however_good_the_best_one_is() -> None:
    built = block(entries=[entry("a", 0.99), entry("b", 0.003)], turns=[turn("c", 0.03), turn("d", 0.003)])
    assert ids(built.lines) == ["a", "c"]


def test_the_best_hits_come_first_until_the_budget_is_full() -> None:
    hits = [
        turn(f"m{number}", 0.9 - number / 100, f"Message {number} about the tram and its long way.")
        for number in range(30)
    ]
    small, large = block(turns=hits, budget=200), block(turns=hits, budget=500)
    assert ids(large.lines) == [f"m{number}" for number in range(len(large.lines))]
    assert ids(small.lines) == ids(large.lines)[: len(small.lines)]
    assert 2 < len(small.lines) < len(large.lines) < 30
    assert small.render(budget=200).text.count("Message") == len(small.lines)


def test_several_things_come_in_the_order_of_time_and_one_thing_by_its_rank() -> None:
    known = [
        entry("third", 0.9, said_at=NOON),
        entry("first", 0.8, valid_from="2024-02"),
        entry("fourth", 0.7, learned_at=NOON + timedelta(days=1)),
        entry("second", 0.6, valid_from="2025"),
    ]
    known = [
        replace(hit, entry=replace(hit.entry, text=f"{hit.entry.content_id} town was seen")) for hit in known
    ]
    quoted = [turn("late", 0.5, "We went by boat.", hours=5), turn("early", 0.4, "We came on foot.", hours=1)]
    several, one = block(SEVERAL, entries=known, turns=quoted), block(ONE, entries=known, turns=quoted)
    assert ids(several.lines) == ["first", "second", "third", "early", "late", "fourth"]
    assert ids(one.lines) == ["third", "first", "fourth", "second", "late", "early"]


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
    hit = turn("m", content="One. Two. Three.", passage=passage)
    (line,) = block(turns=[hit]).lines
    assert line.text == f"7 May 2026, user: {quote}"


def test_a_long_passage_gives_the_sentences_that_are_nearest_to_the_question() -> None:
    filler = "Nothing happened on that day at all. " * 8
    text = f"{filler}The cello is in the attic. It is dusty. {filler}".strip()
    short = shorten(text, "Where is the cello?", 20)
    assert short.startswith("The cello is in the attic. It is dusty.")
    assert len(short) <= 80
    assert short in text
    assert shorten("猫睡了。" * 40 + "大提琴在阁楼上。", "大提琴在哪里？", 12).endswith("大提琴在阁楼上。")
    assert shorten("word " * 100, "word", 10) == ("word " * 8).strip()


# --- the newest first ---


def test_of_two_messages_that_say_something_else_of_the_same_thing_the_newest_is_shown() -> None:
    hits = [said("old", "My rent is 950 euros.", 0.9), said("new", "My rent is 610 euros.", 0.4, hours=9)]
    built = block("How much is my rent?", turns=hits)
    assert [(line.id, line.score) for line in built.lines] == [("new", 0.9)]


def test_what_another_person_says_of_a_thing_of_their_own_is_no_newer_value() -> None:
    maria, bo = said("old", "My rent is 950 euros.", 0.9), said("new", "My rent is 610 euros.", 0.4, hours=9)
    hits = [
        replace(hit, message=replace(hit.message, name=name)) for hit, name in ((maria, "Maria"), (bo, "Bo"))
    ]
    assert ids(block("How much is the rent?", turns=hits).lines) == ["old", "new"]
    both = [replace(hit, message=replace(hit.message, name="Bo")) for hit in hits]
    assert ids(block("How much is the rent?", turns=both).lines) == ["new"]


def test_a_question_about_the_past_also_gets_the_older_value_marked_as_earlier() -> None:
    hits = [said("old", "I live in Leeds.", 0.9), said("new", "I live in York.", 0.4, hours=9)]
    first, second = block(FORMER, turns=hits).lines
    assert (first.id, first.reason) == ("new", "relevant")
    assert (second.id, second.reason) == ("old", "earlier")
    assert second.text == 'earlier, on 7 May 2026, user: "I live in Leeds."'


def test_a_newer_message_beats_an_entry_that_it_contradicts() -> None:
    known = entry("Leeds", 0.9, said_at=NOON)
    known = replace(known, entry=replace(known.entry, text="I live in Leeds."))
    built = block(entries=[known], turns=[said("new", "I live in York.", 0.3, hours=9)])
    assert ids(built.lines) == ["new"]


def test_in_one_conversation_the_later_message_is_the_newer_one() -> None:
    hits = [said("old", "我的生日是五月三日。", 0.9), said("new", "我的生日是六月九日。", 0.4)]
    hits[1] = replace(hits[1], message=replace(hits[1].message, message_index=7))
    assert ids(block("我的生日是哪天？", turns=hits).lines) == ["new"]


def test_a_message_whose_entry_was_superseded_is_left_out_unless_the_past_is_asked_for() -> None:
    hits = [turn("gone", 0.9), turn("other", 0.5)]
    assert ids(block(turns=hits, outdated={("c1", "gone")}).lines) == ["other"]
    past = block(FORMER, turns=hits, outdated={("c1", "gone")}).lines
    assert [(line.id, line.reason) for line in past] == [("gone", "earlier"), ("other", "relevant")]


def test_the_reply_to_a_message_whose_entry_was_superseded_is_left_out_with_it() -> None:
    hits = [turn("gone"), turn("echo", hours=1), turn("answer", hours=1), turn("later", hours=2)]
    for place, conversation in ((1, "c1"), (2, "c2"), (3, "c1")):
        message = replace(hits[place].message, role="assistant")
        hits[place] = replace(hits[place], message=message, conversation_id=conversation)
    assert ids(block(turns=hits, outdated={("c1", "gone")}).lines) == ["answer", "later"]
    past = {line.id: line.reason for line in block(FORMER, turns=hits, outdated={("c1", "gone")}).lines}
    assert past == {"gone": "earlier", "echo": "earlier", "answer": "relevant", "later": "relevant"}


def test_a_doubtful_entry_says_that_it_may_no_longer_hold() -> None:
    (line,) = block(entries=[entry("Leeds", 0.9, said_at=NOON, confidence=0.1)]).lines
    assert (line.reason, line.text) == ("doubtful", "7 May 2026: The user sees Leeds. (may no longer hold)")


def test_a_doubtful_entry_gives_way_only_to_all_messages_that_it_rests_on() -> None:
    evidence = (Evidence("c1", "later", "run"), Evidence("c1", "stated", "run"))
    doubtful = entry("Leeds", 0.9, confidence=0.1, evidence=evidence)
    both = [turn("later", 0.5), turn("stated", 0.4)]
    assert ids(block(entries=[doubtful], turns=both).lines) == ["later", "stated"]
    lines = block(entries=[doubtful], turns=both, outdated={("c1", "stated")}).lines
    assert [(line.id, line.reason) for line in lines] == [("Leeds", "doubtful")], "it is not lost"


def test_an_entry_that_held_earlier_says_until_when() -> None:
    hit = entry("Leeds", 0.9, said_at=NOON, valid_from="2024-03", retired_at=LATER)
    (line,) = block(FORMER, entries=[hit]).lines
    assert line.text == "earlier, on 7 May 2026: The user sees Leeds. (since 2024-03, until 2027-06-11)"
    assert line.reason == "earlier"


def test_what_a_later_line_ends_is_left_out_unless_the_past_is_asked_for() -> None:
    hits = [
        said("old", "I take metoprolol for my blood pressure.", 0.9),
        said("new", "The doctor took me off the metoprolol.", 0.2, hours=900),
        said("other", "I take the tram to the clinic.", 0.1),
    ]
    assert ids(block("Which medicine do I take?", turns=hits).lines) == ["new", "other"]
    past = block("Which medicine did I take before?", turns=hits).lines
    assert [(line.id, line.reason) for line in past] == [
        ("old", "earlier"),
        ("new", "relevant"),
        ("other", "relevant"),
    ]


def test_a_message_that_was_corrected_at_once_never_stands_alone() -> None:
    hits = [said("m1", "The dentist appointment is on the 5th.", 0.9), said("m3", "No wait, the 6th.", 0.02)]
    hits[1] = replace(hits[1], message=replace(hits[1].message, message_index=2))
    (first,) = block("When is the dentist?", turns=hits).lines
    assert first.text.endswith('is on the 5th." Then corrected: "No wait, the 6th."')
    assert first.messages == (("c1", "m1"), ("c1", "m3"))


# --- wishes ---


def wish(number: int) -> MemoryHit:
    given = entry(f"w{number}", 0.0)
    return replace(given, entry=replace(given.entry, content_type="instruction", text=f"Wish {number}."))


def test_the_newest_wishes_are_in_every_block_and_others_only_if_they_are_relevant() -> None:
    hits = [wish(number) for number in range(6)]
    found = [replace(hits[4], score=0.5)]
    built = block(wishes=[hit.entry for hit in hits], entries=found)
    assert ids(built.wishes) == ["w0", "w1", "w2", "w4"]
    assert built.lines == built.wishes
    assert ids(block(wishes=[hit.entry for hit in hits]).lines) == ["w0", "w1", "w2"]


def test_a_wish_under_a_condition_is_in_the_block_only_if_it_fits_the_question() -> None:
    hit = wish(0)
    text = "The user wants version numbers when they ask about libraries."
    named = replace(hit, score=0.5, entry=replace(hit.entry, text=text))
    assert block(wishes=[named.entry]).lines == ()
    assert ids(block(wishes=[named.entry], entries=[named]).lines) == ["w0"]


# --- relevance ---


@pytest.mark.parametrize(
    ("known", "quoted", "least", "most"),
    [
        (0.9, 0.9, 0.89, 0.91),
        (0.05, 0.9, 0.9, 0.9),
        (0.6, 0.05, 0.3, 0.39),
        (0.9, 0.05, 0.5, 0.6),
        (None, 0.7, 0.69, 0.71),
        (0.7, None, 0.69, 0.71),
        (None, None, 0, 0),
    ],
)
def test_messages_count_more_than_entries_and_a_search_without_hits_does_not_count(
    known: float | None, quoted: float | None, least: float, most: float
) -> None:
    learned = entry("a", evidence=(Evidence("c1", "m", "run"),))
    entries = MemorySearch(() if known is None else (learned,), (), known or 0.0)
    turns = TurnSearch(() if quoted is None else (turn("m"),), (), quoted or 0.0)
    assert least <= relevance_of(entries, turns) <= most


@pytest.mark.parametrize(("known", "quoted", "both"), [(0.9, 0.05, 0.9), (0.05, 0.05, 0.05)])
def test_messages_do_not_count_against_an_entry_that_was_written(
    known: float, quoted: float, both: float
) -> None:
    entries = MemorySearch((entry("a"),), (), known)
    assert relevance_of(entries, TurnSearch((turn("m"),), (), quoted)) == pytest.approx(both)


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
            assert not recalled.is_found
        recalled = await store.recall("Where does she live?", AGENT, USER)
        assert recalled.is_found
        assert recalled.entries[0].entry.text == NURSE[0]
        assert NURSE[0] in recalled.text


@in_event_loop
async def test_an_entry_that_was_written_is_recalled_whatever_was_said(file_place: Place) -> None:
    async with file_place.open(embedder=LocalEmbedder()) as store:
        said = [{"role": "user", "content": "I live in Oslo."}, {"role": "assistant", "content": "Nice."}]
        await store.record_conversation(AGENT, USER, said)
        await store.add_entry(AGENT, USER, "profile", "The user has two cats.")
        await store.embed_pending()
        recalled = await store.recall("Which pets do I have?", AGENT, USER)
        assert [hit.entry.text for hit in recalled.entries] == ["The user has two cats."]
        assert not (await store.recall("How do I sort a list in Python?", AGENT, USER)).is_found


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
