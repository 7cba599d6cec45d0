"""Decides whether an entry is about a labelled fact, whether it is junk, and whether it reads well.

All of it is a pure function of texts and ids, so that every extractor is judged alike:

- An entry is about a fact if it cites a message that states the fact, has one word of each group of the words
  of the fact, and denies something if and only if the fact does. Words match at their beginning, in any case.
- An entry is junk if it is about no fact and all messages it cites state none, or if most of its words are
  those of a sentence that nobody keeps.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from recollect.memory.texts.synonyms import LIGHT
from recollect.memory.texts.terms import terms

from .labels import Fact

_DENIAL = re.compile(
    r"\b(?:not|no|never|nothing|nobody|cannot|without|dislikes?|hates?|avoids?|refuses?|stopped|quit"
    r"|gave up|no longer"
    r"|used to)\b|n['’]t\b|[不没戒]",
    re.IGNORECASE,
)
_PART = re.compile(r"[,;.，；。]\s*|\b(?:but|because)\b")
_MOST_WORDS = 0.6  # of an entry, in a sentence that nobody keeps


def is_about(text: str, cited: Iterable[str], fact: Fact) -> bool:
    """Whether an entry with a text that cites messages is about a fact."""
    return not fact.said_in.isdisjoint(cited) and says(text, fact)


def says(text: str, fact: Fact) -> bool:
    """Whether a text has the words of a fact, and denies what the fact denies."""
    if not all(any(has_word(text, word) for word in group) for group in fact.words):
        return False
    return fact.denied is None or is_denied(text, fact) == fact.denied


def has_word(text: str, word: str) -> bool:
    """Whether a word, or several in a row, begins somewhere in a text."""
    before = r"(?<![A-Za-z0-9])" if word[0].isascii() else ""
    return re.search(before + re.escape(word), text, re.IGNORECASE) is not None


def is_denied(text: str, fact: Fact) -> bool:
    """Whether a text denies something in the part that has the first words of a fact."""
    parts = [part for part in _PART.split(text) if any(has_word(part, word) for word in fact.words[0])]
    return any(_DENIAL.search(part) for part in parts or [text])


def is_junk(
    text: str, cited: Sequence[str], facts: Sequence[Fact], not_kept: Mapping[str, Sequence[str]]
) -> bool:
    """Whether an entry is something that nobody keeps."""
    if any(is_about(text, cited, fact) for fact in facts):
        return False
    stating = frozenset().union(*(fact.said_in for fact in facts))
    if stating.isdisjoint(cited):
        return True
    return any(_is_from(text, sentence) for message in cited for sentence in not_kept.get(message, ()))


def _is_from(text: str, sentence: str) -> bool:
    words = frozenset(terms(text)) - LIGHT
    return bool(words) and len(words & frozenset(terms(sentence))) >= _MOST_WORDS * len(words)


# --- how an entry reads ---

LONGEST = 200
"""More characters are not one clean sentence."""
_QUOTED = re.compile(r"[\"“「][^\"“”「」]*[\"”」]")
_DATE = re.compile(
    r"\b\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)\b"
)
_FAULTS: Mapping[str, re.Pattern[str]] = {
    "first person": re.compile(r"(?<!Book )(?<!War )(?<!Part )(?<!Act )\bI\b(?!\.)|\b[Mm](?:y|e)\b|[我咱]"),
    "speaks to somebody": re.compile(r"\byour?\b|[你您]", re.IGNORECASE),
    "grammar": re.compile(
        r"\buser (?:am|are|have|do|don['’]t|live|work|want)\b|\bthe the\b|  | ,|,,|\.\.(?!\.)"
    ),
    "small talk": re.compile(r"\b(?:haha\w*|lol|omg|btw|tbh|thx|pls|ugh|yeah|hey)\b|哈哈|[:;]-?[)(]"),
    "no subject": re.compile(
        r"^(?:it|they|that|this|these|those|he|she|there)\b|^[它他她这那]", re.IGNORECASE
    ),
    "code": re.compile(r"[{}<>]|;$|\w\(\)|==|::|```|^\s*(?:import|from|def|class|return) "),
    "cut off": re.compile(r"…|\.\.\."),
    "quotes the user": re.compile(r"\buser said: |用户说：|^Asked "),
    "no sentence": re.compile(r"^[a-z]|[^.!?。！？”\")）]$"),
}


def faults_of(text: str) -> list[str]:
    """What is wrong with how an entry reads."""
    plain = _QUOTED.sub("", text)
    quoted = {"cut off", "quotes the user", "no sentence", "code"}
    found = [name for name, pattern in _FAULTS.items() if pattern.search(text if name in quoted else plain)]
    dates = _DATE.findall(re.sub(r"\((?:said on|said) [^()]*\)", "", text))
    found += ["the same date twice"] if len(dates) != len(set(dates)) else []
    found += ["too long"] if len(text) > LONGEST else []
    return found
