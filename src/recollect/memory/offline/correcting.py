"""What the user takes back at once: "I live in Munich." - "Actually, it's Berlin." """

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..conversation import Message
from ..facts.slots import slot_of
from ..pipeline.stages import MOST_EVIDENCE, Candidate
from .reading import read_message
from .sentences import sentences_of

_LOOKED_AT = 500  # characters: a correction comes soon
_SORRY = r"(?:(?:actually|no|sorry|oops|wait|correction|scratch that|i misspoke)[,.!:;]? )"
_MEANT = r"(?:i mean|i meant|make that)"
_VALUE = r"(?!(?:it|that|this|he|she|they|we|you|what|the)\b)(?P<{}>[^.,!?]{{1,40}})[.!]*$"
_CORRECTION = re.compile(
    rf"^{_SORRY}{{1,3}}(?:it['’]s|it is|(?:it|that) should be) {_VALUE.format('value')}"
    rf"|^{_SORRY}{{0,3}}{_MEANT} {_VALUE.format('meant')}"
    r"|^(?:其实|不对|不|错了|说错了|更正)[，,。：:]? ?(?:应该)?(?:是|我是说)"
    r"(?P<chinese>[^。，,！!？?]{1,20})[。！!]*$",
    re.IGNORECASE,
)
_HINT = re.compile("it['’]s|it is|should be|i mean|make that|是", re.IGNORECASE)
_WITHIN = re.compile(rf", (?={_SORRY}{{0,3}}{_MEANT} [^,.!?]{{1,40}}[.!]*$)", re.IGNORECASE)


@dataclass(frozen=True)
class Correction:
    """What was told, as it is corrected."""

    told: Candidate
    corrected: Candidate
    rest: Message | None
    """The message without the correction."""


def correction_in(message: Message, told: Candidate | None) -> Correction | None:
    """The first correction in a message: of what it said before, or else of what was told before it."""
    if not _HINT.search(message.content, 0, _LOOKED_AT):
        return None
    sentences = list(_parts_of(message.content))
    for place, value in _values_in(sentences):
        wrong = _last_with_slot(message, sentences[:place]) or told
        right = _corrected(message, wrong, value) if wrong else None
        if wrong and right:
            rest = "\n".join((*sentences[:place], *sentences[place + 1 :]))
            return Correction(wrong, right, replace(message, content=rest) if rest else None)
    return None


def _corrected(message: Message, wrong: Candidate, value: str) -> Candidate | None:
    text = _replaced(wrong.text, str(wrong.data["value"]), value)
    slot = slot_of(text)
    if slot is None or slot.name != wrong.slot or slot.value == wrong.data["value"]:
        return None
    evidence = tuple(dict.fromkeys((message.message_id, *wrong.evidence)))[:MOST_EVIDENCE]
    return replace(wrong, text=text, evidence=evidence, data={**wrong.data, "value": slot.value})


def _parts_of(text: str) -> Iterator[str]:
    """The sentences of a text, and what is corrected within one apart from its correction."""
    for sentence in sentences_of(text):
        yield from _WITHIN.split(sentence, maxsplit=1)


def _values_in(sentences: Sequence[str]) -> Iterator[tuple[int, str]]:
    read = 0
    for place, sentence in enumerate(sentences):
        match = _CORRECTION.match(sentence) if read < _LOOKED_AT else None
        read += len(sentence)
        if match:
            yield place, (match["value"] or match["meant"] or match["chinese"]).strip()


def _last_with_slot(message: Message, sentences: Sequence[str]) -> Candidate | None:
    found = read_message(replace(message, content="\n".join(sentences)), None) if sentences else []
    return next((candidate for candidate in reversed(found) if candidate.slot), None)


def _replaced(text: str, old: str, new: str) -> str:
    start = text.lower().find(old)
    return text if start < 0 else text[:start] + new + text[start + len(old) :]
