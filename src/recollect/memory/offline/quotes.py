"""Speech within a text: what stands in quotation marks is not said by the user, or not meant."""

import re
from collections.abc import Callable

_HIDDEN = "\ue000"  # stands for what is not looked at
_SAYING = r"\b(?:says?|said|saying|told \w+|wrote|writes|asked|replied|answered|like|goes)[,:]? "
_QUOTED = re.compile(
    r"(?P<double>(?<![A-Za-z0-9])[\"“][^\"“”\n]{1,300}[\"”](?![A-Za-z0-9]))|(?P<corner>「[^「」\n]{1,300}」)"
    rf"|{_SAYING}(?P<single>['‘](?:[^'‘’\n]|(?<=\w)['’](?=\w)){{1,300}}['’])(?!\w)",
    re.IGNORECASE,
)
# A title has nobody in it who speaks of themselves.
_SPEAKS = re.compile(r"\b(?:I|I['’]\w+|me|my|mine|we|us|our|you|your)\b|[我咱你您]", re.IGNORECASE)


def speech_in(text: str) -> list[tuple[int, int]]:
    """Where in a text somebody is quoted who speaks of themselves or to somebody."""
    spans = [match.span(match.lastgroup or 0) for match in _QUOTED.finditer(text)]
    return [(start, end) for start, end in spans if _SPEAKS.search(text, start, end)]


def without_speech(text: str) -> str:
    """The text with nothing to read where somebody is quoted, all else in its place."""
    for start, end in speech_in(text):
        text = text[: start + 1] + _HIDDEN * (end - start - 2) + text[end - 1 :]
    return text


def around_speech(text: str, told: Callable[[str], str | None]) -> str | None:
    """What is told of a text, with what is quoted in it left as it is."""
    text = text.replace(_HIDDEN, "")
    quoted = speech_in(text)
    if not quoted:
        return told(text)
    pieces, start = [], 0
    for begin, end in quoted:
        pieces.append(text[start:begin])
        start = end
    result = told(_HIDDEN.join([*pieces, text[start:]]))
    for begin, end in quoted if result else ():
        result = result.replace(_HIDDEN, text[begin:end], 1) if result else None
    return result
