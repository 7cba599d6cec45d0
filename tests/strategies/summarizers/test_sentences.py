"""Where texts are cut, in English and Chinese."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.items import estimate_text_tokens
from recollect.strategies.summarizers.sentences import (
    clip,
    cut_to_fit,
    prefix_within,
    split_sentences,
)

from .kit import thorough

TEXTS = st.text(st.sampled_from("ab .!?。！世界\n…") | st.characters(exclude_categories=["Cs"]), max_size=200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It costs 3.14 euros. Really.", ["It costs 3.14 euros.", "Really."]),
        (
            "Ask Dr. Smith or J. Doe, e.g. today. Then go.",
            ["Ask Dr. Smith or J. Doe, e.g. today.", "Then go."],
        ),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("See example.com/a.b for it", ["See example.com/a.b for it"]),
        ("你好。我叫小明！你呢？好", ["你好。", "我叫小明！", "你呢？", "好"]),
        ("他说：“走吧。”然后走了。", ["他说：“走吧。”", "然后走了。"]),
        ("a line\nanother\n\n- a point", ["a line", "another", "- a point"]),
        ("Wait... what?! Yes", ["Wait...", "what?!", "Yes"]),
        ("", []),
        (" \n . \n", ["."]),
    ],
)
def test_sentences_are_found(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


@thorough
@given(TEXTS)
def test_sentences_have_all_that_the_text_has(text: str) -> None:
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@thorough
@given(TEXTS, st.integers(1, 60), st.booleans())
def test_a_cut_text_fits_and_says_so(text: str, limit: int, is_whole: bool) -> None:
    cut = cut_to_fit(text, limit, is_whole=is_whole)
    assert estimate_text_tokens(cut) <= limit
    if is_whole and estimate_text_tokens(text) <= limit:
        assert cut == text
    else:
        kept = cut.removesuffix(" [cut to fit]") if cut.endswith(" [cut to fit]") else cut.removesuffix("…")
        assert kept != cut
        assert text.startswith(kept)


@thorough
@given(TEXTS, st.integers(1, 60))
def test_a_clipped_text_fits(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert estimate_text_tokens(clipped) <= limit
    assert clipped == text or text.startswith(clipped.removesuffix("…"))


@thorough
@given(TEXTS, st.integers(-2, 60))
def test_the_prefix_is_the_longest_that_fits(text: str, limit: int) -> None:
    size = prefix_within(text, limit)
    assert size == 0 or estimate_text_tokens(text[:size]) <= limit
    assert size == len(text) or estimate_text_tokens(text[: size + 1]) > limit


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (16, "First it rained. Then it was 3.14 degrees. [cut to fit]"),
        (9, "First it rained…"),
        (5, "First it rained.…"),
        (2, "Firs…"),
        (1, "…"),
    ],
)
def test_a_text_is_cut_at_the_end_of_a_sentence_or_of_a_word(limit: int, expected: str) -> None:
    text = "First it rained. Then it was 3.14 degrees. Later on nobody remembered what it was all about."
    cut = cut_to_fit(text, limit)
    assert estimate_text_tokens(cut) <= limit
    assert cut.replace(".…", "…") == expected.replace(".…", "…")
