"""Texts are cut into passages that cover them, at sentences, with code apart."""

import string
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.search.passages import MOST, Passage, split

SENTENCE = "The deployment uses three small servers in Lisbon. "
CODE = "```python\n" + "print('hello')\n" * 10 + "```"


def test_a_short_text_is_one_passage() -> None:
    assert split("I moved to Lisbon. I love it.") == [Passage(0, 29)]
    assert split("") == [Passage(0, 0)]


def test_a_long_text_is_cut_after_sentences() -> None:
    text = SENTENCE * 30
    pieces = [text[each.start : each.end] for each in split(text)]
    assert len(pieces) == 3
    assert all(piece.startswith("The ") and piece.endswith("Lisbon.") for piece in pieces)
    assert " ".join(pieces) == text.strip()


def test_chinese_sentences_end_without_a_space() -> None:
    text = "我昨天在里斯本买了三台服务器。" * 80
    assert all(text[each.start : each.end].endswith("。") for each in split(text))
    assert len(split(text)) > 1


def test_code_is_apart() -> None:
    text = f"{SENTENCE * 8}\n\n{CODE}\n\n{SENTENCE * 8}"
    found = split(text)
    assert [each.is_code for each in found] == [False, True, False]
    assert text[found[1].start : found[1].end] == CODE


def test_code_without_an_end_reaches_to_the_end() -> None:
    found = split(f"{SENTENCE * 15}\n```python\nx = 1\ny = 2")
    assert found[-1].is_code


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE * 5000,
        "x" * 200_000,
        "\n" * 100_000,
        f"{CODE}\n" * 500,
        "```\n" * 20_000,
        "a. " * 50_000,
        f"{SENTENCE}\n{CODE}\n" * 40,
    ],
    ids=["sentences", "no spaces", "lines", "code", "fences", "short", "mixed"],
)
def test_a_text_has_no_more_passages_than_allowed(text: str) -> None:
    found = split(text)
    assert 1 <= len(found) <= MOST


@given(st.text(alphabet=string.ascii_letters + " .\n`?。", max_size=5000))
def test_passages_cover_all_but_white_space(text: str) -> None:
    found = split(text)
    assert [each.start for each in found] == sorted(each.start for each in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    covered = "".join(text[each.start : each.end] for each in found)
    assert "".join(covered.split()) == "".join(text.split())
