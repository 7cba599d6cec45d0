"""Whether a later sentence ends, takes back or corrects what an earlier one says. Decided from the words.

The lists are phrases that people use for it, in several languages. They say that something changed. What
changed is told by the words that the two sentences share.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from .any_case import AnyCase
from .synonyms import CJK_LIGHT, LIGHT
from .terms import terms

_ENDS = AnyCase(
    r"\b(?:no longer|any ?more|stopped|quit|gave up|given up|took (?:me|the user|him|her) off"
    r"|got rid of|called off)\b",
    r"\b(?:nicht mehr|aufgehört|abgesagt|ne .{1,20} plus|arrêté|ya no|dejé de|non .{1,20} più|smesso"
    r"|não .{1,20} mais|parei de)\b|不再|已[经經]不|戒了|больше не|もう.{0,8}ない|やめた|더 ?이상|그만뒀",
)
_OF_AN_END = frozenset(
    terms("longer anymore any more stopped quit gave given took got rid called off nicht mehr")
)
_CORRECTS = AnyCase(
    r"^\W*(?:no,? wait|wait,|no,? sorry|sorry,? i meant|i meant|i mean[t,]|correction|scratch that|my mistake"
    r"|oops|typo|actually,? no|no,? actually|nein,? doch|ich meinte|korrektur|non,? en fait|je voulais dire"
    r"|quise decir|no,? espera|scusa|volevo dire)\b",
    "^\\W*(?:perdón|不对|不對|说错|說錯|更正|等等|应该是|應該是|いや|訂正|아니|нет, )",
)
_CLAUSE = re.compile(r"[^,.;!?，。；！？\n]+")


def ends(later: str, earlier: str, asked: Collection[str] = ()) -> bool:
    """Whether a later sentence ends something of an earlier one that the terms of a question do not name."""
    if not _ENDS.search(later):
        return False
    clauses = (clause for clause in _CLAUSE.findall(later) if _ENDS.search(clause))
    ended = frozenset(term for clause in clauses for term in _meant(clause))
    return bool((ended & _meant(earlier)) - frozenset(asked) - _OF_AN_END)


def says_end(text: str) -> bool:
    """Whether a sentence says that something ended."""
    return _ENDS.search(text)


def corrects(later: str) -> bool:
    """Whether a sentence begins as a correction of what was said just before."""
    return _CORRECTS.search(later)


@lru_cache(maxsize=4096)
def _meant(text: str) -> frozenset[str]:
    return frozenset(
        term for term in terms(text) if term not in LIGHT and not (set(term) & CJK_LIGHT) and len(term) > 1
    )
