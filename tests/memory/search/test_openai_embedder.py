"""Vectors over HTTP, with the real client."""

import asyncio
import math
import threading
from typing import Any

import numpy as np
import openai
import pytest

from recollect.memory.search.embedders import EmbeddingError, OpenAIEmbedder
from recollect.memory.search.embedders.openai import ConcurrencyLimiter
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    CloseBefore,
    Fault,
    Garble,
    Overloaded,
    ProviderServer,
    Refuse,
    Stall,
    Truncate,
    WrongKey,
    vector_of,
)

EMBED = "POST /v1/embeddings"


def embedder_of(server: ProviderServer, **options: Any) -> OpenAIEmbedder:
    given = {"base_url": server.base_url, "api_key": server.api_key, "max_retries": 0, **options}
    return OpenAIEmbedder(**given)


@in_event_loop
async def test_vectors_come_in_the_order_of_the_texts(server: ProviderServer) -> None:
    embedder = embedder_of(server)
    vectors = await embedder.embed(["hello", "世界"])
    assert vectors.shape == (2, 1536)
    assert vectors[1] == pytest.approx(np.array(vector_of("世界", 1536)), abs=1e-6)
    assert server.requests()[0].body["model"] == "text-embedding-3-small"
    await embedder.aclose()


@in_event_loop
async def test_no_text_is_no_request(server: ProviderServer) -> None:
    assert (await embedder_of(server).embed([])).shape == (0, 1536)
    assert server.requests() == []


@in_event_loop
async def test_many_texts_go_in_several_requests(server: ProviderServer) -> None:
    embedder = embedder_of(server, dimensions=4)
    texts = [f"text {number}" for number in range(600)]
    vectors = await embedder.embed(texts)
    assert [len(request.body["input"]) for request in server.requests()] == [256, 256, 88]
    assert vectors[599] == pytest.approx(np.array(vector_of("text 599", 4)), abs=1e-6)
    await embedder.aclose()


@in_event_loop
async def test_long_and_empty_texts_are_made_such_that_the_api_takes_them(server: ProviderServer) -> None:
    embedder = embedder_of(server, dimensions=4)
    vectors = await embedder.embed(["", "x" * 1_000_000, "汉" * 20_000, "\ud800"])
    assert vectors.shape == (4, 4)
    assert max(map(len, server.requests()[0].body["input"])) == 8_000
    await embedder.aclose()


def test_a_shortened_vector_has_another_name(server: ProviderServer) -> None:
    assert embedder_of(server).name == "text-embedding-3-small@1536"
    assert embedder_of(server, dimensions=256).name == "text-embedding-3-small@256"


@in_event_loop
async def test_only_models_that_can_shorten_are_asked_to(server: ProviderServer) -> None:
    embedder = embedder_of(server, model="text-embedding-ada-002")
    assert (await embedder.embed(["hello"])).shape == (1, 1536)
    assert "dimensions" not in server.requests()[0].body
    await embedder.aclose()


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (Refuse(500), openai.InternalServerError),
        (Refuse(429), openai.RateLimitError),
        (Overloaded(), openai.APIStatusError),
        (WrongKey(), openai.AuthenticationError),
        (CloseBefore(), openai.APIConnectionError),
        (Garble(), Exception),
        (Truncate(), Exception),
    ],
)
@in_event_loop
async def test_a_fault_of_the_api_is_the_cause_of_one_clear_error(
    server: ProviderServer, fault: Fault, cause: type[Exception]
) -> None:
    server.fail_next(EMBED, fault)
    embedder = embedder_of(server, dimensions=4)
    with pytest.raises(EmbeddingError) as raised:
        await embedder.embed(["a secret"])
    assert isinstance(raised.value.__cause__, cause)
    assert "secret" not in str(raised.value)
    assert (await embedder.embed(["a secret"])).shape == (1, 4), "and then it works again"
    await embedder.aclose()


@in_event_loop
async def test_a_server_that_stalls_is_given_up(server: ProviderServer) -> None:
    let_go = threading.Event()
    server.fail_next(EMBED, Stall(let_go))
    embedder = embedder_of(server, timeout=0.2)
    with pytest.raises(EmbeddingError, match="no vectors from text-embedding-3-small: APITimeoutError"):
        await embedder.embed(["hello"])
    let_go.set()
    await embedder.aclose()


@pytest.mark.parametrize(
    ("vector", "complaint"),
    [([1.0, 2.0], "vectors of 2 dimensions, and 4 are expected"), ([math.nan] * 4, "not numbers")],
)
@in_event_loop
async def test_vectors_that_cannot_be_used_are_refused(
    server: ProviderServer, vector: list[float], complaint: str
) -> None:
    server.embeddings.embed_with(lambda _text, _dimensions: vector)
    embedder = embedder_of(server, dimensions=4)
    with pytest.raises(EmbeddingError, match=complaint):
        await embedder.embed(["hello"])
    await embedder.aclose()


@in_event_loop
async def test_no_more_are_let_in_than_allowed_and_all_get_their_turn() -> None:
    limiter, inside, seen = ConcurrencyLimiter(2), set[int](), []

    async def come_in(number: int) -> None:
        async with limiter.slot():
            inside.add(number)
            await asyncio.sleep(0)
            seen.append(len(inside))
            inside.remove(number)

    await asyncio.gather(*map(come_in, range(7)))
    assert (len(seen), max(seen)) == (7, 2)


@in_event_loop
async def test_more_callers_than_requests_are_allowed_are_all_answered(server: ProviderServer) -> None:
    embedder = embedder_of(server, dimensions=4, max_concurrent=2)
    texts = [f"text {number}" for number in range(7)]
    answers = await asyncio.gather(*(embedder.embed([text]) for text in texts))
    for text, vectors in zip(texts, answers, strict=True):
        assert vectors[0] == pytest.approx(np.array(vector_of(text, 4)), abs=1e-6)
    await embedder.aclose()


def test_one_request_at_least_must_be_allowed(server: ProviderServer) -> None:
    with pytest.raises(ValueError, match="max_concurrent must be at least 1, and it is 0"):
        embedder_of(server, max_concurrent=0)


def test_an_embedder_works_in_one_event_loop_after_another(server: ProviderServer) -> None:
    embedder = embedder_of(server, dimensions=4, max_concurrent=1)
    for _ in range(2):
        assert asyncio.run(embedder.embed(["hello"])).shape == (1, 4)


@in_event_loop
async def test_a_client_that_is_given_stays_open(server: ProviderServer) -> None:
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key=server.api_key) as client:
        embedder = OpenAIEmbedder(client=client)
        await embedder.embed(["hello"])
        await embedder.aclose()
        assert not client.is_closed()
