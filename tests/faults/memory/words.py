"""Words that nobody has used before, so that what was said can be found wherever it went."""

import re
from collections.abc import Iterable

_LETTERS = "bcdfghjkmn"  # no vowels: no stemmer shortens such a word
WORD = re.compile(r"zq[bcdfghjkmn]+")


def word_of(client: int, life: int, task: int, number: int) -> str:
    """The word of one text."""
    digits = f"{client:02d}{life:04d}{task:02d}{number:06d}"
    return "zq" + "".join(_LETTERS[int(digit)] for digit in digits)


def words_in(texts: Iterable[str]) -> set[str]:
    """All such words in texts."""
    return {word for text in texts for word in WORD.findall(text)}
