"""Moments that a text names, numbers written as words, and the resolution of phrases by `dateparser`."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Literal

from ..texts.numbers import TENS, UNITS
from ..texts.synonyms import MONTH_NAMES

# --- numbers written as words ---

WORDS = (
    {word: number for number, word in enumerate(UNITS)}
    | {word: 10 * number for number, word in enumerate(TENS, 2)}
    | {"a": 1, "an": 1, "couple": 2}
)
NUMBER = r"(?:\d{1,3}|a couple(?: of)?|an?|" + "|".join([*UNITS[1:], *TENS]) + ")"
"""A pattern for a number of days, weeks or years."""
CHINESE_NUMBER = "(?:[0-9]{1,3}|[一二两三四五六七八九十]{1,3})"

_DIGITS = {character: number for number, character in enumerate("零一二三四五六七八九")} | {"两": 2}
_COUPLE = re.compile(r"^a couple(?: of)?$", re.IGNORECASE)


def number_of(word: str) -> int:
    """The value of an English number word or of digits."""
    word = word.lower()
    if word.isdigit():
        return int(word)
    return 2 if _COUPLE.match(word) else WORDS[word]


def chinese_number_of(word: str) -> int:
    """The value of a Chinese number up to ninety-nine, or of digits."""
    if word.isdigit():
        return int(word)
    tens, ten, units = word.rpartition("十")
    if not ten:
        return _DIGITS.get(word[-1], 1)
    return 10 * _DIGITS.get(tens[-1:], 1) + _DIGITS.get(units[:1], 0)


# --- moments ---

Precision = Literal["day", "weekend", "week", "month", "season", "year"]

_MONTHS = ("", *(name.capitalize() for name in MONTH_NAMES))
_SMALL = ("no", *UNITS[1:13])


@dataclass(frozen=True)
class Moment:
    """A date or period that a text names."""

    start: int
    end: int
    """The span of the phrase in the text."""
    phrase: str
    day: date
    """Its first day."""
    precision: Precision
    words: str
    """The date in words; empty if the phrase is complete by itself."""
    is_since: bool = False
    """Whether it is the start of something that lasts."""
    last: date | None = None
    """Its last day, if the text names a range."""
    is_until: bool = False
    """Whether "until" stands before it."""

    @property
    def value(self) -> str:
        """The value for `valid_from`: a day, a month or a year."""
        return self._to_precision(self.day)

    @property
    def last_value(self) -> str | None:
        """The value for `valid_to`."""
        return self._to_precision(self.last) if self.last else None

    def _to_precision(self, day: date) -> str:
        if self.precision in ("year", "season"):
            return f"{day.year:04}"
        return day.isoformat()[:7] if self.precision == "month" else day.isoformat()


def format_day(day: date, is_chinese: bool) -> str:
    """A day in words."""
    if is_chinese:
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {_MONTHS[day.month]} {day.year}"


def format_date(day: date, precision: Precision, is_chinese: bool) -> str:
    """A day, a month or a year in words."""
    if precision == "day":
        return format_day(day, is_chinese)
    if precision == "month":
        return f"{day.year}年{day.month}月" if is_chinese else f"{_MONTHS[day.month]} {day.year}"
    return f"{day.year}年" if is_chinese else f"{day.year}"


def format_span(unit: Precision, count: int, said_on: date, is_chinese: bool) -> str:
    """A week or a weekend in words, `count` weeks before (negative) or after the day it was mentioned."""
    anchor = format_day(said_on, is_chinese)
    if is_chinese:
        return f"{anchor}{_chinese_span(unit, count)}"
    if not count:
        return f"the {unit} of {anchor}"
    side = "before" if count < 0 else "after"
    number = abs(count)
    if number == 1:
        return f"the {unit} {side} {anchor}"
    return f"{_SMALL[number] if number < len(_SMALL) else number} {unit}s {side} {anchor}"


def _chinese_span(unit: Precision, count: int) -> str:
    name = "周" if unit == "week" else "个周末"
    if not count:
        return f"所在的{name}" if unit == "week" else f"所在的那{name}"
    number = "一" if abs(count) == 1 else str(abs(count))
    return f"的{'前' if count < 0 else '后'}{number}{name}"


def first_of(day: date, precision: Precision) -> date:
    """The first day of the month or the year of a day."""
    if precision == "year":
        return day.replace(month=1, day=1)
    return day.replace(day=1) if precision == "month" else day


def monday_of(day: date) -> date:
    """The first day of the week of a day."""
    return day - timedelta(days=day.weekday())


# --- resolution of phrases ---

Tense = Literal["past", "future"]
_REMEMBERED = 2048  # resolved phrases in the cache


@lru_cache(_REMEMBERED)
def resolve(phrase: str, is_chinese: bool, said_on: date, tense: Tense) -> date | None:
    """The day that a phrase means if it is said on a day; `None` if the library cannot resolve it.

    The result does not depend on the clock, time zone or locale of the machine.
    """
    found = _parser(is_chinese, said_on, tense).get_date_data(phrase).date_obj
    return None if found is None else found.date()


@lru_cache(64)
def _parser(is_chinese: bool, said_on: date, tense: Tense) -> Any:
    # Imported when first needed, because the import is slow.
    from dateparser.date import DateDataParser

    settings = {
        "RELATIVE_BASE": datetime.combine(said_on, time(12)),
        "PREFER_DATES_FROM": tense,
        "PREFER_DAY_OF_MONTH": "first",
        "TIMEZONE": "UTC",
        "TO_TIMEZONE": "UTC",
        "RETURN_AS_TIMEZONE_AWARE": False,
        "DATE_ORDER": "DMY",
        "NORMALIZE": False,
    }
    return DateDataParser(languages=["zh" if is_chinese else "en"], settings=settings)
