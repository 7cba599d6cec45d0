"""JSON in what a model has said: alone, in a fence, or with prose around it. Nothing is ever made up.

JSON that ends early, or is broken, is refused as a whole: what stands before the break may be complete, but
what was to follow would be lost, and nobody would know.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...errors import UnusableAnswerError
from ...models.text import strip_thoughts

LONGEST_ANSWER = 1_000_000
"""Characters of an answer that is looked at; a longer one is refused."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRUCTURE = re.compile(rf'{_STRING}|["\[\]{{}}]', re.DOTALL)
# A string without an end is taken to the end: to look for that at each of its quotes would take forever.
_TRAILING_COMMA = re.compile(rf'({_STRING}|".*)|,(?=\s*[\]}}])', re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_FENCED = re.compile(r"```[\w-]*\s(.*?)```", re.DOTALL)
_MOST_VALUES = 1000
_DECODER = json.JSONDecoder(strict=False)  # a line break in a text is no reason to refuse it
_BROKEN = object()


@dataclass(frozen=True)
class Found:
    """The JSON values of an answer."""

    values: list[object]
    is_alone: bool
    """Whether the answer is this one value and nothing else."""


def find_json(text: str) -> Found:
    """The JSON values that stand in a text, in their order, without those inside of others."""
    if len(text) > LONGEST_ANSWER:
        raise UnusableAnswerError(f"the answer is longer than {LONGEST_ANSWER} characters")
    said = _unfenced(_without_thoughts(text).strip().removeprefix("\ufeff"))
    if not said:
        raise UnusableAnswerError("the answer is empty")
    whole = _decoded(said)
    if isinstance(whole, str):
        return find_json(whole)  # JSON that was told as a text
    return Found(list(_embedded(said)), False) if whole is _BROKEN else Found([whole], True)


def _without_thoughts(text: str) -> str:
    """The answer after what a model thinks aloud."""
    answer = strip_thoughts(text)
    if answer is None:
        raise UnusableAnswerError("the answer ends in the middle of the model's thoughts")
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
        elif '"' in span:  # without a quotation mark it is prose in brackets
            raise UnusableAnswerError("the JSON in the answer is broken")
    raise UnusableAnswerError(f"there are more than {_MOST_VALUES} pieces of JSON in the answer")


def _end_of(text: str, start: int) -> int:
    """The position after the bracket that closes the one at the start."""
    depth = 0
    for match in _STRUCTURE.finditer(text, start):
        found = match[0]
        if found == '"':  # of a string without an end
            break
        depth += (found in "[{") - (found in "]}")
        if not depth:
            return match.end()
    raise UnusableAnswerError("the answer ends in the middle of its JSON")


def _decoded(text: str) -> object:
    value = _strictly_decoded(text)
    if value is _BROKEN and _OPENING.match(text):
        value = _strictly_decoded(_TRAILING_COMMA.sub(lambda match: match[1] or "", text))
    return value


def _strictly_decoded(text: str) -> object:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):  # the latter: brackets in brackets in brackets
        return _BROKEN
