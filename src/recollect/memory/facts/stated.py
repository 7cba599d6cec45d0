"""The facts that the text of an entry states, each as a text of its own."""

import re
from collections.abc import Iterator

from .chinese_clauses import chinese_clauses_of, lacks_subject
from .clauses import clauses_of
from .slots import Slot, slot_of

_CJK = re.compile("[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"(?<=[.!;])\s+(?=(?:The )?[Uu]ser(?:['’]s)?\b|They\b)|(?<=[。！；])(?=用户)")
_WHO = re.compile(r"^(?P<user>(?:The )?[Uu]ser), who (?P<one>[^,]+), (?P<other>.+)$")
_USER = re.compile(r"^user\b", re.IGNORECASE)
_VERB = re.compile(r"^(?:lives|works|is|has|moved|named|allergic|resides|goes by|was)\b", re.IGNORECASE)


def facts_of(text: str) -> list[str]:
    """The facts that a text in the third person states, in its order; the text itself where it is one."""
    facts = [fact for sentence in _SENTENCE.split(text) for fact in _of_sentence(sentence.strip()) if fact]
    return facts if len(facts) > 1 else [text]


def slot_in(text: str) -> Slot | None:
    """What a fact says of something with one value, also where it leaves "the" or "the user" out."""
    return slot_of(_named(text))


def _of_sentence(sentence: str) -> Iterator[str]:
    if _CJK.search(sentence):
        clauses = chinese_clauses_of(sentence, _told_in_chinese)
        yield from (f"{each.rstrip('。')}。" for each in clauses) if len(clauses) > 1 else [sentence]
    else:
        whole = _WHO.sub(r"\g<user> \g<one> and \g<other>", sentence)
        clauses = clauses_of(whole, _named)
        yield from clauses if len(clauses) > 1 else [sentence]


def _named(text: str) -> str:
    text = _USER.sub("The user", text)
    return f"The user {text[0].lower()}{text[1:]}" if _VERB.match(text) else text


def _told_in_chinese(clause: str) -> str:
    return f"用户{clause}" if lacks_subject(clause) else clause
