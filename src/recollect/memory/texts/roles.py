"""The roles of words in a text: subject, the words after each preposition, counted words, negated words.

"flew from Rome to Oslo" and "flew from Oslo to Rome" have the same words, but state different things. Two
texts are compared by the roles of the words that both have.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .synonyms import LIGHT, NEGATIONS, NUMBERS, SAME
from .terms import stem

_USER = "\0user"
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?|[,;.!?]")
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_DIRECTIONS = "from to than over before after by for with into onto against"
_DIRECTED = frozenset(_DIRECTIONS.split())
"""Prepositions that give a role to the words after them. Other prepositions only end a phrase."""
_MARKS = _DIRECTED | {"without", "instead", "at", "in", "on", "of"}
_LINKS = frozenset({"and", "or", "&", "nor"})
_CLAUSE = frozenset({",", ";", ".", "!", "?", "but", "because", "while", "although"})
_COPULAS = frozenset({"is", "are", "was", "were", "am", "be", "been", "being", "seems", "became"})
_NOT = frozenset(NEGATIONS) | {
    "don't",
    "doesn't",
    "didn't",
    "isn't",
    "wasn't",
    "can't",
    "won't",
    "hasn't",
    "haven't",
}
_TIME_WORDS = (
    "yesterday today tonight tomorrow now then currently recently last next this week month year day night"
    " weekend monday tuesday wednesday thursday friday saturday sunday morning evening afternoon once again"
)
_TIMES = frozenset(_TIME_WORDS.split())


@dataclass(frozen=True)
class Roles:
    """The roles of the words of a text."""

    subject: frozenset[str] = frozenset()
    """The subject; empty if it is not certain."""
    marked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Words, by the preposition before them."""
    counted: Mapping[str, str] = field(default_factory=dict)
    """Numbers, by the word that they count."""
    denied: frozenset[str] = frozenset()
    """Words after a negation."""
    words: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    """Pairs of Chinese characters in their order, if the order says who does what."""


def roles_of(text: str) -> Roles:
    """The roles of the words of an English or Chinese text."""
    if _CJK.search(text):
        return _chinese_roles(text)
    tokens = [token.lower().replace("’", "'") for token in _TOKEN.findall(text)]
    marked: dict[str, frozenset[str]] = {}
    for mark, word in _marked_in(tokens):
        marked[mark] = marked.get(mark, frozenset()) | {word}
    return Roles(
        _subject_of(tokens, marked),
        marked,
        dict(_counted_in(tokens)),
        frozenset(_denied_in(tokens)),
        frozenset(filter(None, map(_word_of, tokens))),
    )


def play_other_roles(a: Roles, b: Roles) -> bool:
    """Whether a word that both texts have has different roles in them."""
    return (
        _other_subject(a, b)
        or _other_marks(a, b)
        or any(number != b.counted.get(word, number) for word, number in a.counted.items())
        or _other_denials(a, b)
        or (bool(a.order and b.order) and _other_order(a.order, b.order))
    )


def _other_subject(a: Roles, b: Roles) -> bool:
    return bool(
        a.subject
        and b.subject
        and not a.subject & b.subject
        and a.subject <= b.words
        and b.subject <= a.words
    )


def _other_marks(a: Roles, b: Roles) -> bool:
    """Whether a preposition precedes different words, and each text has the words of the other."""
    return any(
        not words & b.marked[mark] and words & b.words and b.marked[mark] & a.words
        for mark, words in a.marked.items()
        if mark in b.marked
    )


def _other_denials(a: Roles, b: Roles) -> bool:
    denied, other = a.denied & b.words, b.denied & a.words
    return bool(a.denied) != bool(b.denied) or bool(denied - b.denied and other - a.denied)


# --- English ---


def _word_of(token: str) -> str | None:
    """The stem or synonym that is compared; `None` for words without a meaning of their own."""
    if token in ("user", "user's"):
        return _USER
    word = stem(token)
    word = SAME.get(word, word)
    return None if not token[0].isalnum() or word in LIGHT or token in _MARKS or token in _NOT else word


def _marked_in(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """Each directed preposition with the words of the phrase after it."""
    mark, is_begun = None, False
    for place, token in enumerate(tokens):
        if token in _MARKS or token in _CLAUSE:
            mark, is_begun = (token if token in _DIRECTED else None), False
            continue
        word = None if _is_owner(tokens, place) else _word_of(token)
        if mark and word:
            yield mark, word
            is_begun = True
        elif is_begun and token not in _LINKS:
            mark = None


def _is_owner(tokens: list[str], place: int) -> bool:
    return tokens[place].endswith("'s")


def _subject_of(tokens: list[str], marked: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The first word that no preposition governs, with those linked to it; in the passive, the agent."""
    if _COPULAS & set(tokens):
        return marked.get("by", frozenset())
    found: set[str] = set()
    is_governed = False
    for place, token in enumerate(tokens):
        word = (
            None if _is_owner(tokens, place) or token in _TIMES or token.endswith("ly") else _word_of(token)
        )
        if token in _MARKS:
            is_governed = True
        elif token in _CLAUSE:
            is_governed = False
        elif word and not is_governed:
            if found and not _is_linked(tokens, place):
                break
            found.add(word)
    return frozenset(found)


def _is_linked(tokens: list[str], place: int) -> bool:
    before = [token for token in tokens[:place] if token not in ("the", "a", "an", "their", "user's")]
    return bool(before) and before[-1] in (*_LINKS, ",")


def _counted_in(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """Each number with the word that it counts."""
    number = None
    for token in tokens:
        if token[0].isdigit() or stem(token) in NUMBERS:
            number = NUMBERS.get(stem(token), token)
        elif number and (word := _word_of(token)):
            yield word, number
            number = None


def _denied_in(tokens: list[str]) -> Iterator[str]:
    is_denied = False
    for token in tokens:
        if token in _CLAUSE:
            is_denied = False
        elif token in _NOT or token.endswith("n't"):
            is_denied = True
        elif is_denied and (word := _word_of(token)):
            yield word


# --- Chinese ---

_DIRECTION = re.compile("[从到给被比向往由替把让叫去来借打送]")
_TIME = re.compile(
    "昨天|前天|今天|明天|后天|刚刚?|最近|[上下这本]个?(?:周|星期|礼拜)[一二三四五六日天末]?|[上下这本]个?月|去年|今年|明年|[早晚]上"
)
_CHINESE_NUMBER = re.compile(
    "(?P<number>[0-9]+|[二两三四五六七八九十百千]+)[个只次岁年月天本条位名辆张杯台件头匹斤块](?P<what>.{1,2})"
)
_DIGITS = {digit: str(value) for value, digit in enumerate("零一二三四五六七八九十")} | {"两": "2"}
_DENIED = re.compile("[不没沒别未](?:有|再|能|会|要)?(?P<what>[^，。；！？、]{1,4})")
_LIST = re.compile("[和跟与及、或]")


def _chinese_roles(text: str) -> Roles:
    plain = _TIME.sub("", text)
    counted = {
        match["what"]: _DIGITS.get(match["number"], match["number"])
        for match in _CHINESE_NUMBER.finditer(plain)
    }
    pairs = [plain[place : place + 2] for place in range(len(plain) - 1)]
    denied = frozenset(pair for match in _DENIED.finditer(plain) for pair in _pairs_of(match["what"]))
    is_ordered = bool(_DIRECTION.search(plain)) and not _LIST.search(plain)
    order = tuple(pair for pair in pairs if len(_CJK.findall(pair)) == 2) if is_ordered else ()
    return Roles(counted=counted, denied=denied, words=frozenset(pairs), order=order)


def _pairs_of(text: str) -> Iterator[str]:
    return (text[place : place + 2] for place in range(len(text) - 1))


def _other_order(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    both = set(a) & set(b)
    return list(dict.fromkeys(pair for pair in a if pair in both)) != list(
        dict.fromkeys(pair for pair in b if pair in both)
    )
