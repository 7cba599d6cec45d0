"""Documents to search: turns of conversations and entries of memories, and features of their texts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Vector = NDArray[np.float32]
Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Document:
    """A turn or an entry."""

    id: str
    text: str = field(repr=False)
    speaker: str | None = None
    """The speaker, or the person it is about: a name or a role."""
    session: str | None = None
    """The session it belongs to. Its neighbours are documents of the same session."""
    position: int = 0
    """Its position in the session."""
    time: datetime | None = None
    """The time when it was said, or when it happened."""
    vector: Vector | Sequence[float] | None = field(default=None, repr=False, compare=False)
    kind: str = "turn"
    role: str | None = None
    """The role of the speaker; `user` for an entry, which is about the user."""


# --- features of texts ---

_SENTENCE = re.compile(r"[^.!?。！？]+[.!?。！？]*")
_ENDS_AS_QUESTION = re.compile(r"[?？][\"'”’」』)\s.!]*$|[吗呢]\s*$")
_NAME = re.compile(r"(?<=[a-z0-9,:;] )(?!I\b)[A-Z][\w'-]+|\"[^\"]{2,80}\"|[“《「][^”》」]{1,80}[”》」]")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|days?|weeks?|weekends?|months?|years?|hours?|since|"
    r"recently|morning|mon|tues|wednes|thurs|fri|satur|sun)(?:day)?\b"
    r"|\b(?:january|february|march|april|june|july|august|september|october|november|december|"
    r"spring|summer|autumn|fall|winter)\b|\b(?:19|20)\d\d\b|\b\d{1,2}(?:st|nd|rd|th)\b"
    r"|昨天|今天|明天|前天|后天|上周|上个?月|去年|今年|明年|前年|下周|下个?月|星期|周末|最近|年前|天前|月前"
    r"|(?<!\d)\d{1,4}\s{0,3}[年月日号]|[一二三四五六七八九十]+月",
    re.IGNORECASE,
)
_ENOUGH_TERMS = 20
_ENOUGH_NAMES = 2


def question_share(text: str) -> float:
    """The share of a text that is questions, from 0 to 1."""
    sentences = _SENTENCE.findall(text)
    length = sum(len(sentence) for sentence in sentences if _ENDS_AS_QUESTION.search(sentence))
    return length / max(1, sum(map(len, sentences)))


def name_share(text: str, speakers: frozenset[str]) -> float:
    """Whether a text has names or titles other than the speakers', from 0 to 1."""
    found = sum(name.split("'")[0].lower() not in speakers for name in _NAME.findall(text))
    return min(found, _ENOUGH_NAMES) / _ENOUGH_NAMES


def names_time(text: str) -> bool:
    """Whether a text names a time or a duration."""
    return _TIME.search(text) is not None


def substance(terms: NDArray[Any]) -> Floats:
    """Whether texts with these numbers of terms are long enough to say something, from 0 to 1."""
    shares: Floats = np.minimum(terms, _ENOUGH_TERMS) / _ENOUGH_TERMS
    return shares
