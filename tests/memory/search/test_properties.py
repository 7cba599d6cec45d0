"""Properties that hold for every query and every corpus."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.memory.search import Corpus, Document, Weights, rank, understand

WORDS = st.sampled_from(
    [
        "tram",
        "cello",
        "Ada",
        "may",
        "in June 2023",
        "何时",
        "猫",
        "小猫",
        "?",
        "2023",
        '"a b"',
        "I",
        "you",
        "latest",
        "\ud800",
    ]
)
TEXTS = st.one_of(st.text(max_size=40), st.lists(WORDS, max_size=8).map(" ".join))
NUMBERS = st.floats(width=32) | st.sampled_from([0.0, 1.0, -1.0])
VECTORS = st.none() | st.lists(NUMBERS, max_size=4)


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    count = draw(st.integers(0, 8))
    return [
        Document(
            str(number),
            draw(TEXTS),
            speaker=draw(st.sampled_from([None, "Ada", "user", "", "何"])),
            session=draw(st.sampled_from([None, "a", "b"])),
            position=draw(st.integers(-2, 5)),
            time=draw(st.none() | st.datetimes()),
            vector=draw(VECTORS),
        )
        for number in range(count)
    ]


def vector_of(given: list[float] | None) -> Any:
    return None if given is None else np.array(given, np.float32)


@settings(max_examples=150, deadline=None)
@given(question=TEXTS, said=documents(), vector=VECTORS)
def test_every_hit_has_a_chance_and_finite_parts_in_the_order_of_the_hits(
    question: str, said: list[Document], vector: list[float] | None
) -> None:
    corpus = Corpus(said)
    query = understand(question, corpus.speakers)
    found = rank(query, corpus, vector_of(vector), limit=5)
    hits = found.hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.id for hit in hits}) == len(hits) <= 5
    assert 0 <= found.relevance <= 1
    totals = [math.fsum(hit.parts.values()) for hit in hits]
    assert all(after <= before + 1e-9 for before, after in pairwise(totals))
    for hit in hits:
        assert 0 <= hit.score <= found.relevance
        assert all(math.isfinite(part) for part in hit.parts.values())
        start, end = hit.passage
        assert 0 <= start <= end <= len(said[int(hit.id)].text)


@settings(max_examples=100, deadline=None)
@given(question=TEXTS, said=documents(), cut=st.integers(0, 8), vector=VECTORS)
def test_adding_is_the_same_as_building_anew(
    question: str, said: list[Document], cut: int, vector: list[float] | None
) -> None:
    at_once, grown = Corpus(said), Corpus(said[:cut])
    rank(understand(question, grown.speakers), grown, vector_of(vector))
    grown.add(said[cut:])
    query = understand(question, at_once.speakers)
    assert rank(query, grown, vector_of(vector)) == rank(query, at_once, vector_of(vector))


@settings(max_examples=100, deadline=None)
@given(question=TEXTS, said=documents(), gone=st.sets(st.integers(0, 7)), vector=VECTORS)
def test_removing_is_the_same_as_building_without(
    question: str, said: list[Document], gone: set[int], vector: list[float] | None
) -> None:
    shrunk = Corpus(said, dimensions=2)
    shrunk.remove({str(number) for number in gone})
    left = Corpus((each for each in said if int(each.id) not in gone), dimensions=2)
    query = understand(question, left.speakers)
    assert rank(query, shrunk, vector_of(vector)) == rank(query, left, vector_of(vector))
    assert set(shrunk.speakers) == set(left.speakers)


@settings(max_examples=60, deadline=None)
@given(question=TEXTS, said=documents(), part=st.sampled_from(sorted(vars(Weights()))))
def test_each_part_can_be_switched_off(question: str, said: list[Document], part: str) -> None:
    corpus = Corpus(said)
    hits = rank(understand(question, corpus.speakers), corpus, weights=Weights().without(part)).hits
    assert all(part not in hit.parts for hit in hits)
