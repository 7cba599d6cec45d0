"""Numbers in a text as numbers: 12000, "12,000", "12k", "twelve thousand" and 一万二 are the same."""

import re
from collections.abc import Iterator
from itertools import pairwise

_DIGITS = re.compile(r"(?<![\w.])\d[\d,'’ ]*(?:\.\d+)?(?: ?(?P<unit>k|K|千|万))?(?![\d])")
_UNITS = {"k": 1000, "K": 1000, "千": 1000, "万": 10_000}
_CHINESE = re.compile("[零〇一二两三四五六七八九十百千万亿]{1,12}")
_CHINESE_DIGITS = {character: number for number, character in enumerate("零一二三四五六七八九")} | {
    "两": 2,
    "〇": 0,
}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
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
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: number for number, word in enumerate(UNITS)} | {
    word: 10 * number for number, word in enumerate(TENS, 2)
}
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "grand": 1000}
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)


def numbers_in(text: str) -> frozenset[float]:
    """The numbers that a text names, in digits or in English or Chinese words."""
    return frozenset([*_in_digits(text), *_in_english(text), *_in_chinese(text)])


def _in_digits(text: str) -> Iterator[float]:
    for match in _DIGITS.finditer(text):
        digits = re.sub(r"[^\d.]", "", match.group())
        unit = _UNITS.get(match["unit"] or "", 1)
        yield float(digits.rstrip(".") or 0) * unit


def _in_english(text: str) -> Iterator[float]:
    words = [word.lower() for word in _WORD.findall(text)]
    total, current, is_open = 0.0, 0.0, False
    for word, after in pairwise([*words, ""]):
        if not is_open and (word == "half" or (word in ("a", "an") and after in _MULTIPLES)):
            current, is_open = 0.5 if word == "half" else 1, after in ("a", *_MULTIPLES)
        elif word == "a" and current == 0.5:
            continue
        elif word in _WORDS:
            current, is_open = current + _WORDS[word], True
        elif word in _MULTIPLES and is_open:
            current *= _MULTIPLES[word]
            if _MULTIPLES[word] >= 1000:
                total, current = total + current, 0
        elif is_open and not (word == "and" and after in _WORDS):
            yield float(total + current)
            total, current, is_open = 0.0, 0.0, False
    if is_open:
        yield float(total + current)


def _in_chinese(text: str) -> Iterator[float]:
    for match in _CHINESE.finditer(text):
        yield float(chinese_number(match.group()))


def chinese_number(words: str) -> int:
    """The value of a Chinese number. 一万二 is 12,000: a last digit counts tenths of the unit before it."""
    if not any(character in _CHINESE_UNITS for character in words):
        return int("".join(str(_CHINESE_DIGITS[character]) for character in words))
    total, section, digit, last_unit = 0, 0, 0, 1
    is_digit_last = False
    for character in words:
        if character in _CHINESE_DIGITS:
            digit, is_digit_last = _CHINESE_DIGITS[character], character not in "零〇"
            last_unit = 1 if character in "零〇" else last_unit
            continue
        unit = _CHINESE_UNITS[character]
        if unit >= 10_000:
            total, section = total + (section + digit) * unit, 0
        else:
            section += (digit or 1) * unit
        digit, last_unit, is_digit_last = 0, unit, False
    return total + section + digit * (last_unit // 10 if is_digit_last and last_unit > 10 else 1)
