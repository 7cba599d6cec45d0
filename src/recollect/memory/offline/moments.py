"""A moment that a text speaks of, and how it is told: to the day, the week, the month or the year."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from ..texts.synonyms import MONTH_NAMES
from .numerals import UNITS

Precision = Literal["day", "weekend", "week", "month", "season", "year"]

_MONTHS = ("", *(name.capitalize() for name in MONTH_NAMES))
_SMALL = ("no", *UNITS[1:13])


@dataclass(frozen=True)
class Moment:
    """When something was or will be, as a text says it."""

    start: int
    end: int
    """Where in the text it stands."""
    phrase: str
    day: date
    """The first day of it."""
    precision: Precision
    words: str
    """The date as a reader wants it; empty where the phrase says all of it already."""
    is_since: bool = False
    """Whether it is the beginning of what lasts."""
    last: date | None = None
    """The end of it, where the text says from when to when."""

    @property
    def value(self) -> str:
        """As `valid_from` has it: a day, a month or a year."""
        return self._to_precision(self.day)

    @property
    def last_value(self) -> str | None:
        """As `valid_to` has it."""
        return self._to_precision(self.last) if self.last else None

    def _to_precision(self, day: date) -> str:
        if self.precision in ("year", "season"):
            return f"{day.year:04}"
        return day.isoformat()[:7] if self.precision == "month" else day.isoformat()


def tell_day(day: date, is_chinese: bool) -> str:
    """A day in words."""
    if is_chinese:
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {_MONTHS[day.month]} {day.year}"


def tell(day: date, precision: Precision, is_chinese: bool) -> str:
    """A day, a month or a year in words."""
    if precision == "day":
        return tell_day(day, is_chinese)
    if precision == "month":
        return f"{day.year}年{day.month}月" if is_chinese else f"{_MONTHS[day.month]} {day.year}"
    return f"{day.year}年" if is_chinese else f"{day.year}"


def tell_span(unit: Precision, count: int, said_on: date, is_chinese: bool) -> str:
    """A week or a weekend by how many it lies before (less than 0) or after the day it was spoken of."""
    anchor = tell_day(said_on, is_chinese)
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
