"""The terms of a text: stems of words, and pairs of neighbouring characters where words are not set apart.

English words are reduced to their stems, so that "moved" is found by "moving". Chinese, Japanese and Korean
text is cut into every two neighbouring characters, so that any two characters of it are found.
"""

import re
import threading
import unicodedata
from functools import lru_cache

import snowballstemmer

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+(?:['’][^\\W\\d_{_CJK}]+)?")
_IS_CJK = re.compile(f"[{_CJK}]")
_LONGEST = 64  # characters of a word; nothing in any language is longer
_stemmer = snowballstemmer.stemmer("english")
_stemming = threading.Lock()  # a stemmer keeps the word it works on in itself


def terms(text: str) -> list[str]:
    """The terms of a text, in its order, with repetitions."""
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).lower()):
        word = match.group()
        if _IS_CJK.match(word):
            found += pairs(word)
        else:
            found.append(stem(word[:_LONGEST]))
    return found


def pairs(word: str) -> list[str]:
    """Every two neighbouring characters; a single character is itself."""
    return [word[place : place + 2] for place in range(max(1, len(word) - 1))]


def characters(text: str) -> list[str]:
    """The single characters of what `terms` cuts into pairs, for a question that has but one."""
    return _IS_CJK.findall(unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of an English word; others stay as they are, or nearly."""
    with _stemming:
        return str(_stemmer.stemWord(word.replace("’", "'").removesuffix("'s")))
