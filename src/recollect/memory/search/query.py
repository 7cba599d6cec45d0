"""Parses a question without a model: terms, dates, speakers, and the kind of answer."""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from ..texts.remembered import remember
from ..texts.terms import search_terms, stem, terms
from .dates import NamedDate, Stretch, named_dates, relative_stretches
from .phrasing import (
    FRAME_TERMS,
    as_user,
    asked_part,
    asks_about_person,
    asks_advice,
    asks_all,
    asks_name,
    asks_newest,
    asks_several,
    asks_when,
    meant_role,
    without_frame,
)

LONGEST = 4_000
"""Characters of a question that are read: of a longer text the last ones, where people ask."""
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
_QUESTION_WORDS = re.compile(  # of languages without spaces
    r"[什甚]么时候|什麼時候|[为為]什[么麼]|是什[么麼]|什[么麼]|哪[里裡裏儿兒个個些]|哪一?[天年月]|[怎咋][么麼]?[样樣]?|多少|多久"
    r"|[几幾][个個次点點号號]|是不是|有没有|有沒有|[谁誰]|[吗嗎]|呢|啥|[请請][问問]|告[诉訴]我"
    r"|何時|いつ|どこ|どの|どれ|どう|なぜ|誰|何|ですか|ますか|무엇|무슨|뭐|어디|언제|누구|어느|어떤"
)
_QUOTED = re.compile(r"[\"“「『《]([^\"“”「」『』《》]{2,200})[\"”」』》]")
_CAPITALIZED = re.compile(r"\b[A-Z][a-z]+")
_VOWEL = re.compile(r"[aeiouy]")
_SAME_SOUND = str.maketrans("czq", "ksk")
_FEWEST_SOUNDS = 3  # of a name that is known by another spelling of it


@dataclass(frozen=True)
class Query:
    """A parsed question."""

    text: str
    terms: tuple[str, ...]
    """The search terms: without question words, dates and speakers."""
    embedding_text: str
    """The text to embed: without the names of speakers, which would dominate the vector."""
    further: tuple[str, ...] = ()
    """The terms of the text around the question. They help to rank, but it does not ask for them."""
    context: str = ""
    """The whole text to embed beside it, if only a part of the text asks."""
    speakers: tuple[str, ...] = ()
    """The speakers that it names."""
    names: tuple[str, ...] = ()
    """The terms that may be names: those of capitalized words."""
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
    asks_all: bool = False
    """Whether it asks for all that is known about the user."""
    asks_about_person: bool = False
    """Whether it is about the user, or about somebody who must be known: "Where does she live?"."""
    asks_advice: bool = False
    """Whether the answer depends on what the user prefers."""

    @property
    def is_empty(self) -> bool:
        """Whether it has neither a term nor a date to search for."""
        return not (self.terms or self.dates or self.stretches)

    @property
    def is_personal(self) -> bool:
        """Whether it is about what the user says of themselves."""
        return self.role == "user" or self.asks_advice


def understand(text: str, speakers: Iterable[str] = (), *, today: date | None = None) -> Query:
    """Parse a question about these speakers. Relative dates such as "yesterday" need `today`."""
    speakers = tuple(speakers)
    text = _with_known_names(as_user(text[-LONGEST:]), speakers)
    question = asked_part(text)
    words = frozenset(terms(text))
    named = _named_in(words, speakers)
    undated, asked = _read(question)
    wanted = _terms(undated, named)
    around = set() if question == text else {*_terms(text, named)} - {*wanted}
    return replace(
        asked,
        text=text,
        terms=wanted,
        further=tuple(term for term in _terms(text, named) if term in around),
        embedding_text=without_names(undated, named) or text,
        context=without_names(text, named) if question != text else "",
        speakers=named,
        names=_names(text),
        role=None if named else asked.role,
        stretches=relative_stretches(text, today) if today else (),
        phrases=tuple(phrase.strip().lower() for phrase in _QUOTED.findall(text) if phrase.strip()),
        asks_advice=not named and asked.asks_advice,
    )


@remember  # a recall asks the same of entries and of messages
def _read(question: str) -> tuple[str, Query]:
    """A question without its frame and its dates, and what its wording says, whoever the speakers are."""
    undated, dates = named_dates(without_frame(question))
    return undated, Query(
        text=question,
        terms=(),
        embedding_text="",
        role=meant_role(question),
        dates=dates,
        asks_when=asks_when(question),
        asks_name=asks_name(question),
        asks_newest=asks_newest(question),
        asks_several=asks_several(question),
        asks_all=asks_all(question),
        asks_about_person=asks_about_person(question),
        asks_advice=asks_advice(question),
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


def _with_known_names(text: str, speakers: tuple[str, ...]) -> str:
    """A text with the names of speakers as these spell them: "Mohammed" is "Muhammad" if nobody else is."""
    words = (word for each in speakers if each.lower() not in ROLES for word in _CAPITALIZED.findall(each))
    spelled: dict[str, set[str]] = {}
    for word in words:
        spelled.setdefault(_sounds(word), set()).add(word)

    def known(match: re.Match[str]) -> str:
        sounds = _sounds(match.group())
        others = spelled.get(sounds, set())
        is_other = (
            len(sounds) >= _FEWEST_SOUNDS and len(others) == 1 and match.group().lower() not in _STOP_WORDS
        )
        return next(iter(others)) if is_other else match.group()

    return _CAPITALIZED.sub(known, text) if spelled else text


@lru_cache(maxsize=4096)
def _sounds(name: str) -> str:
    """The consonants of a name as they sound, each once: the rest is spelled in many ways."""
    heard = name.lower().replace("ph", "f").translate(_SAME_SOUND)
    left = heard[:1] + _VOWEL.sub("", heard[1:])
    return "".join(each for each, after in zip(left, [*left[1:], ""], strict=True) if each != after)


def _named_in(words: frozenset[str], speakers: tuple[str, ...]) -> tuple[str, ...]:
    """The speakers that a question names: by all words of the name, or by a first name that only they have.

    A role is no name: "user login" names nobody.
    """
    names = {each: terms(each) for each in speakers if each.lower() not in ROLES}
    firsts = Counter(its[0] for its in names.values() if its)
    return tuple(
        sorted(
            each
            for each, its in names.items()
            if its and (words.issuperset(its) or (its[0] in words and firsts[its[0]] == 1))
        )
    )


def _names(text: str) -> tuple[str, ...]:
    """The terms of capitalized words. The first word of a question is mostly no name."""
    found = dict.fromkeys(stem(word.lower()) for word in _CAPITALIZED.findall(text))
    return tuple(term for term in found if term not in _STOP_TERMS)[:_MOST_TERMS]


def _terms(question: str, named: tuple[str, ...]) -> tuple[str, ...]:
    """The terms to search for."""
    asked = search_terms(_QUESTION_WORDS.sub(" ", question))
    names = frozenset(term for name in named for term in terms(name))
    found = [term for term in dict.fromkeys(asked) if term not in _STOP_TERMS and term not in names]
    specific = [term for term in found if term not in FRAME_TERMS]
    return tuple((specific or found or list(dict.fromkeys(asked)))[:_MOST_TERMS])
