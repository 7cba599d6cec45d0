"""How well texts match the words of a question."""

import pytest

from recollect.memory.search import Corpus, Document
from recollect.memory.search.query import understand
from recollect.memory.search.words import match, score_passages, score_rows
from recollect.memory.texts.concepts import related_terms

TEXTS = (
    "She moved to Lisbon in March.",
    "The cello is in the kitchen.",
    "We run k8s with release v0.6.2 of the gateway.",
    "It stopped with error 0x80070005 after the update.",
    "The engine is written in C++ and some C#.",
    "An appointment at the dentist.",
)


def corpus() -> Corpus:
    return Corpus(Document(str(place), text) for place, text in enumerate(TEXTS))


def covered(question: str) -> dict[int, float]:
    """The share of the question that each text covers, of those that cover some."""
    searched = corpus()
    scores = score_rows(match(understand(question).terms, searched), searched)
    return {place: float(score) for place, score in enumerate(scores) if score}


def missing(question: str) -> float:
    return match(understand(question).terms, corpus()).missing()


def test_coverage_is_the_share_of_the_question() -> None:
    whole, half = covered("cello kitchen"), covered("cello volcano")
    assert set(whole) == set(half) == {1}
    assert 0 < half[1] < whole[1] <= 1


def test_a_passage_of_a_long_text_covers_what_it_contains() -> None:
    long = "The weather was fine. " * 30 + "The cello is in the kitchen. " + "Nothing else happened. " * 30
    searched = Corpus([Document("long", long), Document("other", "A tram.")])
    scores = score_passages(match(("cello",), searched), searched)
    (found,) = scores.nonzero()[0].tolist()
    start, end = (int(searched.passage_column(name)[found]) for name in ("start", "end"))
    assert "cello" in long[start:end]


def test_the_missing_share_is_that_of_the_words_that_no_text_has() -> None:
    assert missing("cello kitchen") == 0.0
    assert missing("volcano glacier") == 1.0
    # A word that no text has is the rarest, so it is more than half of two.
    assert 0.5 < missing("cello volcano") < 1.0


@pytest.mark.parametrize("word", ["apointment", "appointmant", "appointmentt", "appiontment"])
def test_a_word_with_one_wrong_letter_is_found_and_counts_less(word: str) -> None:
    assert set(covered(word)) == {5}
    assert 0 < covered(word)[5] < covered("appointment")[5]
    assert missing(word) == 0.0


def test_the_start_of_a_long_word_finds_it() -> None:
    assert set(covered("appoin")) == {5}


@pytest.mark.parametrize("word", ["cllo", "kichtne", "xyzzyx"])
def test_short_or_quite_different_words_find_nothing(word: str) -> None:
    assert covered(word) == {}


def test_a_related_word_finds_but_counts_less_than_the_word() -> None:
    assert "move" in related_terms("live")
    related, exact = covered("Where does she live?"), covered("Where did she move?")
    assert set(related) == set(exact) == {0}
    assert 0 < related[0] < exact[0]


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("k8s", 2),
        ("What changed in v0.6.2?", 2),
        ("0x80070005", 3),
        ("Who knows C++?", 4),
        ("C#", 4),
    ],
)
def test_identifiers_are_found_as_a_whole(question: str, place: int) -> None:
    found = covered(question)
    assert max(found, key=lambda each: found[each]) == place


def test_an_identifier_counts_more_than_its_pieces() -> None:
    texts = ("release v0.6.2 is out", "release v0 6 2 is out")
    searched = Corpus(Document(str(place), text) for place, text in enumerate(texts))
    scores = score_rows(match(understand("v0.6.2").terms, searched), searched)
    assert scores[0] > scores[1] > 0
