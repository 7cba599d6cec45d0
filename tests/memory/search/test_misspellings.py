"""Misspellings are found by the hashes of all words at one edit, which are never made."""

import random
import string

import numpy as np
import pytest

from recollect.memory.search.misspellings import LONGEST, known_edits
from recollect.memory.search.records import Terms, hashes_of

LETTERS = string.ascii_lowercase + string.digits


def all_edits(word: str) -> set[str]:
    """All words at one edit, one by one."""
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    found = {head + tail[1:] for head, tail in cuts if tail}
    found |= {head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1}
    found |= {head + letter + tail[1:] for head, tail in cuts if tail for letter in LETTERS}
    found |= {head + letter + tail for head, tail in cuts for letter in LETTERS}
    return found - {word}


def edits_among(word: str, known: set[str]) -> list[str]:
    hashes = hashes_of(known)

    def has(wanted: Terms) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        return np.isin(wanted, hashes)

    return known_edits(word, has)


@pytest.mark.parametrize("word", ["a", "on", "aaa", "kitten", "7up", "x" * LONGEST, "unbelievable"])
def test_every_word_at_one_edit_is_found(word: str) -> None:
    everything = all_edits(word)
    assert edits_among(word, everything) == sorted(everything)


def test_nothing_but_edits_that_exist_is_found() -> None:
    chance = random.Random(5)
    words = {"".join(chance.choices("abc", k=chance.randint(3, 6))) for _ in range(300)}
    for word in sorted(words):
        assert edits_among(word, words) == sorted(all_edits(word) & words)
