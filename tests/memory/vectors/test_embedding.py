"""EmbeddingBackfill what is pending, with embedders that work and with those that do not."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from recollect.memory.database.vectors import model_of
from recollect.memory.pipeline.embedding_backfill import EmbeddingBackfill
from recollect.memory.search.documents import Vectors as Matrix
from recollect.memory.search.embedders import CallableEmbedder, Embedder, OpenAIEmbedder
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import Filtered, Overloaded, ProviderServer, Refuse, vector_of

from ..databases import Place
from .kit import add_entries, add_turns, direction_of, embedder, memory_of, vectors_of


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def embedding(store: MemoryStore, with_embedder: Embedder, **options: Any) -> EmbeddingBackfill:
    return EmbeddingBackfill(vectors_of(store), with_embedder, **options)


async def finish(work: EmbeddingBackfill) -> int:
    """Steps until nothing is left to do."""
    count = 0
    while made := await work.step():
        count += made
    return count


class Failing:
    """An embedder that does what it is told to, as often as it is told, and then works."""

    name, dimensions = "small", 8

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.asked: list[int] = []

    async def embed(self, texts: Sequence[str], /) -> Matrix:
        self.asked.append(len(texts))
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        made: Matrix = np.stack([direction_of(text) for text in texts]) if outcome is None else outcome
        return made


@in_event_loop
async def test_everything_that_is_pending_gets_its_vector(place: Place) -> None:
    async with place.open() as store:
        await add_entries(store, "ada", ["a", "b"])
        await add_turns(store, "ada", ["c", "d", "e"])
        work = embedding(store, embedder(), most_texts=2)
        assert await work.step() == 2
        assert await finish(work) == 3
        assert await vectors_of(store).count_pending(model_of(embedder())) == 0
        found = await vectors_of(store).nearest(
            "turn", direction_of("d"), model_of(embedder()), tenant="default", limit=1
        )
        assert found[0][1] == pytest.approx(1.0)


@in_event_loop
async def test_another_embedder_embeds_all_again(place: Place) -> None:
    async with place.open() as store:
        await add_turns(store, "ada", ["a", "b"])
        memory = await memory_of(store, "ada")
        await finish(embedding(store, embedder()))
        longer = embedder(lambda text: direction_of(text, 16), dimensions=16)  # under the same name
        assert await finish(embedding(store, longer)) == 2
        found = await vectors_of(store).read("turn", memory, model=model_of(longer))
        assert [len(vector) for vector in found.values()] == [16, 16]


@in_event_loop
async def test_batches_are_bounded_by_their_characters(file_place: Place) -> None:
    async with file_place.open() as store:
        await add_turns(store, "ada", ["x" * 40, "y" * 40, "z" * 40, "long" * 100])
        counting = Failing()
        assert await embedding(store, counting, most_characters=100).step() == 4
        assert counting.asked == [2, 1, 1]


@pytest.mark.parametrize(
    "outcome",
    [RuntimeError("secret words"), np.zeros((0, 8)), np.full((2, 8), np.nan), np.zeros((2, 4)), "nonsense"],
    ids=["raises", "too few", "not numbers", "wrong dimension", "no vectors"],
)
@in_event_loop
async def test_a_failing_embedder_is_left_alone_for_longer_each_time(
    file_place: Place, outcome: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with file_place.open() as store:
        await add_turns(store, "ada", ["secret words", "others"])
        clock = Clock()
        failing = Failing(*[outcome] * 6)
        work = embedding(store, failing, clock=clock)
        with caplog.at_level(logging.WARNING, "recollect.memory"):
            for failures, pause in ((1, 1.0), (2, 2.0), (3, 4.0)):
                assert await work.step() == 0
                assert (work.failures, work.pause) == (failures, pause)
                asked = len(failing.asked)
                assert await work.step() == 0, "it is not asked before the time"
                assert len(failing.asked) == asked
                clock.now += pause
        assert work.last_error is not None
        assert "secret" not in work.last_error + caplog.text
        assert await work.step() == 2
        assert (work.last_error, work.pause, work.unusable) == (None, 0.0, 0)


@in_event_loop
async def test_the_pause_is_bounded(file_place: Place) -> None:
    async with file_place.open() as store:
        await add_turns(store, "ada", ["a"])
        clock = Clock()
        work = embedding(store, Failing(*[RuntimeError()] * 100), clock=clock)
        for _ in range(12):
            await work.step()
            clock.now += work.pause
        await work.step()
        assert work.pause == 300.0


@in_event_loop
async def test_an_embedder_that_hangs_is_given_up_on(file_place: Place) -> None:
    async def hang(_: list[str]) -> None:
        await asyncio.Event().wait()

    async with file_place.open() as store:
        await add_turns(store, "ada", ["a"])
        hanging = CallableEmbedder(hang, name="small", dimensions=8)
        work = embedding(store, hanging, timeout=0.01)
        assert await work.step() == 0
        assert work.last_error == "the embedder raised TimeoutError"


@pytest.mark.parametrize("answer", ["raises", "not numbers", "wrong dimension"])
@in_event_loop
async def test_a_poisonous_text_does_not_hold_up_the_rest(
    place: Place, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    def made(text: str) -> Any:
        if "poison" not in text:
            return direction_of(text)
        if answer == "raises":
            raise RuntimeError(text)
        return np.full(8, np.nan) if answer == "not numbers" else direction_of(text, 7)

    texts = [*(f"text {number}" for number in range(9)), "poison one", "poison two"]
    async with place.open() as store:
        await add_turns(store, "ada", texts)
        work = embedding(store, embedder(made))
        with caplog.at_level(logging.WARNING, "recollect.memory"):
            assert await work.step() == 9
        assert (work.unusable, work.failures, work.pause) == (2, 0, 0.0)
        assert "poison" not in caplog.text
        assert await work.step() == 0, "it is not tried again"
        assert work.unusable == 2
        assert await embedding(store, embedder(name="another")).step() == 11


@in_event_loop
async def test_a_step_goes_on_past_texts_that_cannot_be_embedded(file_place: Place) -> None:
    async with file_place.open() as store:
        await add_turns(store, "ada", ["nothing", "nothing", "something"])
        flat = embedder(lambda text: np.zeros(8) if text == "nothing" else direction_of(text))
        work = embedding(store, flat, most_texts=1)
        assert await finish(work) == 1
        assert work.unusable == 2
        assert await vectors_of(store).count_pending(model_of(flat)) == 0


@in_event_loop
async def test_a_text_without_a_direction_has_no_vector(file_place: Place) -> None:
    async with file_place.open() as store:
        await add_turns(store, "ada", ["something", "nothing"])
        flat = embedder(lambda text: np.zeros(8) if text == "nothing" else direction_of(text))
        work = embedding(store, flat)
        assert await work.step() == 1
        assert work.unusable == 1
        assert await vectors_of(store).count_pending(model_of(flat)) == 0


@in_event_loop
async def test_what_is_deleted_while_it_is_embedded_is_left_out(place: Place) -> None:
    async with place.open() as store:
        ids = await add_entries(store, "ada", ["goes", "stays"])

        async def made(texts: list[str]) -> list[Any]:
            if "goes" in texts:
                await store.delete_entry(ids["goes"])
            return [direction_of(text) for text in texts]

        work = embedding(store, CallableEmbedder(made, name="small", dimensions=8))
        assert await work.step() == 1
        found = await vectors_of(store).read(
            "entry", await memory_of(store, "ada"), model=model_of(embedder())
        )
        assert list(found) == [ids["stays"]]


@in_event_loop
async def test_two_at_once_do_no_harm(shared_place: Place) -> None:
    async with shared_place.open() as store:
        await add_turns(store, "ada", [f"{number}" for number in range(40)])
        works = [embedding(store, embedder(), most_texts=10) for _ in range(3)]
        assert sum(await asyncio.gather(*map(finish, works))) == 40
        assert await vectors_of(store).count_pending(model_of(embedder())) == 0


# --- OpenAI's ---


def openai_at(server: ProviderServer, **options: Any) -> OpenAIEmbedder:
    return OpenAIEmbedder(base_url=server.base_url, api_key=server.api_key, max_retries=0, **options)


@pytest.mark.parametrize("fault", [Overloaded(), Refuse(500), Refuse(429, retry_after=1)], ids=repr)
@in_event_loop
async def test_a_provider_that_is_down_for_a_while_is_asked_again(file_place: Place, fault: Any) -> None:
    with ProviderServer() as server:
        for _ in range(2):  # the batch, and what is asked to see whether anything works
            server.fail_next("POST /v1/embeddings", fault)
        async with file_place.open() as store:
            await add_turns(store, "ada", ["a", "b"])
            clock = Clock()
            openai = openai_at(server)
            work = embedding(store, openai, clock=clock)
            assert await work.step() == 0
            assert work.failures == 1
            clock.now += work.pause
            assert await work.step() == 2
            asked = np.array(vector_of("a", 1536), np.float32)
            found = await vectors_of(store).nearest("turn", asked, model_of(openai), tenant="default")
            assert found[0][1] == pytest.approx(1.0)
            await openai.aclose()


@in_event_loop
async def test_a_text_that_a_provider_refuses_once_is_tried_again(file_place: Place) -> None:
    with ProviderServer() as server:
        async with file_place.open() as store:
            await add_turns(store, "ada", ["refused"])
            openai = openai_at(server)
            work = embedding(store, openai)
            server.fail_next("POST /v1/embeddings", Filtered())
            assert await work.step() == 1, "it was refused once, and not a second time"
            assert work.unusable == 0
            await openai.aclose()


@in_event_loop
async def test_a_provider_that_gives_other_dimensions_is_never_believed(file_place: Place) -> None:
    with ProviderServer() as server:
        server.embeddings.embed_with(lambda text, _: vector_of(text, 100))
        async with file_place.open() as store:
            await add_turns(store, "ada", ["a"])
            openai = openai_at(server)
            work = embedding(store, openai)
            assert await work.step() == 0
            assert "100 dimensions" in str(work.last_error)
            assert await vectors_of(store).count_pending(model_of(openai)) == 1
            await openai.aclose()
