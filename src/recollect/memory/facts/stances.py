"""Stances: whether a text affirms or denies something, to find texts that contradict each other."""

import re
from dataclasses import dataclass

from ..texts.remembered import remember
from ..texts.similarity import gist_of, meaning_of

_DISLIKES = re.compile(
    r"\b(?:hate|dislike|detest|loathe)[sd]?\b|\bcan['’]t (?:stand|bear)\b|讨厌|厌恶", re.IGNORECASE
)
_STOPPED = re.compile(r"\b(?:stopped|quit|gave up|given up|used to)\b|戒", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:no longer|any ?more|stopped|quit|gave up|used to|now|these days|after all|again)\b"
    r"|不再|再也不|[不没].{0,30}了|现在|戒|放弃",
    re.IGNORECASE,
)
_CHINESE_NOT = re.compile("再也不|不再|没有|[不没戒]")
_STOP_WORDS = frozenset(
    {"longer", "anymor", "ani", "more", "stop", "quit", "gave", "use", "give", "again", "after", "all", "day"}
)
_LIST = re.compile(r"\w,? (?:and|or) \w|\w, \w|[、和及与]", re.IGNORECASE)
_ABOUT_THE_SAME = 0.7  # the least share of common words of two texts about the same


@dataclass(frozen=True)
class Stance:
    """The subject of a text, and whether the text affirms it."""

    words: frozenset[str]
    names: frozenset[str]
    is_dated: bool
    is_so: bool
    is_list: bool = False
    """Whether it is about several things."""


@remember
def stance_of(text: str) -> Stance:
    """The stance of a text."""
    said = gist_of(text)
    liked, dislikes = _DISLIKES.subn(_liked, said)
    meaning = meaning_of(liked)
    negations = meaning.is_negated + dislikes + bool(_STOPPED.search(said))
    plain = _CHINESE_NOT.sub("", liked)
    about = meaning if plain == liked else meaning_of(plain)
    return Stance(
        about.words - _STOP_WORDS,
        meaning.names,
        bool(meaning.dates),
        negations % 2 == 0,
        bool(_LIST.search(said)),
    )


def takes_back(text: str) -> bool:
    """Whether a text could retract an earlier statement."""
    return meaning_of(text).is_negated or bool(_CHANGED.search(gist_of(text)))


def contradict(new: Stance, known: Stance) -> bool:
    """Whether the new text denies what the known one affirms, or the reverse."""
    if new.is_so == known.is_so or known.is_dated or new.names != known.names or not known.words:
        return False
    if known.is_list and known.words - new.words:
        return False  # the new text denies only a part of the known list
    return len(new.words & known.words) / len(new.words | known.words) >= _ABOUT_THE_SAME


def _liked(match: re.Match[str]) -> str:
    return "likes" if match.group().isascii() else "喜欢"
