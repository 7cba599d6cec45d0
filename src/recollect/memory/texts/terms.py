"""The terms of a text: stems of words, and pairs of characters in languages without spaces.

English words are reduced to their stems: "moved" is found by "moving". Chinese, Japanese and Korean text is
cut into all pairs of neighbouring characters.
"""

import re
import sys
import threading
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from .remembered import remember_list

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+(?:['’][^\\W\\d_{_CJK}]+)?")
_IS_CJK = re.compile(f"[{_CJK}]")
_LIGHT = frozenset(
    "的了是在和与與及吗嗎呢吧啊哪那这這个個些么麼什啥我你您他她它们們有会會要就都也还還很把被让讓给給对對"
    "从從到为為以於于其該该某呀嘛着過过得地はがをにでとのもへやかねよ"
)
_LONGEST = 64  # characters of a word
# It begins only where a word begins: otherwise the time would be quadratic in the length of a word.
_COMPOUND = re.compile(r"(?<![a-z0-9])[a-z0-9]++(?:[._/:-][a-z0-9]++)+|[a-z]\+\+|[a-z]#(?!\w)")
_IS_IDENTIFIER = re.compile(r"[0-9_+#]")  # "well-known" is two words
_stemming = threading.Lock()  # a stemmer stores its current word: it is not thread-safe


@remember_list
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


def search_terms(text: str) -> list[str]:
    """The terms of a text for search: also identifiers as a whole, such as `v0.6.2` or `C++`."""
    compounds = _COMPOUND.findall(unicodedata.normalize("NFKC", text).lower())
    return terms(text) + [each[:_LONGEST] for each in compounds if _IS_IDENTIFIER.search(each)]


def pairs(word: str) -> list[str]:
    """Every two neighbouring characters; a single character is itself."""
    return [word[place : place + 2] for place in range(max(1, len(word) - 1))]


def is_pair(term: str) -> bool:
    """Whether a term is a pair of characters of a language without spaces."""
    return len(term) == 2 and _IS_CJK.match(term) is not None


def has_light_character(pair: str) -> bool:
    """Whether a pair has a character that joins words and means little: of, the, is, I, you."""
    return pair[0] in _LIGHT or pair[-1] in _LIGHT


def characters(text: str) -> list[str]:
    """The single characters that `terms` cuts into pairs, for a query of one character."""
    return _IS_CJK.findall(unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """The stem of an English word. Words of other languages stay as they are, or nearly so."""
    with _stemming:
        return str(_stemmer().stemWord(word.replace("’", "'").removesuffix("'s")))


@cache
def _stemmer() -> Any:
    """The English stemmer. Its package is bypassed, which would load the stemmers of all languages."""
    found = find_spec("snowballstemmer")
    assert found is not None
    package = ModuleType("recollect_snowball")
    package.__path__ = list(found.submodule_search_locations or ())
    sys.modules[package.__name__] = package
    return import_module(f"{package.__name__}.english_stemmer").EnglishStemmer()
