"""Chinese, and Chinese with English in it."""

import pytest

from recollect.memory.search import Corpus, Document, rank, understand
from recollect.memory.search.embedders import LocalEmbedder
from recollect.memory.texts.terms import terms

from .chinese import ASKED, SAID
from .conversations import ask


def corpus_of(embedder: LocalEmbedder | None = None) -> Corpus:
    vectors = [None] * len(SAID) if embedder is None else list(embedder.embed_now(SAID))
    return Corpus(
        Document(str(place), text, speaker="user", vector=vector)
        for place, (text, vector) in enumerate(zip(SAID, vectors, strict=True))
    )


def test_the_answers_are_among_the_first_five(local: LocalEmbedder) -> None:
    corpus = corpus_of(local)
    found = 0
    for question, answer in ASKED:
        query = understand(question, corpus.speakers)
        hits = rank(query, corpus, local.embed_now([query.embedding_text])[0], limit=5).hits
        found += str(answer) in {hit.id for hit in hits}
    assert found / len(ASKED) >= 0.95


def test_most_answers_are_found_without_vectors() -> None:
    corpus = corpus_of()
    found = sum(str(answer) in {hit.id for hit in ask(asked, corpus, limit=5)} for asked, answer in ASKED)
    assert found / len(ASKED) >= 0.9


@pytest.mark.parametrize(
    ("question", "answer"),
    [("猫", "馒头"), ("过敏", "花生"), ("screenshot", "Python"), ("KEVIN", "Kevin"), ("Ｋｅｖｉｎ", "Kevin")],
)
def test_one_or_two_characters_and_words_in_between_are_found(question: str, answer: str) -> None:
    corpus = corpus_of()
    assert any(answer in SAID[int(hit.id)] for hit in ask(question, corpus))


def test_terms_are_stems_and_pairs_of_characters() -> None:
    assert terms("She moves to 北京大学 now") == ["she", "move", "to", "北京", "京大", "大学", "now"]
    assert terms("猫") == ["猫"]
