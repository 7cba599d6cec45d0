"""The order of hits, and the parts of their scores."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from recollect.memory.search import Corpus, Document, Weights, rank, understand

from .conversations import LINES, SPRING, ask, first, turns


def test_a_word_is_found_in_another_form() -> None:
    assert first("Who is moving?") == LINES[0][2]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    said = [Document(str(place), f"the garden has roses {place}") for place in range(9)]
    corpus = Corpus([*said, Document("rare", "the cellar has roses")])
    assert ask("garden cellar", corpus)[0].id == "rare"


def test_the_answer_is_found_by_the_question_before_it() -> None:
    parts = {hit.id: hit.parts for hit in ask("Which instrument is it?")}
    assert "text" not in parts["2"]
    assert parts["2"]["neighbour"] > 0
    assert "3" not in parts


def test_who_is_named_is_heard_first() -> None:
    assert first("What did Ben tell about the greyhound?") in (LINES[3][2], LINES[7][2])
    ada, ben = (ask(f"What about {name} and the sister's greyhound?")[0] for name in ("Ada", "Ben"))
    assert (LINES[int(ada.id)][1], LINES[int(ben.id)][1]) == ("Ada", "Ben")


def test_i_and_you_are_the_user_and_the_assistant() -> None:
    said = [
        Document("mine", "a trip to the lake", speaker="user"),
        Document("yours", "a trip to the lake", speaker="assistant"),
    ]
    assert ask("Where was my trip?", Corpus(said))[0].id == "mine"
    assert ask("Which trip did you propose?", Corpus(said))[0].id == "yours"


def test_a_date_in_the_question_leads_to_its_time() -> None:
    assert first("What happened to the greyhound in October 2023?") == LINES[7][2]
    assert first("What happened to the greyhound on 7 May 2023?") == LINES[3][2]


def test_a_date_alone_finds_what_was_said_then() -> None:
    found = {hit.id for hit in ask("October 2023")}
    assert found == {"4", "5", "6", "7"}


def test_a_question_for_a_time_prefers_what_tells_one() -> None:
    assert first("When did the greyhound eat?") == LINES[7][2]


def test_the_newest_is_preferred_where_it_is_asked_for() -> None:
    said = [
        Document("old", "we use the blue server", time=SPRING),
        Document("new", "we use the blue server", time=SPRING + timedelta(days=90)),
    ]
    assert ask("Which server do we currently use?", Corpus(said))[0].id == "new"
    assert ask("Which server do we use?", Corpus(said))[0].id == "old"


def test_what_is_quoted_comes_before_what_has_the_same_words() -> None:
    said = [Document("loose", "after dark we light it"), Document("exact", "it gets light after we dark")]
    assert ask('Who said "light after we dark"?', Corpus(said))[0].id == "exact"


def test_a_question_is_worth_less_than_a_statement() -> None:
    said = [Document("asked", "Is the kettle broken?"), Document("told", "No, the kettle is not broken.")]
    assert [hit.id for hit in ask("broken kettle", Corpus(said))] == ["told", "asked"]


def test_a_near_vector_finds_what_shares_no_word() -> None:
    near = Document("near", "cello lessons", vector=[1.0, 0.1])
    corpus = Corpus([near, Document("far", "tax return", vector=[0.0, 1.0])])
    query = understand("musical hobby")
    assert rank(query, corpus).hits == ()
    hits = rank(query, corpus, np.array([1.0, 0.0], np.float32)).hits
    assert [hit.id for hit in hits] == ["near"]
    assert set(hits[0].parts) >= {"vector"}
    assert sum(hits[0].parts.values()) == pytest.approx(hits[0].score)


def test_what_has_no_vector_yet_is_not_worse_for_it() -> None:
    with_vector = Document("with", "the tram is late", vector=[1.0, 0.0])
    other = Document("other", "nothing here", vector=[0.0, 1.0])
    corpus = Corpus([with_vector, other, Document("without", "the tram is late")])
    hits = rank(understand("late tram"), corpus, np.array([1.0, 0.0], np.float32)).hits
    assert hits[0].score == pytest.approx(hits[1].score)
    assert {hit.id for hit in hits[:2]} == {"with", "without"}


@pytest.mark.parametrize(
    "vector", [[1.0], [1.0, 0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0], [[1.0, 0.0]], [0.0, 0.0]]
)
def test_a_vector_of_a_question_that_does_not_fit_is_not_compared(vector: list[float]) -> None:
    corpus = Corpus([replace(turns()[0], vector=[1.0, 0.0]), replace(turns()[1], vector=[0.0, 1.0])])
    query = understand("trams in Lisbon")
    assert rank(query, corpus, np.array(vector, np.float32)) == rank(query, corpus)


@pytest.mark.parametrize("length", [1e-30, 1e30, 3e38])
def test_the_length_of_a_vector_does_not_matter(length: float) -> None:
    corpus = Corpus([replace(turns()[0], vector=[1.0, 1.0]), replace(turns()[1], vector=[0.0, 1.0])])
    query = understand("trams in Lisbon")
    one, other = (rank(query, corpus, np.array([size, size], np.float32)).hits for size in (1.0, length))
    assert [hit.id for hit in one] == [hit.id for hit in other]
    assert other[0].score == pytest.approx(one[0].score)


def test_a_part_that_is_switched_off_is_not_told() -> None:
    told = {part for hit in ask("What did Ada say in spring?") for part in hit.parts}
    assert "speaker" in told
    silent = Weights().without("speaker", "neighbour")
    assert not {"speaker", "neighbour"} & {
        part for hit in ask("What did Ada say in spring?", weights=silent) for part in hit.parts
    }


def test_a_session_counts_less_where_the_answer_may_lie_in_several() -> None:
    one, several = ask("What greyhound did Ben adopt?"), ask("What greyhounds did Ben adopt?")
    for part in ("session", "topic"):
        assert one[0].parts[part] > several[0].parts[part] > 0


def test_entries_without_a_session_have_no_neighbours() -> None:
    corpus = Corpus(replace(turn, session=None, kind="entry") for turn in turns())
    told = {part for hit in ask("Where is the bakery?", corpus) for part in hit.parts}
    assert not told & {"neighbour", "session", "topic"}


def test_only_what_is_kept_is_told() -> None:
    hits = ask("greyhound", keep=lambda corpus: corpus.rows_where("session", {"autumn"}))
    assert hits
    assert {LINES[int(hit.id)][0] for hit in hits} == {"autumn"}


def test_no_more_than_asked_for_and_the_best_of_all() -> None:
    every = ask("greyhound bakery cello", limit=100)
    for limit in range(len(every) + 2):
        assert ask("greyhound bakery cello", limit=limit) == every[:limit]


def test_of_equal_documents_the_first_stays_first() -> None:
    corpus = Corpus(Document(str(number), "the same text") for number in range(30))
    assert [hit.id for hit in ask("same", corpus, limit=5)] == ["0", "1", "2", "3", "4"]


def test_a_negative_limit_is_an_error() -> None:
    with pytest.raises(ValueError, match="limit must not be negative, and it is -1"):
        ask("greyhound", limit=-1)


@pytest.mark.parametrize(
    "question",
    [
        "greyhound'; DROP TABLE memories; --",
        'greyhound" OR 1=1',
        "greyhound NEAR/2 AND NOT (OR *",
        'text:greyhound* ^2 {-} "',
        "greyhound %_\\",
        "greyhound & ! | <-> :*",
    ],
)
def test_the_syntax_of_other_searches_is_nothing_but_text(question: str) -> None:
    assert {"3", "7"} <= {hit.id for hit in ask(question)}


@pytest.mark.parametrize("question", ["", " ", "?", "...", "🙂", "\ud800", "%", "*", "'", '"', "\x00"])
def test_a_question_without_words_finds_nothing(question: str) -> None:
    assert ask(question) == []
