"""The Embeddings API: vectors that can be relied on, in both encodings."""

import math
from typing import Any

import openai
import pytest

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, vector_of

from .clients import client_of, sync_client_of

SMALL = "text-embedding-3-small"


def embed(server: ProviderServer, given: Any, **more: Any) -> Any:
    with sync_client_of(server) as client:
        return client.embeddings.create(**{"model": SMALL, "input": given, **more})


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_a_text_has_always_the_same_vector_of_unit_length(server: ProviderServer, encoding: str) -> None:
    first = embed(server, "hello 世界", encoding_format=encoding)
    again = embed(server, ["another", "hello 世界"], encoding_format=encoding)
    assert first.data[0].embedding == again.data[1].embedding
    assert again.data[0].embedding != again.data[1].embedding
    if encoding == "float":
        assert len(first.data[0].embedding) == 1536
        assert math.isclose(math.hypot(*first.data[0].embedding), 1.0)
    else:
        assert isinstance(first.data[0].embedding, str), "who asks for it gets it as it is on the wire"


@in_event_loop
async def test_the_clients_default_encoding_gives_the_same_vectors(server: ProviderServer) -> None:
    async with client_of(server) as client:
        answer = await client.embeddings.create(model=SMALL, input=["a", "b"])
    assert server.requests()[0].body["encoding_format"] == "base64"
    assert [entry.index for entry in answer.data] == [0, 1]
    for entry, text in zip(answer.data, "ab", strict=True):
        assert entry.embedding == pytest.approx(vector_of(text, 1536), abs=1e-6)


@pytest.mark.parametrize(
    ("model", "asked", "given"),
    [
        (SMALL, None, 1536),
        (SMALL, 256, 256),
        ("text-embedding-3-large", None, 3072),
        ("text-embedding-3-large", 3072, 3072),
        ("text-embedding-ada-002", None, 1536),
        ("any-other", 8, 8),
    ],
)
def test_vectors_have_as_many_dimensions_as_asked_for(
    server: ProviderServer, model: str, asked: int | None, given: int
) -> None:
    more = {} if asked is None else {"dimensions": asked}
    answer = embed(server, "hello", model=model, encoding_format="float", **more)
    assert len(answer.data[0].embedding) == given
    assert (answer.model, answer.object) == (model, "list")
    assert math.isclose(math.hypot(*answer.data[0].embedding), 1.0)


def test_a_shorter_vector_is_the_beginning_of_the_longer_one() -> None:
    short, long = vector_of("hello", 8), vector_of("hello", 64)
    ratio = short[0] / long[0]
    assert short == pytest.approx([ratio * value for value in long[:8]])


def test_usage_counts_the_tokens_of_all_texts(server: ProviderServer) -> None:
    usage = embed(server, ["x" * 40, "世界"]).usage
    assert (usage.prompt_tokens, usage.total_tokens) == (12, 12)


def test_tokens_can_be_embedded_too(server: ProviderServer) -> None:
    one = embed(server, [1, 2, 3], encoding_format="float")
    two = embed(server, [[1, 2, 3], [4]], encoding_format="float")
    assert (len(one.data), len(two.data)) == (1, 2)
    assert one.data[0].embedding == two.data[0].embedding


def test_a_test_can_say_what_the_vectors_are(server: ProviderServer) -> None:
    server.embeddings.embed_with(lambda text, dimensions: [float(len(text))] * dimensions)
    assert embed(server, "four", dimensions=2).data[0].embedding == [4.0, 4.0]
    server.reset()
    assert embed(server, "four", dimensions=2, encoding_format="float").data[0].embedding == vector_of(
        "four", 2
    )


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": "hi"}, "model"),
        ({"model": SMALL}, "input"),
        ({"model": SMALL, "input": ""}, "input"),
        ({"model": SMALL, "input": []}, "input"),
        ({"model": SMALL, "input": ["a", ""]}, "input"),
        ({"model": SMALL, "input": ["a", 5]}, "input"),
        ({"model": SMALL, "input": {"a": 1}}, "input"),
        ({"model": SMALL, "input": ["x"] * 2049}, "input"),
        ({"model": SMALL, "input": "世" * 8193}, "input"),
        ({"model": SMALL, "input": "hi", "dimensions": 0}, "dimensions"),
        ({"model": SMALL, "input": "hi", "dimensions": 1537}, "dimensions"),
        ({"model": "text-embedding-ada-002", "input": "hi", "dimensions": 8}, "dimensions"),
        ({"model": SMALL, "input": "hi", "encoding_format": "hex"}, "encoding_format"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_bad_request_is_refused(server: ProviderServer, body: dict[str, Any], param: str) -> None:
    with sync_client_of(server) as client, pytest.raises(openai.BadRequestError) as caught:
        client.post("/embeddings", cast_to=object, body=body)
    assert caught.value.param == param


def test_the_most_that_is_allowed_is_taken(server: ProviderServer) -> None:
    server.embeddings.embed_with(lambda _text, _dimensions: [1.0])
    assert len(embed(server, ["x"] * 2048).data) == 2048
    assert embed(server, "世" * 8192).usage.total_tokens == 8192
