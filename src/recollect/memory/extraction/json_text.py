"""Find JSON in the text of a response: alone, in a code fence, or within prose. Nothing is repaired by guess.

JSON that is cut off or broken is rejected as a whole. The part before the break may be complete, but the rest
would be lost without notice.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import UnusableAnswerError
from ...models.text import strip_thoughts

LONGEST_ANSWER = 1_000_000
"""The length limit of a response, in characters; a longer one is rejected."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRUCTURE = re.compile(rf'{_STRING}|["\[\]{{}}]', re.DOTALL)
# A string without an end extends to the end of the text: backtracking at each quote would take forever.
_TRAILING_COMMA = re.compile(rf'({_STRING}|".*)|,(?=\s*[\]}}])', re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_FENCED = re.compile(r"```[\w-]*\s(.*?)```", re.DOTALL)
_MOST_VALUES = 1000
_DECODER = json.JSONDecoder(strict=False)  # strict=False accepts line breaks in strings
_BROKEN = object()


@dataclass(frozen=True)
class FoundJSON:
    """The JSON values of a response."""

    values: list[object]
    is_alone: bool
    """Whether the response is one value and nothing else."""


def find_json(text: str) -> FoundJSON:
    """The outermost JSON values of a text, in their order. Raises `UnusableAnswerError`."""
    if len(text) > LONGEST_ANSWER:
        raise UnusableAnswerError(f"the response is longer than {LONGEST_ANSWER} characters")
    said = _unfenced(_without_thoughts(text).strip().removeprefix("\ufeff"))
    if not said:
        raise UnusableAnswerError("the response is empty")
    whole = _decoded(said)
    if isinstance(whole, str):
        return find_json(whole)  # JSON within a JSON string
    return FoundJSON(list(_embedded(said)), False) if whole is _BROKEN else FoundJSON([whole], True)


def _without_thoughts(text: str) -> str:
    """The response after a leading block of thoughts."""
    answer = strip_thoughts(text)
    if answer is None:
        raise UnusableAnswerError("the response ends in the middle of the model's thoughts")
    return answer


def _unfenced(text: str) -> str:
    fenced = _FENCED.fullmatch(text)
    return fenced[1].strip() if fenced else text


def _embedded(text: str) -> Iterator[object]:
    position = 0
    for _ in range(_MOST_VALUES):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        position = _end_of(text, opening.start())
        span = text[opening.start() : position]
        value = _decoded(span)
        if value is not _BROKEN:
            yield value
        elif '"' in span:  # without a quote it is prose in brackets
            raise UnusableAnswerError("the JSON in the response is broken")
    raise UnusableAnswerError(f"the response has more than {_MOST_VALUES} JSON values")


def _end_of(text: str, start: int) -> int:
    """The position after the bracket that closes the one at `start`."""
    depth = 0
    for match in _STRUCTURE.finditer(text, start):
        found = match[0]
        if found == '"':  # a string without an end
            break
        depth += (found in "[{") - (found in "]}")
        if not depth:
            return match.end()
    raise UnusableAnswerError("the response ends in the middle of its JSON")


def _decoded(text: str) -> object:
    value = _strictly_decoded(text)
    if value is _BROKEN and _OPENING.match(text):
        value = _strictly_decoded(_TRAILING_COMMA.sub(lambda match: match[1] or "", text))
    return value


def _strictly_decoded(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):  # RecursionError: too deeply nested
        return _BROKEN
