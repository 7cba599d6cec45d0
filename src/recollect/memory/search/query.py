"""Parses a question without a model: terms, dates, speakers, and the kind of answer."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from ..texts.terms import stem, terms
from .dates import NamedDate, Stretch, named_dates, relative_stretches

LONGEST = 2_000
"""Characters of a question that are read; what comes after is another text."""
_MOST_TERMS = 64
ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
_STOP_WORDS = frozenset(
    """
    a about after all also am an and any are as at be been before being but by can could did do does
    doing done during ever for from had has have having he her here hers him his how i if in into is it
    it's its kind may me might my no not of on or our shall she should so some sort than that the their
    theirs them then there these they this those to type us was we were what what's when where which who
    who's whom whose why will with would you your
    """.split()  # noqa: SIM905
)
_STOP_TERMS = _STOP_WORDS | {stem(word) for word in _STOP_WORDS}
_CHINESE_QUESTION = re.compile(
    r"什么时候|为什么|是什么|什么|哪里|哪儿|哪个|哪些|哪一?[天年月]|怎么样?|多少|多久|几[个次点号]|是不是|有没有|谁|吗|呢|请问|告诉我"
)
_ASKS_WHEN = re.compile(
    r"^\W*(?:when|how long|since when|(?:in |on |at )?(?:what|which) (?:date|day|month|year|time|week))\b"
    r"|什么时候|何时|哪[一]?[天年月]|几[月号]|多久",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(
    r"\b(?:where|who|which|names?|named|called|titles?|countr(?:y|ies)|cit(?:y|ies)|states?|books?|movies?|films?|"
    r"songs?|bands?|brands?|games?|places?)\b|谁|哪里|哪儿|叫什么|名字",
    re.IGNORECASE,
)
_ASKS_NEWEST = re.compile(
    r"\b(?:latest|newest|most recent|recently|currently|current|nowadays|these days|last time)\b"
    r"|最近|最新|现在|目前|上次",
    re.IGNORECASE,
)
_ASKS_SEVERAL = re.compile(
    r"^\W*(?:(?:what|which)(?: [\w'’-]+){0,3}? [\w'’-]+s (?:has|have|does|do|are|did|were)\b"
    r"|how many\b|what (?:are|were)\b|in what ways\b|(?:what|which|where|who)\b.{0,60}?\b(?:has|have)\b)"
    r"|哪些|哪几|[几多]少?次|都有",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|my|me|mine|myself)\b|我", re.IGNORECASE)
_SECOND_PERSON = re.compile(r"\b(?:you|your|yours)\b|你|您", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“「『《]([^\"“”「」『』《》]{2,200})[\"”」』》]")


@dataclass(frozen=True)
class Query:
    """A parsed question."""

    text: str
    terms: tuple[str, ...]
    """The search terms: without question words, dates and speakers."""
    embedding_text: str
    """The text to embed: without the names of speakers, which would dominate the vector."""
    speakers: tuple[str, ...] = ()
    """The speakers that it names."""
    role: str | None = None
    """The role that "I" or "you" means, if no speaker is named."""
    dates: tuple[NamedDate, ...] = ()
    stretches: tuple[Stretch, ...] = ()
    phrases: tuple[str, ...] = ()
    """The quoted phrases."""
    asks_when: bool = False
    asks_name: bool = False
    asks_newest: bool = False
    asks_several: bool = False
    """Whether the answer may be spread over several documents."""

    @property
    def is_empty(self) -> bool:
        """Whether it has neither a term nor a date to search for."""
        return not (self.terms or self.dates or self.stretches)


def understand(text: str, speakers: Iterable[str] = (), *, today: date | None = None) -> Query:
    """Parse a question about these speakers. Relative dates such as "yesterday" need `today`."""
    text = text[:LONGEST]
    words = frozenset(terms(text))
    named = tuple(sorted(name for name in speakers if _is_named(name, words)))
    asked, dates = named_dates(text)
    return Query(
        text=text,
        terms=_terms(asked, named) or tuple(dict.fromkeys(terms(asked)))[:_MOST_TERMS],
        embedding_text=without_names(asked, named) or text,
        speakers=named,
        role=None if named else _role(text),
        dates=dates,
        stretches=relative_stretches(text, today) if today else (),
        phrases=tuple(phrase.strip().lower() for phrase in _QUOTED.findall(text) if phrase.strip()),
        asks_when=_ASKS_WHEN.search(text) is not None,
        asks_name=_ASKS_NAME.search(text) is not None,
        asks_newest=_ASKS_NEWEST.search(text) is not None,
        asks_several=_ASKS_SEVERAL.search(text) is not None,
    )


def without_names(text: str, speakers: Collection[str]) -> str:
    """A text without the names of the speakers, which makes better vectors."""
    names = tuple(sorted({name for name in speakers if name.lower() not in ROLES and name.strip()}))
    left = _any_of(names).sub(" ", text) if names else text
    return " ".join(left.split()) or text


@lru_cache(maxsize=256)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?:['’]s)?(?!\w)")


def _is_named(speaker: str, words: frozenset[str]) -> bool:
    its = frozenset(terms(speaker))
    return bool(its) and its <= words


def _terms(text: str, named: tuple[str, ...]) -> tuple[str, ...]:
    left_out = _STOP_TERMS.union(*(terms(name) for name in named))
    asked = terms(_CHINESE_QUESTION.sub(" ", text))
    return tuple(term for term in dict.fromkeys(asked) if term not in left_out)[:_MOST_TERMS]


def _role(text: str) -> str | None:
    if _SECOND_PERSON.search(text):
        return "assistant"
    return "user" if _FIRST_PERSON.search(text) else None
