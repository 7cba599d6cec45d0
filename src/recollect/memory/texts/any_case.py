"""Patterns that are searched in texts of any case, faster than `re.IGNORECASE` does it.

An alternation of many words costs most of its time where no word begins. A pattern that heeds the case skips
such places by their first letter, and one that ignores it does not. So an ASCII text is searched in lower
case. Any other text is searched as it is, because its lower case may differ in more than the case.
"""

import re
from itertools import islice

_CAPITAL = re.compile(r"\\.|\(\?P|[A-Z]")  # escapes and named groups keep their capitals


class AnyCase:
    """A pattern that ignores the case. `in_ascii` is the part of it that can match an ASCII text."""

    def __init__(self, in_ascii: str, other: str = "", flags: re.RegexFlag = re.NOFLAG) -> None:
        lowered = _CAPITAL.sub(lambda match: match[0] if len(match[0]) > 1 else match[0].lower(), in_ascii)
        self._lowered = re.compile(lowered, flags)
        self._whole = re.compile(f"{in_ascii}|{other}" if other else in_ascii, flags | re.IGNORECASE)

    def search(self, text: str) -> bool:
        """Whether the pattern occurs in a text."""
        if text.isascii():
            return self._lowered.search(text.lower()) is not None
        return self._whole.search(text) is not None

    def count(self, text: str, most: int) -> int:
        """How often the pattern occurs in a text, counted up to a number."""
        found = self._lowered.finditer(text.lower()) if text.isascii() else self._whole.finditer(text)
        return sum(1 for _ in islice(found, most))
