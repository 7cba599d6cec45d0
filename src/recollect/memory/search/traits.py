"""Traits of a text that the ranking weighs: what it states, whether it asks, whether it names things.

A trait is computed once, when a text is indexed, from the text alone.
"""

import re
from dataclasses import dataclass

from ..texts.any_case import AnyCase
from ..texts.terms import stem
from .documents import name_share, names_time, question_share

_LONGEST = 4_000  # characters that are read; what a person says about themselves comes early
_ENOUGH_PREFERENCES = 2
_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|me|mine|myself|we|we['’]re|our|us|the user(?:['’]s)?)\b|我|咱|用户",
    re.IGNORECASE,
)
_PREFERENCE = AnyCase(
    r"\b(?:prefer\w*|preference|like[sd]?|love[sd]?|enjoy\w*|hate[sd]?|dislike[sd]?|avoid\w*|allerg\w*"
    r"|intoleran\w*|can(?:['’]t|not) (?:stand|eat|tolerate|have|consume|bear)|never|always|only|favou?rite"
    r"|fears?|afraid|scared|(?:don|doesn)(?:['’]t|t) (?:like|want|eat|enjoy|use|believe|trust|care|drink)"
    r"|refuses?|interest(?:ed)?|(?:un)?comfortable|insists?|must|opposed|fan of|passionate|committed"
    r"|vegetarian|vegan|sticks? to|rather|finds? it|struggles?|strict\w*)\b",
    "喜欢|讨厌|爱吃|不吃|过敏|总是|从不|只|最爱|害怕|偏好|避免",
)
_INSTRUCTION = AnyCase(
    r"(?:^|[.!?\n][ \t]*)(?:please )?(?:always|never|make sure|remember to|from now on|whenever|when i ask"
    r"|don['’]t ever)\b",
    "以后|记住",
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？\n]*")
_ASKS = re.compile(
    r"[?？]|[吗呢]\s*$|^\W*(?:can|could|would|will|please|help|how|what|which|where|who|why|when|is|are|do|does"
    r"|did|should|give|tell|show|explain|write|list|suggest|recommend|generate|create|make)\b",
    re.IGNORECASE,
)
_GREETINGS = (
    r"hey|hi|hello|dear|thanks|thank you|thx|wow|yeah|yep|yes|sure|bye|congrats|congratulations|awesome"
    r"|great|cool|oh|absolutely|certainly|of course|no problem|good (?:morning|evening|night)|sorry|nice"
    r"|definitely|okay|ok|see you|take care|totally"
)
_GREETING = f"(?i:{_GREETINGS})"
_HAS_GREETING = AnyCase(rf"\b(?:{_GREETINGS})")
_FIRST = r"(?P<first>[A-Z][a-z]{1,20})(?=[,!])"
_LAST = r",\s(?P<last>[A-Z][a-z]{1,20})(?=[!?.](?:\s|$))"
_ADDRESS = re.compile(
    rf"(?:^|[.!?]\s+)(?:{_GREETING}[,!]?\s+(?:so much,? |a lot,? |again,? )?)?{_FIRST}"
    rf"|\b{_GREETING},?\s(?P<greeted>[A-Z][a-z]{{1,20}})\b|{_LAST}"
)
_ADDRESS_ALONE = re.compile(rf"(?:^|[.!?]\s+){_FIRST}|{_LAST}")  # the same for a text without a greeting
_IS_GREETING = re.compile(_GREETING)
_ADDRESS_READ = 400  # characters: people are addressed at the start


@dataclass(frozen=True)
class Traits:
    """The traits of a text. Shares are from 0 to 1."""

    question: float
    """The share that is questions."""
    names: float
    """Whether it has names or titles other than the speaker's."""
    names_time: bool
    statement: float
    """The share that states something about its speaker, or about the user of a memory."""
    preference: float
    """Whether it says what its speaker likes, avoids or insists on."""
    is_instruction: bool
    """Whether it tells the assistant how to behave from now on."""
    addressed: str | None
    """The stem of the name by which it addresses someone."""


def traits_of(text: str, speaker: str | None) -> Traits:
    """The traits of a text and its speaker."""
    read = text[:_LONGEST]
    is_personal = _FIRST_PERSON.search(read) is not None
    return Traits(
        question=question_share(text),
        names=name_share(text, frozenset((speaker or "").lower().split())),
        names_time=names_time(read),
        statement=_statement_share(read) if is_personal else 0.0,
        preference=_preference(read) if is_personal else 0.0,
        is_instruction=_INSTRUCTION.search(read),
        addressed=_addressed(text[:_ADDRESS_READ]),
    )


def _statement_share(text: str) -> float:
    sentences = [(sentence, len(sentence.split())) for sentence in _SENTENCE.findall(text)]
    stated = sum(
        words
        for sentence, words in sentences
        if _FIRST_PERSON.search(sentence) and not _ASKS.search(sentence)
    )
    return stated / max(1, sum(words for _, words in sentences))


def _preference(text: str) -> float:
    return _PREFERENCE.count(text, _ENOUGH_PREFERENCES) / _ENOUGH_PREFERENCES


def _addressed(text: str) -> str | None:
    """The last name that is addressed: "Wow, thanks Ada!" has an exclamation before it."""
    pattern = _ADDRESS if _HAS_GREETING.search(text) else _ADDRESS_ALONE
    found = (match[match.lastgroup or 0] for match in pattern.finditer(text))
    names = [name for name in found if not _IS_GREETING.fullmatch(name)]
    return stem(names[-1].lower()) if names else None
