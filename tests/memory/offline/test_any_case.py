"""Patterns that ignore the case find the same as those of `re`, in texts of any script."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.facts.health import _HEALTH
from recollect.memory.offline.dates import _FUTURE, _PAST
from recollect.memory.offline.requests import _TASKS
from recollect.memory.offline.worth import _TASTE
from recollect.memory.texts.any_case import AnyCase

_TEXT = "i my Can you please Help me plan was DIABETIC will not 过敏 favourite it’s ago walked ÇA 怎么 why?"
_WORDS = _TEXT.split(" ")
_PATTERNS = [_HEALTH, _FUTURE, _PAST, _TASKS, _TASTE]


@pytest.mark.parametrize("pattern", _PATTERNS)
@given(
    words=st.lists(st.sampled_from(_WORDS), max_size=8), change=st.sampled_from([str, str.upper, str.title])
)
def test_it_finds_what_re_finds(pattern: AnyCase, words: list[str], change: type) -> None:
    text = change(" ".join(words))
    assert pattern.search(text) is (pattern._whole.search(text) is not None)


def test_capitals_in_escapes_and_names_are_kept() -> None:
    found = AnyCase(r"(?P<Who>I|We)\S\W[A-Z]\b", "我")
    for text in ("we! a", "xWEy aZ", "Ix b", "我"):
        whole = re.search(r"(?P<Who>I|We)\S\W[A-Z]\b|我", text, re.IGNORECASE)
        assert found.search(text) is (whole is not None)
