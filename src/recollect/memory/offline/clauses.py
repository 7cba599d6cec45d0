"""The clauses of a Chinese sentence, each with the one it speaks of."""

import re
from collections.abc import Iterator

from .chinese import SOMEBODY, lacks_subject, third_person_of
from .slots import slot_of

_CLAUSE = re.compile("[，,]")
_OTHER = re.compile(SOMEBODY)
_USER = re.compile("[我咱]")


def clauses_of(sentence: str) -> list[str]:
    """The clauses of a sentence, where one of them tells what has one value, such as a home."""
    clauses = _CLAUSE.split(sentence)
    if len(clauses) == 1 or not any(slot_of(third_person_of(clause) or "") for clause in clauses):
        return [sentence]
    return [clause for clause in _with_subjects(clauses) if len(clause) > 1]


def with_subject(sentence: str, before: str) -> str:
    """A sentence that tells a home, but not whose, with whom the sentence before speaks of."""
    if not lacks_subject(sentence) or _USER.search(sentence):
        return sentence
    other = _OTHER.match(before)
    return other.group() + sentence if other and slot_of(third_person_of(sentence) or "") else sentence


def _with_subjects(clauses: list[str]) -> Iterator[str]:
    """A clause without a subject speaks of the one before it: of the user, or of whom that names."""
    subject: str | None = "" if lacks_subject(clauses[0]) else None
    held = ""
    for clause in clauses:
        if not lacks_subject(clause) or _USER.search(clause):
            subject = _subject_of(clause)
        elif subject is None:  # it is about somebody, but who that is cannot be told apart
            held = f"{held}，{clause}"
            continue
        else:
            clause = subject + clause
        if held:
            yield held
        held = clause
    yield held


def _subject_of(clause: str) -> str | None:
    """The subject of a clause: empty for the user, `None` where it is not known."""
    if other := _OTHER.match(clause):
        return other.group()
    return "" if _USER.match(clause) else None
