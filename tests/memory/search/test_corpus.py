"""A corpus that grows and shrinks is the same as one that was built at once."""

from dataclasses import replace

import numpy as np
import pytest

from recollect.memory.search import Corpus, Document

from .conversations import ask, turns

_STEP = 1 / 254  # half a step of a vector with a byte for each dimension


def test_documents_can_be_added_one_by_one() -> None:
    grown = Corpus()
    for turn in turns():
        grown.add([turn])
    assert ask("Who has a greyhound?", grown) == ask("Who has a greyhound?", Corpus(turns()))


def test_neighbours_are_those_of_the_session_in_whatever_order_they_came() -> None:
    backwards = Corpus(reversed(turns()))
    assert {hit.id: hit.score for hit in ask("What does the sister bake?", backwards)} == pytest.approx(
        {hit.id: hit.score for hit in ask("What does the sister bake?", Corpus(turns()))}
    )


def test_a_removed_document_leaves_no_trace() -> None:
    corpus = Corpus(turns())
    assert corpus.remove(["3", "7", "not there"]) == 2
    assert "3" not in corpus
    left = Corpus(turn for turn in turns() if turn.id not in ("3", "7"))
    assert ask("Who has a greyhound in Lisbon?", corpus) == ask("Who has a greyhound in Lisbon?", left)


def test_who_said_only_what_was_removed_is_no_speaker_any_more() -> None:
    corpus = Corpus(turns())
    corpus.remove(["1", "3", "5", "7"])
    assert list(corpus.speakers) == ["Ada"]


def test_a_removed_document_can_come_back() -> None:
    corpus = Corpus(turns())
    corpus.remove(["7"])
    corpus.add([turns()[7]])
    assert ask("Who ate a loaf?", corpus) == ask("Who ate a loaf?", Corpus(turns()))


def test_all_can_be_removed() -> None:
    corpus = Corpus(turns())
    assert corpus.remove([turn.id for turn in turns()]) == 8
    assert (len(corpus), ask("greyhound", corpus)) == (0, [])


def test_the_same_id_twice_is_an_error_that_does_not_tell_it() -> None:
    corpus = Corpus(turns())
    with pytest.raises(ValueError, match="a document with this id is in the corpus already"):
        corpus.add([turns()[0]])
    assert len(corpus) == 8


def test_more_documents_than_there_was_room_for() -> None:
    corpus = Corpus(Document(str(number), f"number{number}", vector=[number, 1.0]) for number in range(200))
    assert [hit.id for hit in ask("number150", corpus)] == ["150"]
    (read,) = corpus.vectors.read([150])
    assert read == pytest.approx(np.array([150, 1]) / np.hypot(150, 1), abs=_STEP)


@pytest.mark.parametrize(
    "vector",
    [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [np.nan, 1.0, 1.0], [np.inf, 1.0, 1.0], [0.0, 0.0, 0.0], [[1.0]], []],
)
def test_a_vector_that_does_not_fit_is_left_out(vector: list[float]) -> None:
    corpus = Corpus([replace(turns()[0], vector=[1.0, 0.0, 0.0]), replace(turns()[1], vector=vector)])
    assert corpus.dimensions == 3
    assert corpus.column("has_vector").tolist() == [True, False]


def test_the_first_vector_says_the_dimensions_also_when_it_comes_late() -> None:
    corpus = Corpus(turns()[:3])
    assert corpus.dimensions is None
    assert corpus.similarities(np.array([3.0, 4.0], np.float32)) is None
    corpus.add([replace(turns()[3], vector=[3.0, 4.0])])
    read = corpus.vectors.read(range(4))
    assert read.tolist() == pytest.approx(np.array([[0, 0], [0, 0], [0, 0], [0.6, 0.8]]), abs=_STEP)


def test_the_documents_tell_their_texts_only_to_who_reads_them() -> None:
    assert "Lisbon" not in repr(turns()[0])


def test_a_document_that_is_replaced_again_and_again_leaves_no_pieces_behind() -> None:
    corpus = Corpus(turns())
    for turn in turns() * 3:
        corpus.remove([turn.id])
        corpus.add([turn])
    assert (len(corpus.postings._parts), len(corpus.vectors._blocks)) == (0, 0)
    left = {hit.id: hit.score for hit in ask("Who has a greyhound in Lisbon?", corpus)}
    assert left == pytest.approx({hit.id: hit.score for hit in ask("Who has a greyhound in Lisbon?")})


def test_vectors_may_come_after_documents_without_vectors_were_removed() -> None:
    corpus = Corpus(turns())
    corpus.remove(["0", "5"])
    corpus.add([replace(turns()[0], vector=np.array([0.6, 0.8]))])
    similar = corpus.similarities(np.array([0.6, 0.8], np.float32))
    assert similar is not None
    assert similar.tolist() == pytest.approx([0.0] * 6 + [1.0], abs=_STEP)
