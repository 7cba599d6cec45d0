"""Splits messages into sentences, in English and Chinese, and removes openings that say nothing."""

import re
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..facts.health import concerns_health
from ..texts.remembered import remember, remember_list

_LOOKED_AT = 20_000  # characters of a message in which a caption stands
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

_INTERJECTIONS = (
    "wow|whoa|woah|woohoo|yay|yeah|yep|yup|yes+|nope|no|oh|ooh|ah|aw+|hey|hi|hello|hiya|haha(?:ha)*|hah"
    "|lol|yo"
    "|ok|okay|alright|sure|of course|definitely|absolutely|totally|exactly|right|true|agreed|indeed|for sure"
    "|certainly|thanks(?: so much| a lot| again| a ton)?|thank you(?: so much| very much)?|cool|awesome|great"
    "|nice|amazing|congrats|congratulations|well|so|anyways?|btw|by the way|oh and|also|guess what|you know"
    "|i mean|to be honest|honestly|actually|speaking of which|as for me|no worries|no problem|good|sorry|hmm+"
    "|um+|uh|please|fortunately|luckily|sadly|unfortunately|got it|good question|that said|long story short"
    "|actually no|no(?:,? no)*,? wait|no,? actually|wait(?:,? no)?|scratch that|correction|i misspoke|in fact"
    "|(?:(?:i['’]m|i am|i was) )?(?:just |only )?(?:kidding|joking)"
    "|sounds good|glad to hear it|i see|and|but|plus|what['’]s up|lately"
)
_NAME = (
    r"(?!(?:I|My|We|Our|It|The|This|That|Yesterday|Today|Tomorrow|Last|On|In)\b)"
    r"(?!\w+(?:ly|day)\b)[A-Z][a-z]{1,14}"
)
# An opening word, optionally the name of the listener, and a punctuation mark.
_OPENING = re.compile(
    rf"(?i:{_INTERJECTIONS})(?:,? {_NAME})?(?:\s*[,!.:…–—]+\s*|\s+-+\s+)"
    r"|(?i:actually|in fact|(?:it )?(?:turns|turned) out(?: that)?) (?=(?i:I|I['’]\w+|my|we|we['’]\w+)\b)"
    r"|(?i:please remember(?: that)?|remember that|by the way|btw|anyways?|and|but|so|also|oh|well|plus"
    r"|because|fyi) "
    r"|(?i:ok(?:ay)?|hm+|mm+|ugh|uff|lol|haha|yeah|yep|yes|nah|hey|hi|hello|hi again|back again|long day"
    r"|news|small update|quick update"
    r"|change of plans?|guess what|one more thing|thx|cheers)(?:\s*[.!:…]+\s*|\s+(?=(?i:I|I['’]\w+|my|we"
    r"|we['’]\w+|our|please|pls|no|the|she|he)\b))"
    r"|(?i:(?:i )?(?:just )?wanted to (?:let you know|tell you|share|update you|give you (?:the|a) heads up)"
    r"(?: that| about| on [^-–,.]{1,60})?(?:\s*[-–,:])? )"
)
_NAME_CALLED = re.compile(rf"{_NAME}[,!] ?(?=(?i:I|I['’]m|I['’]ve|my|we|it|that|the|this)\b)")
_OPENING_CHINESE = re.compile(
    "(?:嗯+|啊|哦|噢|哇|哈+|嘿|嗨|你好|您好|好的|好啊|好|是的|是啊|对啊|对|谢谢你?|多谢|其实|说实话"
    "|顺便说一下|对了|另外"
    "|不过|而且|然后|所以|但是|请记住|记住|请记得|话说|没办法|总之|当然|没错|早上好|晚上好)[，,！!。：:、\\s]+"
    "|请记住|请记得|其实|说实话|但是|可是|不过(?!敏)|而且|然后|所以|并且"
)
# A remark that is meant for the listener alone.
_CLOSING = re.compile(
    r"(?:,? (?:haha\w*|lol|btw|tbh|omg|ok|okay|right|you know|honestly|though|thanks|thank you|cheers"
    r"|please|pls|in case you (?:ever )?\w+(?: \w+){0,3}"
    r"|in case I never told you|forgot to say|believe it or not|what a time|you know why|for sure))+[.!]*$"
    r"|,? (?:but |so |and |please |just )*(?:don['’]t tell (?:anyone|anybody|my \w+|him|her|them)"
    r"|keep (?:it|this|that) (?:a secret|secret|quiet|between us|to yourself))[.!]*$"
    r"|[，,](?:请|但)?(?:别|不要)(?:告诉|跟|和)(?:别人|任何人|其他人)(?:说)?[。！!]*$",
    re.IGNORECASE,
)


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


def caption_of(text: str) -> str | None:
    """The caption of the image in a message; `None` without one."""
    match = _CAPTION.search(text[:_LOOKED_AT])
    return _SPACES.sub(" ", _CONTROL.sub(" ", match.group(1))).strip() if match else None


def is_chinese(sentence: str) -> bool:
    """Whether a sentence is Chinese. A Chinese character counts as much as three letters."""
    return not sentence.isascii() and 3 * len(_CJK.findall(sentence)) > len(_LETTER.findall(sentence))


@remember
def without_opening(sentence: str) -> str:
    """A sentence without greetings, thanks and names at its start, and remarks at its end."""
    opening = _OPENING_CHINESE if is_chinese(sentence) else _OPENING
    for _ in range(5):
        match = opening.match(sentence) or _NAME_CALLED.match(sentence)
        if not match or match.end() == len(sentence):
            break
        sentence = sentence[match.end() :]
    return _CLOSING.sub("", sentence.lstrip("-–—,.! "))


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


# --- numerals ---

_ONE = "\ue001"  # masks the numeral I, which is no pronoun
_NUMERAL = re.compile(
    r"\b(Book|Part|War|Act|Type|Unit|Tier|Class|Grade|Phase|Stage|Level|Chapter|Volume|Vol\.|Section"
    r"|Article|Title|Round|Series|Model"
    r"|Elizabeth|Charles|James|Francis|Napoleon|Nicholas|Leopold|Wilhelm|Peter|Mark|Calculus|Physics"
    r"|Algebra|Statistics) I\b"
)


def mask_numerals(text: str) -> str:
    """The text with the numeral I masked, as in "Book I", so that it is not read as a pronoun."""
    return _NUMERAL.sub(rf"\1 {_ONE}", text)


def unmask_numerals(text: str) -> str:
    """The opposite of `mask_numerals`."""
    return text.replace(_ONE, "I")


# --- quoted speech ---

_HIDDEN = "\ue000"  # masks a character that must not be read
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
        text = text[: start + 1] + _HIDDEN * (end - start - 2) + text[end - 1 :]
    return text


def around_speech(text: str, rewrite: Callable[[str], str | None]) -> str | None:
    """The rewritten text, with quoted speech left as it is; `None` if the text cannot be rewritten."""
    text = text.replace(_HIDDEN, "")
    spans = speech_in(text)
    if not spans:
        return rewrite(text)
    pieces, start = [], 0
    for begin, end in spans:
        pieces.append(text[start:begin])
        start = end
    result = rewrite(_HIDDEN.join([*pieces, text[start:]]))
    for begin, end in spans if result else ():
        result = result.replace(_HIDDEN, text[begin:end], 1) if result else None
    return result
