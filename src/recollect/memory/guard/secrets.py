"""Masks secrets in texts: keys and tokens, passwords, card numbers and national ids."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .credentials import CREDENTIALS
from .numbers import NUMBERS
from .patterns import SecretPattern
from .statements import STATEMENTS

# Each with a condition that nearly no ordinary sentence meets, so that most patterns are not tried. The forms
# that say most about a secret come first, so it gets the best name.
_GROUPS = (
    (re.compile(r"\S{16}"), CREDENTIALS),
    (re.compile(""), STATEMENTS),
    (re.compile(r"\d"), NUMBERS),
)
PATTERNS: tuple[SecretPattern, ...] = tuple(pattern for _, group in _GROUPS for pattern in group)
"""All kinds of secrets."""

_PUNCTUATION = ".!?。！？"  # at the end of a sentence: no part of the secret


@dataclass(frozen=True)
class Masked:
    """A text without its secrets, and how many secrets of each kind it had."""

    text: str = field(repr=False)
    found: Mapping[str, int] = field(default_factory=dict)


def mask_secrets(text: str) -> Masked:
    """Replace the secrets in a text by their kinds, such as `[masked API key]`.

    A masked text has no secrets: masking it again changes nothing.
    """
    if not text:
        return Masked(text)
    found: Counter[str] = Counter()
    lowered = text.lower()
    for condition, patterns in _GROUPS:
        for pattern in patterns if condition.search(text) else ():
            if _has_any(lowered, pattern.hints):
                text, count = _mask(pattern, text)
                if count:
                    found[pattern.name] += count
                    lowered = text.lower()
    return Masked(text, dict(found))


def mask_value(value: Any) -> Any:
    """A JSON value with the secrets in its texts masked."""
    if isinstance(value, str):
        return mask_secrets(value).text
    if isinstance(value, Mapping):
        return {name: mask_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask_value(each) for each in value]
    return value


def label(name: str) -> str:
    """The text that replaces a secret of a kind."""
    return f"[masked {name}]"


def _has_any(text: str, hints: tuple[str, ...]) -> bool:
    for hint in hints:  # noqa: SIM110 - `any` takes twice as long, and there are many patterns
        if hint in text:
            return True
    return False


def _mask(pattern: SecretPattern, text: str) -> tuple[str, int]:
    """The text without the secrets of one kind, and how many there were."""
    parts: list[str] = []
    end = 0
    for match in pattern.regex.finditer(text):
        group = "secret" if "secret" in pattern.regex.groupindex and match["secret"] is not None else 0
        if pattern.check is None or pattern.check(match[group]):
            parts += [text[end : match.start(group)], label(pattern.name)]
            end = match.start(group) + len(match[group].rstrip(_PUNCTUATION))
    return "".join([*parts, text[end:]]), len(parts) // 2
