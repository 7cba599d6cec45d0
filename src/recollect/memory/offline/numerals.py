"""Numbers that are written as words, in English and Chinese."""

import re

UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
"""Whole numbers by their words, from 0 to 19."""
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
WORDS = (
    {word: number for number, word in enumerate(UNITS)}
    | {word: 10 * number for number, word in enumerate(_TENS, 2)}
    | {"a": 1, "an": 1, "couple": 2}
)
NUMBER = r"(?:\d{1,3}|a couple(?: of)?|an?|" + "|".join([*UNITS[1:], *_TENS]) + ")"
"""A pattern for a number of days, weeks or years."""
CHINESE_NUMBER = "(?:[0-9]{1,3}|[一二两三四五六七八九十]{1,3})"

_DIGITS = {character: number for number, character in enumerate("零一二三四五六七八九")} | {"两": 2}
_COUPLE = re.compile(r"^a couple(?: of)?$", re.IGNORECASE)


def number_of(word: str) -> int:
    """The number that an English word or digits stand for."""
    word = word.lower()
    if word.isdigit():
        return int(word)
    return 2 if _COUPLE.match(word) else WORDS[word]


def chinese_number_of(word: str) -> int:
    """The number that Chinese characters or digits stand for, up to ninety-nine."""
    if word.isdigit():
        return int(word)
    tens, ten, units = word.rpartition("十")
    if not ten:
        return _DIGITS.get(word[-1], 1)
    return 10 * _DIGITS.get(tens[-1:], 1) + _DIGITS.get(units[:1], 0)
