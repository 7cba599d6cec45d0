"""Whether two texts state the same, decided from their words, without a model.

Two texts state the same if nearly all of their words are equal or synonyms, and no important word differs: a
negation, a number, a date, a name, the person it is about, the roles of the words, a wish or a fact.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .health import concerns_health
from .remembered import remember
from .roles import Roles, play_other_roles, roles_of
from .synonyms import (
    CJK_LIGHT,
    CJK_SAME,
    LIGHT,
    MATTERS,
    MONTHS,
    NEGATIONS,
    NUMBERS,
    ORDERED,
    PAST_STATES,
    PRESENT_STATES,
    SAME,
)
from .terms import stem, terms

_CONTAINED = 0.75  # least share of common words if one text only leaves words out
_DIFFERENT = 0.85  # least share of common words if each has words that the other lacks
_ENOUGH_WORDS = 3  # in a text that another can contain
_LONGEST = 4000  # characters that are compared
_SAID_ON = re.compile(r"\s?[(（](?:said on|说于)[^()（）]{0,40}[)）]")
_MONTH = "|".join(MONTHS)
_DATES = re.compile(
    rf"\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? (?P<m1>{_MONTH})\.?,? (?P<y1>\d{{4}})\b"
    rf"|\b(?P<m2>{_MONTH})\.? (?:(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,? )?(?P<y2>\d{{4}})\b"
    r"|\b(?P<y3>\d{4})-(?P<m3>\d\d)(?:-(?P<d3>\d\d))?\b"
    r"|(?P<y4>\d{4})年(?:(?P<m4>\d{1,2})月(?:(?P<d4>\d{1,2})[日号])?)?",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|this|next|the past) (?:night|week|weekend|month|year"
    r"|spring|summer|fall|autumn|winter|(?:mon|tues|wednes|thurs|fri|satur|sun)day)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|昨天|前天|今天|明天|后天|[上下这本]个?(?:周|星期|礼拜)[一二三四五六日天末]?|[上下这本]个?月|去年|今年|明年",
    re.IGNORECASE,
)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_CJK_NEGATION = re.compile("[不没沒别無无未非]")
_CJK_MATTERS = re.compile("[妈爸父母哥弟姐妹妻夫儿女爷奶想要会应曾前]")
_NAME = re.compile(r"\b[A-Z][^\W\d_]+")
_NEGATED = re.compile(r"\b(?:" + "|".join(NEGATIONS) + r")\b|n['’]t\b", re.IGNORECASE)


@dataclass(frozen=True)
class Meaning:
    """The parts of a text that are compared."""

    words: frozenset[str]
    order: tuple[str, ...]
    numbers: frozenset[str]
    dates: frozenset[tuple[int, ...]]
    names: frozenset[str]
    is_negated: bool
    tense: int
    text: str = field(repr=False, compare=False)
    """The text without its dates, for the later comparisons, which few pairs reach."""

    @cached_property
    def roles(self) -> Roles:
        """The roles of the words."""
        return roles_of(self.text)

    @cached_property
    def concerns_health(self) -> bool:
        """Whether it mentions an illness, a medicine or a danger."""
        return concerns_health(self.text)


def say_the_same(a: str, b: str) -> bool:
    """Whether two texts state the same, also in other words. Texts with different dates do not."""
    return a == b or mean_the_same(meaning_of(a), meaning_of(b))


def gist_of(text: str) -> str:
    """A text without the note of when it was said. This is embedded and searched."""
    return _SAID_ON.sub("", text)


@remember
def meaning_of(text: str) -> Meaning:
    """Prepare a text for many comparisons."""
    plain = _SAID_ON.sub("", unicodedata.normalize("NFKC", text[:_LONGEST]))
    dates = frozenset(_dates_of(plain))
    if dates:
        plain = _RELATIVE.sub(" ", _DATES.sub(" ", plain))
    plain = _CJK.sub(_cleaned_cjk, plain)
    found = terms(plain)
    order = tuple(_words_of(found))
    words = frozenset(order)
    return Meaning(
        words=words,
        order=order if words & ORDERED else (),
        numbers=frozenset(_numbers_of(found)),
        dates=dates,
        names=frozenset(stem(name.lower()) for name in _NAME.findall(plain)) - LIGHT,
        is_negated=(len(_NEGATED.findall(plain)) + len(_CJK_NEGATION.findall(plain))) % 2 == 1,
        tense=_tense_of(plain),
        text=plain,
    )


def mean_the_same(a: Meaning, b: Meaning) -> bool:
    """Whether two meanings are equal, or nearly so."""
    if (a.numbers, a.dates, a.is_negated) != (b.numbers, b.dates, b.is_negated) or a.tense * b.tense < 0:
        return False
    if not a.words or not b.words:
        return a.words == b.words and bool(a.dates or a.numbers)
    different = a.words ^ b.words
    if different & (a.names | b.names | MATTERS) or any(map(_CJK_MATTERS.search, different)):
        return False
    share = len(a.words & b.words) / len(a.words | b.words)
    is_contained = a.words <= b.words or b.words <= a.words
    if share < (_CONTAINED if is_contained else _DIFFERENT) or not _in_the_same_order(a, b):
        return False
    if different and (a.concerns_health or b.concerns_health):
        return False  # one more allergy in a list is not the same list
    return not play_other_roles(a.roles, b.roles)


def says_more(longer: Meaning, shorter: Meaning) -> bool:
    """Whether the longer text states all that the shorter one states. It may add a date."""
    return (
        len(shorter.words) >= _ENOUGH_WORDS
        and shorter.words <= longer.words
        and len(longer.words) <= 2 * len(shorter.words)
        and shorter.numbers <= longer.numbers
        and shorter.dates <= longer.dates
        and shorter.is_negated == longer.is_negated
        and shorter.tense * longer.tense >= 0
        and not (longer.words - shorter.words) & MATTERS
        and not play_other_roles(longer.roles, shorter.roles)
    )


def _words_of(found: Iterable[str]) -> Iterator[str]:
    for term in found:
        word = SAME.get(term, term)
        # Numbers and negations are compared separately.
        is_apart = term in NUMBERS or term[0].isdigit() or term in NEGATIONS or term.endswith("n't")
        if not is_apart and word not in LIGHT and term not in LIGHT:
            yield word


def _cleaned_cjk(match: re.Match[str]) -> str:
    run = match.group()
    for word, same in CJK_SAME:
        run = run.replace(word, same)
    return "".join(character for character in run if character not in CJK_LIGHT)


def _numbers_of(found: Iterable[str]) -> Iterator[str]:
    for term in found:
        if term[0].isdigit():
            yield term
        elif term in NUMBERS:
            yield NUMBERS[term]


def _dates_of(text: str) -> Iterator[tuple[int, ...]]:
    for match in _DATES.finditer(text):
        parts = {name[0]: value for name, value in match.groupdict().items() if value}
        month = parts.get("m", "")
        number = MONTHS.get(month.lower()) or (int(month) if month else 0)
        yield int(parts["y"]), number, int(parts.get("d", 0))


def _tense_of(text: str) -> int:
    """-1 for a past state, 1 for a present state, 0 if the words do not say."""
    said = set(text.lower().split())
    return bool(said & PRESENT_STATES and not said & PAST_STATES) - bool(said & PAST_STATES)


def _in_the_same_order(a: Meaning, b: Meaning) -> bool:
    """Whether common words have the same order: tea over coffee is not coffee over tea."""
    if not a.order or not b.order:
        return True
    both = a.words & b.words
    return _first_places(a.order, both) == _first_places(b.order, both)


def _first_places(order: Sequence[str], of: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(word for word in order if word in of))
