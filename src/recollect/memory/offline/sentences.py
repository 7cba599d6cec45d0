"""Splits messages into sentences, in English and Chinese, and masks quoted speech."""

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass

from ..texts.health import concerns_health
from ..texts.remembered import remember, remember_list

_MOST = 1000  # sentences of a message that are read: this bounds the time that a message takes
_LONGEST = 600  # characters of a sentence; a longer one is cut where a part of it ends
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u200b-\u200f\u2028-\u202e\ufeff\ufffe\uffff]"
)
_EMOJI = re.compile("[\u2190-\u21ff\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]|[:;]-?[)(DPp]+(?=\\s|$)")
_END = re.compile(r"(?<=[.!?…])[\"”’')]{0,2}\s+|(?<=[。！？；])|\n+")
_PART_END = re.compile(r"[,;，；] ?| (?=(?:and|but|so|because|then|I|my) )")
_ABBREVIATION = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|Sr|vs|etc|e\.g|i\.e|a\.m|p\.m|U\.S|No|\w*str)\.$", re.IGNORECASE
)
_CAPTION = re.compile(r"\[image: ?([^\[\]]{3,300})\]")
_CJK = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LETTER = re.compile(r"[A-Za-z]")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Sentences:
    """The sentences of a message that are read, in their order."""

    read: list[str]
    left_out: int
    """The number of sentences that are not read."""


@remember
def split_sentences(text: str) -> Sentences:
    """The sentences of a message. If there are too many, those about health are read first."""
    plain = _EMOJI.sub(" ", _CONTROL.sub(" ", _CAPTION.sub("\n", text)))
    plain = _BARE_CONTRACTION.sub(_contracted, plain)
    found = (_SPACES.sub(" ", piece).strip() for piece in _pieces(plain))
    spoken = [part for sentence in found for part in _parts(sentence) if len(part) > 1]
    if len(spoken) <= _MOST:
        return Sentences(spoken, 0)
    places = sorted(range(len(spoken)), key=lambda place: (not concerns_health(spoken[place]), place))
    return Sentences([spoken[place] for place in sorted(places[:_MOST])], len(spoken) - _MOST)


_BARE_CONTRACTION = re.compile(r"\b(?:im|ive|dont|cant|doesnt|didnt|isnt|wont|havent)\b")
_CONTRACTIONS = {"im": "I'm", "ive": "I've"}


def _contracted(match: re.Match[str]) -> str:
    """A contraction that was typed without its apostrophe, with it."""
    word = match.group()
    return _CONTRACTIONS.get(word, f"{word[:-1]}'t")


def sentences_of(text: str) -> list[str]:
    """The sentences of a message that are read."""
    return split_sentences(text).read.copy()


def _parts(sentence: str) -> Iterator[str]:
    """The sentence, split at the end of a part if it is too long: some people use no full stops.

    A long run without a place to split was not written by a person, and is skipped.
    """
    start = 0
    while len(sentence) - start > _LONGEST:
        ends = [match.end() for match in _PART_END.finditer(sentence, start + 1, start + _LONGEST)]
        if ends:
            yield sentence[start : ends[-1]].strip(" ,;，；")
            start = ends[-1]
        elif following := _PART_END.search(sentence, start + _LONGEST):
            start = following.end()
        else:
            return
    yield sentence[start:]


def is_chinese(sentence: str) -> bool:
    """Whether a sentence is Chinese. A Chinese character counts as much as three letters."""
    return not sentence.isascii() and 3 * len(_CJK.findall(sentence)) > len(_LETTER.findall(sentence))


def _pieces(text: str) -> Iterator[str]:
    """The text, split at the ends of sentences, but not after an abbreviation or within quoted speech."""
    start, speech = 0, speech_in(text)
    for match in _END.finditer(text):
        piece = text[start : match.end()]
        if not _ABBREVIATION.search(piece[-8:].rstrip()) and not _is_within(match.end(), speech):
            yield piece
            start = match.end()
    yield text[start:]


def _is_within(place: int, spans: list[tuple[int, int]]) -> bool:
    number = bisect(spans, (place, 0))
    return number > 0 and place < spans[number - 1][1]


# --- quoted speech ---

HIDDEN = "\ue000"  # masks a character that must not be read
_SAYING = r"\b(?:says?|said|saying|told \w+|wrote|writes|asked|replied|answered|like|goes)[,:]? "
_QUOTED = re.compile(
    r"(?P<double>(?<![A-Za-z0-9])[\"“][^\"“”\n]{1,300}[\"”](?![A-Za-z0-9]))|(?P<corner>「[^「」\n]{1,300}」)"
    rf"|{_SAYING}(?P<single>['‘](?:[^'‘’\n]|(?<=\w)['’](?=\w)){{1,300}}['’])(?!\w)",
    re.IGNORECASE,
)
# A quoted title does not speak in the first or second person.
_SPEAKS = re.compile(r"\b(?:I|I['’]\w+|me|my|mine|we|us|our|you|your)\b|[我咱你您]", re.IGNORECASE)


@remember_list
def speech_in(text: str) -> list[tuple[int, int]]:
    """The spans of a text in which somebody is quoted who speaks of themselves or to somebody."""
    spans = [match.span(match.lastgroup or 0) for match in _QUOTED.finditer(text)]
    return [(start, end) for start, end in spans if _SPEAKS.search(text, start, end)]


def without_speech(text: str) -> str:
    """The text with quoted speech masked, and all other characters at their positions."""
    for start, end in speech_in(text):
        text = text[: start + 1] + HIDDEN * (end - start - 2) + text[end - 1 :]
    return text
