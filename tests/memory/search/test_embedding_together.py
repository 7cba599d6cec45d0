"""Texts of concurrent callers that are embedded together."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from recollect.memory.search.documents import Vectors
from recollect.memory.search.embedders.local import local_embedder
from recollect.memory.search.embedders.together import TextsTogether


class Lengths:
    """A model whose vectors are the lengths of texts, and that refuses one text."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        if "bad" in texts:
            raise ValueError("a text that it refuses")
        return np.array([[len(text)] for text in texts], np.float32).reshape(len(texts), 1)


async def ask(together: TextsTogether, *questions: Sequence[str]) -> list[object]:
    found = await asyncio.gather(*map(together.embed, questions), return_exceptions=True)
    return [each if isinstance(each, BaseException) else each.ravel().tolist() for each in found]


def test_callers_of_a_cycle_share_a_batch_and_get_their_own_vectors() -> None:
    model = Lengths()
    found = asyncio.run(ask(TextsTogether(model), ["a"], ["bb", "ccc"], [], ["dddd"]))
    assert found == [[1], [2, 3], [], [4]]
    assert model.batches == [["a", "bb", "ccc", "dddd"]]


def test_many_callers_leave_the_event_loop_in_between() -> None:
    model = Lengths()
    found = asyncio.run(ask(TextsTogether(model), *([str(number)] for number in range(40))))
    assert found == [[len(str(number))] for number in range(40)]
    assert [len(batch) for batch in model.batches] == [16, 16, 8]


def test_a_text_that_cannot_be_embedded_fails_its_caller_only() -> None:
    model = Lengths()
    one, refused, other = asyncio.run(ask(TextsTogether(model), ["a"], ["bad"], ["bb"]))
    assert (one, other) == ([1], [2])
    assert isinstance(refused, ValueError)


def test_a_caller_that_was_cancelled_costs_nothing() -> None:
    model = Lengths()

    async def run() -> list[object]:
        together = TextsTogether(model)
        gone = asyncio.create_task(together.embed(["gone"]))
        await asyncio.sleep(0)
        gone.cancel()
        return await ask(together, ["a"])

    assert asyncio.run(run()) == [[1]]
    assert model.batches == [["a"]]


def test_each_event_loop_has_its_own_batches() -> None:
    together = TextsTogether(Lengths())
    assert [asyncio.run(ask(together, ["a"])) for _ in range(3)] == [[[1]]] * 3


def test_vectors_do_not_depend_on_who_else_asks() -> None:
    embedder = local_embedder()
    embedder.embed_now(["loaded"])
    texts = ["Where does she live?", "她住在哪里？", "my dog", "the price of a kiln in euros"]

    async def together() -> list[Vectors]:
        return await asyncio.gather(*(embedder.embed([text]) for text in texts))

    for text, vector in zip(texts, asyncio.run(together()), strict=True):
        assert vector == pytest.approx(embedder.embed_now([text]), abs=1e-6)
