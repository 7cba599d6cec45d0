"""Whether two sentences say something else of the same thing: "She lives in Leeds", "She lives in York".

Decided from the words alone, in any language: the sentences are equal but for one place, where each has its
own value. A word that only joins others ("in", "is", "of") belongs to what is said and not to the value, so
"lives in York" and "lives with two cats" are about different things.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache

from .synonyms import CJK_LIGHT, LIGHT
from .terms import stem

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(f"[{_CJK}]|[^\\W_{_CJK}]+(?:['’.,][^\\W_{_CJK}]+)*")
_IS_CJK = re.compile(f"[{_CJK}]")
_SAID_NOW = frozenset(map(stem, "now currently actually anymore today still already also just".split()))  # noqa: SIM905
_NOW = re.compile("现在|現在|目前|如今|今は|지금")
_COPULAS = frozenset(map(stem, "is are was were am be".split()))  # noqa: SIM905
_ARTICLES = frozenset({"the", "a", "an"})
_QUALITIES = frozenset(
    map(
        stem,
        "favorite favourite best worst type kind genre name nickname color colour size shape job role"  # noqa: SIM905
        " diet dish hobby sport instrument language subject status mood goal password passphrase code word"
        " pronouns".split(),
    )
)
"""Words for what has one value at a time: of these, plain words are values, too."""
_PLAIN = (False, False)  # the shape of a value without a number and a name
_LEAST_SHARED = 0.5  # of the tokens of the longer sentence
_FEWEST_SHARED = 3  # tokens, of which one must mean something
_SUBJECT = 2  # tokens that a subject has with its verb, at least
_LONGEST = 60  # tokens
_LONGEST_VALUE = 8  # tokens


def differ_in_value(a: str, b: str, asked: Collection[str] = ()) -> bool:
    """Whether two sentences are equal but for one value. Equal sentences do not differ.

    The value is never at the start, where the subject is: "Ada lives in Rome" and "Bo lives in Rome" are
    about different persons. `asked` are terms of a question: what only one of the sentences shares with it is
    no value either.
    """
    one, other = _tokens(a), _tokens(b)
    if one == other or not one or not other or max(len(one), len(other)) > _LONGEST:
        return False
    before = _common(one, other)
    after = _common(one[before:][::-1], other[before:][::-1])
    values = (one[before : len(one) - after], other[before : len(other) - after])
    shared = (*one[:before], *one[len(one) - after :])
    if len(shared) < max(_FEWEST_SHARED, _LEAST_SHARED * max(len(one), len(other))):
        return False
    if before and one[before - 1] in _COPULAS:
        shapes = {_shape(a, values[0]), _shape(b, values[1])}
        if len(shapes) > 1:
            return False  # "My dog is ill" says nothing of the name in "My dog is called Otto"
        if shapes == {_PLAIN} and _QUALITIES.isdisjoint(shared):
            return False  # a boat that is fast can be blue as well
    has_meaning = any(not _is_light(token) for token in shared)
    is_asked = any(token in asked and token not in shared for value in values for token in value)
    return (
        _follows_subject(one, before, after) and has_meaning and not is_asked and all(map(_is_value, values))
    )


def group_by_thing(sentences: Sequence[str], asked: Collection[str] = ()) -> list[list[int]]:
    """The places of sentences, those together that say something else of the same thing, in their order."""
    groups: list[list[int]] = []
    beginning: dict[tuple[str, ...], list[list[int]]] = {}
    for place, sentence in enumerate(sentences):
        similar = beginning.setdefault(_tokens(sentence)[:_SUBJECT], [])
        same = (
            each
            for each in similar
            if any(differ_in_value(sentence, sentences[other], asked) for other in each)
        )
        group = next(same, None)
        if group is None:
            group = []
            groups.append(group)
            similar.append(group)
        group.append(place)
    return groups


def _follows_subject(tokens: Sequence[str], before: int, after: int) -> bool:
    """Whether a value comes after the subject: in languages with spaces not before the verb either."""
    return before >= (_SUBJECT if _IS_CJK.match(tokens[0]) else max(_SUBJECT, after))


def _is_value(tokens: Sequence[str]) -> bool:
    """Whether tokens can be a value: some, not many, and not led by a word that joins others."""
    return 0 < len(tokens) <= _LONGEST_VALUE and (tokens[0] in _ARTICLES or not _is_light(tokens[0]))


def _shape(text: str, value: Sequence[str]) -> tuple[bool, bool]:
    """Whether a value has a number, and whether it has a name."""
    words = _TOKEN.findall(unicodedata.normalize("NFKC", text))
    named = any(word[0].isupper() and stem(word.lower()) in value for word in words[1:])
    return any(token[0].isdigit() for token in value), named


def _is_light(token: str) -> bool:
    return token in CJK_LIGHT if _IS_CJK.match(token) else token in LIGHT


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many tokens are equal from the start."""
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return place
    return min(len(a), len(b))


@lru_cache(maxsize=4096)
def _tokens(text: str) -> tuple[str, ...]:
    found = _TOKEN.findall(_NOW.sub("", unicodedata.normalize("NFKC", text)).lower())
    stems = (token if _IS_CJK.match(token) else stem(token) for token in found)
    return tuple(token for token in stems if token not in _SAID_NOW)
