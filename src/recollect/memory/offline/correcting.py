"""What the user takes back at once: "I live in Munich." - "Actually, it's Berlin." """

import re
from collections.abc import Iterable
from dataclasses import replace

from ..conversation import Message
from ..pipeline.stages import MOST_EVIDENCE, Candidate
from .sentences import sentences_of
from .slots import slot_of

_LOOKED_AT = 500  # characters: a correction comes first
_CORRECTION = re.compile(
    r"^(?:(?:actually|no|sorry|oops|wait|correction|scratch that|i misspoke)[,.!:;]? ){1,3}"
    r"(?:it['’]s|it is|i meant?|make that|(?:it|that) should be) (?P<value>[^.,!?]{1,40})[.!]*$"
    r"|^(?:其实|不对|不|错了|说错了|更正)[，,。：:]? ?(?:应该)?(?:是|我是说)"
    r"(?P<chinese>[^。，,！!？?]{1,20})[。！!]*$",
    re.IGNORECASE,
)


def corrected(message: Message, told: Candidate | None) -> Candidate | None:
    """What was told before, as the user's message corrects it."""
    if told is None or told.slot is None:
        return None
    for value in _values_in(sentences_of(message.content[:_LOOKED_AT])):
        text = _replaced(told.text, str(told.data["value"]), value)
        slot = slot_of(text)
        if slot and slot.name == told.slot and slot.value != told.data["value"]:
            evidence = tuple(dict.fromkeys((message.message_id, *told.evidence)))[:MOST_EVIDENCE]
            return replace(told, text=text, evidence=evidence, data={**told.data, "value": slot.value})
    return None


def _replaced(text: str, old: str, new: str) -> str:
    start = text.lower().find(old)
    return text if start < 0 else text[:start] + new + text[start + len(old) :]


def _values_in(sentences: Iterable[str]) -> Iterable[str]:
    for sentence in sentences:
        match = _CORRECTION.match(sentence)
        if match:
            yield (match["value"] or match["chinese"]).strip()
