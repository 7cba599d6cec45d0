"""Texts that go to a model and come from one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.models.text import strip_thoughts, to_valid_unicode


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters() | st.sampled_from("\ud83d\ude00\udfff"), max_size=50))
def test_texts_are_made_valid(text: str) -> None:
    valid = to_valid_unicode(text)
    valid.encode()
    assert to_valid_unicode(valid) == valid
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert valid == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An answer.", "An answer."),
        ("\n<think>Hm.</think>\nAn answer.", "\nAn answer."),
        ("An answer <think>Hm.</think>", "An answer <think>Hm.</think>"),
        ("<think>Hm.</think>", ""),
        ("<think>Hm.", None),
    ],
)
def test_thoughts_are_stripped_at_the_start_only(text: str, expected: str | None) -> None:
    assert strip_thoughts(text) == expected
