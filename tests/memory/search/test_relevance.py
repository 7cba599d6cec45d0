"""Whether there is anything to say about a question, and the chance of each hit."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from recollect.memory.operations.search import DEFAULT_CUT
from recollect.memory.search import Corpus, Document, Ranking, Weights, rank, understand
from recollect.memory.search.embedders import LocalEmbedder
from recollect.memory.search.passages import split
from recollect.memory.search.ranking import PARTS, named_role
from recollect.memory.search.records import ROLE_NUMBERS, Place, decode, make_record
from recollect.memory.search.relevance import (
    Calibration,
    HitSigns,
    Signs,
    hit_chances,
    log_odds,
)

from .conversations import turns

NURSE = (
    "The user moved to Lisbon in March.",
    "The user works as a nurse at the children's hospital.",
    "The user is allergic to peanuts.",
    "The user has a greyhound called Biscuit.",
    "The user plays the cello on Thursdays.",
    "The user's sister runs a bakery near the harbour.",
)
UNRELATED = (
    "How do I reverse a list in Python?",
    "asdfghjkl",
    "What is the capital of France?",
    "🙂 ???",
    "the of and is",
)


def entries(local: LocalEmbedder, texts: Sequence[str] = NURSE) -> Corpus:
    vectors = local.embed_now(texts)
    return Corpus(
        Document(str(place), text, kind="profile", role="user", vector=vector)
        for place, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    )


def asked(question: str, corpus: Corpus, local: LocalEmbedder) -> Ranking:
    query = understand(question, corpus.speakers)
    return rank(query, corpus, local.embed_now([query.embedding_text])[0])


@pytest.mark.parametrize("question", UNRELATED)
def test_unrelated_questions_are_not_relevant(question: str, local: LocalEmbedder) -> None:
    assert asked(question, entries(local), local).relevance < DEFAULT_CUT


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("Where does she live?", 0),
        ("What is her job?", 1),
        ("What can she not eat?", 2),
        ("Which instrument does she play?", 4),
        ("Who has a bakery?", 5),
        ("Where does she liev in Lisbonn?", 0),
    ],
)
def test_the_answer_comes_first_and_is_relevant(question: str, place: int, local: LocalEmbedder) -> None:
    found = asked(question, entries(local), local)
    assert found.hits[0].id == str(place)
    assert found.relevance >= DEFAULT_CUT


def test_a_kind_of_dog_comes_first_where_a_dog_is_asked_for(local: LocalEmbedder) -> None:
    assert asked("Does she have a dog?", entries(local), local).hits[0].id == "3"


@pytest.mark.parametrize("question", ["Where does she live?", "Who has a bakery?", *UNRELATED])
def test_chances_fall_with_the_rank_and_stay_below_the_relevance(question: str, local: LocalEmbedder) -> None:
    found = asked(question, entries(local), local)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= found.relevance <= 1 for score in scores)


def test_no_document_and_no_question_have_no_relevance() -> None:
    assert rank(understand("tram"), Corpus()) == Ranking()
    assert rank(understand("?"), Corpus(turns())) == Ranking()


def test_what_a_corpus_lacks_lowers_its_relevance_and_what_it_has_raises_it() -> None:
    by = Calibration()
    usual = Signs(500, 0.2, 0.5, 0.5, 0.4)
    before = log_odds(usual, by)
    assert log_odds(replace(usual, missing=0.9), by) < before
    raised = (
        replace(usual, coverage=0.8),
        replace(usual, similarity=0.8),
        replace(usual, near=0.6),
        replace(usual, preference=0.3),
        replace(usual, names_speaker=True),
    )
    assert all(log_odds(signs, by) > before for signs in raised)


def test_few_documents_are_judged_by_their_lead_and_by_who_is_meant() -> None:
    few = Signs(8, 1.0, 0.0, 0.2, 0.1)
    before = log_odds(few, Calibration())
    for more in (replace(few, lead=0.1), replace(few, is_personal=True), replace(few, names_speaker=True)):
        assert log_odds(more, Calibration()) > before


def test_a_hit_that_is_further_behind_is_less_likely() -> None:
    behind = np.array([0.0, 0.05, 0.2, 1.0, 3.0])
    same = np.full(len(behind), 0.3)
    chances = hit_chances(HitSigns(behind, same, same), 1.0, 100, Calibration())
    assert chances == sorted(chances, reverse=True)
    assert len(set(chances)) > 3


def test_the_chance_of_a_hit_uses_the_whole_range() -> None:
    sure = HitSigns(np.array([0.0, 0.5]), np.array([0.9, 0.1]), np.array([0.9, 0.2]))
    high, low = hit_chances(sure, 4.0, 1000, Calibration())
    assert high > 0.8
    assert low < 0.1


# --- who is meant ---


def talk(addressed_by: str, name: str) -> Corpus:
    """Three exchanges in which a role addresses the other one by name."""
    other = "assistant" if addressed_by == "user" else "user"
    lines = [
        (role, text)
        for day in ("Monday", "Tuesday", "Friday")
        for role, text in (
            (addressed_by, f"Hey {name}, it is {day}."),
            (other, f"The tram was late on {day}."),
        )
    ]
    return Corpus(
        Document(str(place), text, speaker=role, session="s", position=place, role=role)
        for place, (role, text) in enumerate(lines)
    )


@pytest.mark.parametrize(("by", "meant"), [("user", "assistant"), ("assistant", "user")])
def test_a_name_means_the_role_that_is_addressed_by_it(by: str, meant: str) -> None:
    corpus = talk(by, "Caro")
    query = understand("What did Caro tell about the tram?", corpus.speakers)
    assert named_role(query, corpus) == ROLE_NUMBERS[meant]
    best = rank(query, corpus).hits[0]
    assert corpus.document(int(best.id)).role == meant
    assert best.parts["speaker"] > 0
    assert named_role(understand("What did Dora tell?", corpus.speakers), corpus) is None


def test_a_greeting_is_no_name() -> None:
    corpus = talk("user", "Caro")
    corpus.add(
        Document(f"ok{place}", "Okay, the tram is late.", speaker="user", role="user") for place in range(5)
    )
    assert named_role(understand("Okay, when is the tram late?", corpus.speakers), corpus) is None


# --- long texts ---

LONG_ANSWER = "\n\n".join(
    f"Tip {number}: gardens, museums, trains and hotels of Europe are worth a visit, and a tram may be near."
    for number in range(40)
)


def test_a_long_answer_does_not_beat_a_short_message_that_answers(local: LocalEmbedder) -> None:
    said = ("I take tram 28 to work every morning.", LONG_ANSWER, "Thanks!", "The weather is fine.")
    found = asked("Which tram do I take to work?", entries(local, said), local)
    assert found.hits[0].id == "0"


def test_a_long_text_with_one_near_passage_does_not_beat_a_short_one_that_is_about_as_near() -> None:
    passages = split(LONG_ANSWER)
    far, near, nearly = [0.0, 1.0], [1.0, 0.0], [0.95, 0.31]
    of_long = np.array([near, *[far] * (len(passages) - 1)], np.float32)
    long = make_record(LONG_ANSWER, Place(), of_long, passages)
    short = make_record("Number 28 at seven.", Place(), np.array([nearly], np.float32))
    corpus = Corpus(dimensions=2)
    corpus.append(decode([long, short]), ["long", "short"], [None, None])
    hits = rank(understand("My commute?"), corpus, np.array(near, np.float32)).hits
    assert hits[0].id == "short"


@pytest.mark.parametrize("question", ["Where is the cello?", "Wo ist das cello"])
def test_the_passage_of_a_hit_is_the_part_that_matches(question: str) -> None:
    long = f"{LONG_ANSWER[:2000]}\n\nThe cello is in the attic of the old mill.\n\n{LONG_ANSWER[:2000]}"
    hit = rank(understand(question), Corpus([Document("a", long), Document("b", "A tram.")])).hits[0]
    start, end = hit.passage
    assert hit.id == "a"
    assert "cello is in the attic" in long[start:end]
    assert end - start < len(long) / 3


def test_the_passage_of_a_short_text_is_all_of_it() -> None:
    hit = rank(understand("bakery"), Corpus(turns())).hits[0]
    assert hit.passage == (0, len(turns()[int(hit.id)].text))


# --- parts ---


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_turned_off_adds_nothing(part: str, local: LocalEmbedder) -> None:
    corpus = entries(local, [turn.text for turn in turns()])
    query = understand('When did I adopt a "greyhound" lately? Any ideas for Ada in May 2023?', ())
    vector = local.embed_now([query.embedding_text])[0]
    found = rank(query, corpus, vector, weights=Weights().without(part), limit=100)
    assert found.hits
    assert all(part not in hit.parts for hit in found.hits)


def test_with_all_parts_turned_off_nothing_is_found() -> None:
    assert rank(understand("greyhound"), Corpus(turns()), weights=Weights().without(*PARTS)).hits == ()


# --- bad input ---


@pytest.mark.parametrize(
    "question",
    [
        "tram " * 20_000,
        "the of and",
        "🙂🙃",
        "tram 电车 трамвай 🚋 ترام",
        "(.*)+$ [tram",
        "tram'; DROP TABLE x; --",
        "\x00",
    ],
    ids=range(7),
)
def test_any_text_is_a_question(question: str, local: LocalEmbedder) -> None:
    found = asked(question, entries(local, [turn.text for turn in turns()]), local)
    assert 0 <= found.relevance <= 1
    if "tram" in question:  # the first line is about trams
        assert found.hits[0].id == "0"


def test_half_of_the_vectors_may_be_missing(local: LocalEmbedder) -> None:
    corpus = entries(local, NURSE[:3])
    corpus.add(Document(f"late{place}", text, role="user") for place, text in enumerate(NURSE[3:]))
    assert corpus.column("has_vector").tolist() == [True] * 3 + [False] * 3
    found = asked("Which day does she play the cello?", corpus, local)
    assert found.hits[0].id == "late1"
    assert all(np.isfinite(hit.score) for hit in found.hits)


def test_what_a_filter_keeps_out_does_not_show_in_the_relevance(local: LocalEmbedder) -> None:
    corpus = entries(local)
    query = understand("Where does the user live, in Lisbon?", corpus.speakers)
    vector = local.embed_now([query.embedding_text])[0]
    everything = rank(query, corpus, vector)
    others = rank(query, corpus, vector, keep=lambda corpus: corpus.rows_with_ids({"2", "4"}))
    nothing = rank(query, corpus, vector, keep=lambda corpus: corpus.rows_with_ids(()))
    assert everything.relevance > DEFAULT_CUT > others.relevance
    assert (nothing.hits, nothing.relevance) == ((), 0.0)
