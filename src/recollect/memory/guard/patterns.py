"""The description of a kind of secret, as the tables of patterns hold it."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SecretPattern:
    """A kind of secret, and how it is found in a text."""

    name: str
    """Its name in a masked text and in counts. It never says anything about a value."""
    hints: tuple[str, ...]
    """Texts in lower case, one of which occurs wherever the pattern matches. Others are not searched."""
    regex: re.Pattern[str]
    """Its group `secret` is masked, or the whole match if it has no such group."""
    check: Callable[[str], bool] | None = None
    """Tells a secret from other texts of the same form, such as by a checksum."""


def secret(
    name: str, hints: str, regex: str, check: Callable[[str], bool] | None = None, *, any_case: bool = False
) -> SecretPattern:
    """A kind of secret. `hints` are separated by spaces."""
    flags = re.IGNORECASE if any_case else re.NOFLAG
    return SecretPattern(name, tuple(hints.split()), re.compile(regex, flags), check)
