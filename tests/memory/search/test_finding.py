"""A search from question to hits, also with an embedder that is down, slow or returns nonsense."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

from recollect.memory.search import Corpus, find, rank, understand
from recollect.memory.search.embedders import CallableEmbedder, LocalEmbedder
from recollect.testing.contract import in_event_loop

from .conversations import turns

QUESTION = "Who has a dog?"


def embedded(local: LocalEmbedder) -> Corpus:
    vectors = local.embed_now([turn.text for turn in turns()])
    return Corpus(replace(turn, vector=vector) for turn, vector in zip(turns(), vectors, strict=True))


@in_event_loop
async def test_the_meaning_finds_what_no_word_does(local: LocalEmbedder) -> None:
    corpus = embedded(local)
    assert rank(understand(QUESTION, corpus.speakers), corpus).hits == ()
    found = await find(QUESTION, corpus, local, limit=2)
    assert {hit.id for hit in found.hits} == {"3", "7"}
    assert found.warnings == ()


async def never(_: Sequence[str]) -> Any:
    await asyncio.Event().wait()


def broken(_: Sequence[str]) -> Any:
    raise ConnectionError("a secret place")


@pytest.mark.parametrize(
    ("function", "warning"),
    [
        (broken, "found by words alone: the embedder 'other' raised ConnectionError"),
        (never, "found by words alone: other gave no vector within 0.01 s"),
        (lambda _: [[1.0]], "found by words alone: the embedder returned vectors of 1 dimensions"),
        (
            lambda _: [[np.nan] * 512],
            "found by words alone: the embedder returned vectors with values",
        ),
        (lambda _: [], "found by words alone: the embedder returned an array of 1 dimensions for 1 texts"),
    ],
)
@in_event_loop
async def test_without_a_vector_it_is_found_by_words_and_that_is_told(
    local: LocalEmbedder, function: Any, warning: str
) -> None:
    corpus = embedded(local)
    embedder = CallableEmbedder(function, name="other", dimensions=512)
    patience = 0.01 if function is never else 60
    found = await find("Where is my greyhound?", corpus, embedder, patience=patience)
    assert found.warnings[0].startswith(warning)
    assert found.hits == (await find("Where is my greyhound?", corpus)).hits
    assert {hit.id for hit in found.hits[:2]} == {"3", "7"}


@in_event_loop
async def test_vectors_of_another_embedder_are_not_compared_and_that_is_told(local: LocalEmbedder) -> None:
    embedder = CallableEmbedder(lambda _: [[1.0, 0.0]], name="small", dimensions=2)
    found = await find("greyhound", embedded(local), embedder)
    assert found.warnings == ("found by words alone: the vectors are not those of small",)
    assert all("vector" not in hit.parts for hit in found.hits)


@in_event_loop
async def test_documents_that_have_no_vector_yet_are_counted(local: LocalEmbedder) -> None:
    corpus = Corpus(turns()[:2])
    corpus.add([replace(turns()[3], vector=local.embed_now([turns()[3].text])[0])])
    assert (await find(QUESTION, corpus, local)).warnings == ("2 of 3 documents have no vector yet",)


@pytest.mark.parametrize("question", ["", "?!", "🙂"])
@in_event_loop
async def test_nothing_to_look_for_asks_nobody(question: str) -> None:
    embedder = CallableEmbedder(broken, name="other", dimensions=2)
    found = await find(question, Corpus(turns()), embedder)
    assert (found.hits, found.warnings) == ((), ())


@in_event_loop
async def test_yesterday_is_the_day_before_today() -> None:
    found = await find("What did I hear yesterday?", Corpus(turns()), today=date(2023, 10, 3))
    assert {hit.id for hit in found.hits if "date" in hit.parts} == {"4", "5", "6", "7"}
