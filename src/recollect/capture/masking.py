"""Masks secrets in items and messages before anything of a transcript is stored, and shortens long output."""

import re
from functools import cache
from typing import Any

from ..memory.guard.secrets import PATTERNS, mask_secrets

LONGEST_TEXT = 64_000
"""The most characters of one text of an item. The middle of a longer one is left out."""
_SHORT = 400  # characters of a text that is looked at as a whole
_MANY_LINES = "-----BEGIN"  # a key that goes over many lines
_PLAIN = ("type", "role", "call_id", "name")  # members of an item that hold no text
# A line without these can hold no secret: a word of a pattern, a long word with a digit, many digits.
_DENSE = r"(?<!\S)(?=\S*\d)\S{16}|\d(?:[^\n\d]{0,3}\d){4}|[-*]{4}"


def mask_item(value: Any) -> Any:
    """A JSON value with the secrets in its texts masked, and its long texts shortened."""
    if isinstance(value, str):
        return mask_text(_shortened(value))
    if isinstance(value, dict):
        return {name: each if name in _PLAIN else mask_item(each) for name, each in value.items()}
    return [mask_item(each) for each in value] if isinstance(value, list) else value


def mask_text(text: str) -> str:
    """A text without its secrets. Only lines that may hold one, and those next to them, are searched."""
    doubted = _doubted()
    if len(text) <= _SHORT:
        return mask_secrets(text).text if doubted.search(text.lower()) else text
    if _MANY_LINES in text:
        return mask_secrets(text).text
    lines = text.split("\n")
    marks = [bool(doubted.search(line.lower())) for line in lines]
    near = [any(marks[max(0, place - 1) : place + 2]) for place in range(len(lines))]
    parts: list[str] = []
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and near[end] == near[start]:
            end += 1
        part = "\n".join(lines[start:end])
        parts.append(mask_secrets(part).text if near[start] else part)
        start = end
    return "\n".join(parts)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"


@cache
def _doubted() -> re.Pattern[str]:
    words = {hint for pattern in PATTERNS for hint in pattern.hints if len(hint) > 2 or not hint.isascii()}
    return re.compile("|".join([*map(re.escape, sorted(words)), _DENSE]))
