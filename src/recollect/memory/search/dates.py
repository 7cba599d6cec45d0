"""Parses the dates that a question names, and scores how near a day is to them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from .documents import Floats, Numbers

_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if name != "may" else name for name in _MONTHS) + "|sept"
_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
# Case-insensitive matching treats these as "s" and "i", so a month may be spelled with them.
_FOLDED = str.maketrans("ſıİ", "sii")
_LEAD = r"(?:\b(?:in|on|of|during|since|until|by|around|as of|the|early|late|mid)[\s-]+){0,3}"
_ABSOLUTE = re.compile(
    rf"{_LEAD}\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})\b(?:,?\s*(?P<year>\d{{4}})\b)?"
    rf"|{_LEAD}\b(?P<month2>{_MONTH})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s*(?P<year2>\d{{4}})\b)?"
    rf"|{_LEAD}\b(?P<month3>{_MONTH}),?\s+(?:of\s+)?(?P<year3>(?:19|20)\d\d)\b"
    # "may" and "march" are also plain words, so a month alone needs a preposition or the like before it.
    rf"|\b(?:in|of|during|since|until|by|early|late|mid|last|this)[\s-]+(?P<month4>{_MONTH})\b"
    r"|(?P<year5>\d{4})\s*年(?:\s*(?P<month5>\d{1,2})\s*月(?:\s*(?P<day5>\d{1,2})\s*[日号])?)?"
    r"|(?<!\d)(?P<month6>\d{1,2})\s*月(?:\s*(?P<day6>\d{1,2})\s*[日号])?"
    rf"|{_LEAD}\b(?P<year7>(?:19|20)\d\d)-(?P<month7>\d{{2}})(?:-(?P<day7>\d{{2}}))?\b"
    rf"|{_LEAD}\b(?P<day9>\d{{1,2}})\.(?P<month9>\d{{1,2}})\.(?P<year9>(?:19|20)\d\d)\b"
    rf"|{_LEAD}\b(?P<year8>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_RELATIVE: tuple[tuple[re.Pattern[str], int, int], ...] = (
    (re.compile(r"\bthe day before yesterday\b|前天", re.IGNORECASE), 2, 2),
    (re.compile(r"\byesterday\b|昨天|昨晚", re.IGNORECASE), 1, 1),
    (re.compile(r"\btoday\b|\btonight\b|今天|今晚", re.IGNORECASE), 0, 0),
    (re.compile(r"\bthis week\b|这周|本周|这星期", re.IGNORECASE), 0, 6),
    (re.compile(r"\blast week(?:end)?\b|上周|上个?星期", re.IGNORECASE), 3, 13),
    (re.compile(r"\blast month\b|上个?月", re.IGNORECASE), 15, 61),
)
_DAYS_AFTER = 14  # people mention an event soon after it
_DAYS_BEFORE = 3
_WHOLE_YEAR = 0.3  # a year alone says little


@dataclass(frozen=True)
class NamedDate:
    """A day, a month or a year that a question names; parts that it does not name are `None`."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def days(self, year: int) -> tuple[int, int] | None:
        """Its first and last day in a year, as ordinals."""
        try:
            first = date(year, self.month or 1, self.day or 1)
            if self.day:
                last = first
            elif self.month:
                last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
            else:
                last = date(year, 12, 31)
        except (ValueError, OverflowError):
            return None
        return first.toordinal(), last.toordinal()


@dataclass(frozen=True)
class Stretch:
    """A range of days, as ordinals."""

    first: int
    last: int


def named_dates(text: str) -> tuple[str, tuple[NamedDate, ...]]:
    """The text without the dates that it names, and the dates."""
    found = tuple(date for date in map(_read, _ABSOLUTE.finditer(text)) if date is not None)
    return (_ABSOLUTE.sub(" ", text) if found else text), found


def relative_stretches(text: str, today: date) -> tuple[Stretch, ...]:
    """The ranges that relative phrases such as "yesterday" mean."""
    end = today.toordinal()
    return tuple(
        Stretch(max(1, end - most), max(1, end - least))
        for pattern, least, most in _RELATIVE
        if pattern.search(text)
    )


def _read(match: re.Match[str]) -> NamedDate | None:
    given = {name.rstrip("0123456789"): value for name, value in match.groupdict().items() if value}
    month = given.get("month", "").translate(_FOLDED).lower()
    named = NamedDate(
        int(given["year"]) if "year" in given else None,
        int(month) if month.isdecimal() else _NUMBERS[month[:3]] if month else None,
        int(given["day"]) if "day" in given else None,
    )
    return named if named.days(named.year or 2024) else None


def nearness(day: Numbers, dates: tuple[NamedDate, ...], stretches: tuple[Stretch, ...]) -> Floats:
    """How near each day is to the named dates, from 0 to 1. Day 0, an unknown day, is near to nothing."""
    near = np.zeros(len(day))
    for first, last, worth in (*_named(day, dates), *((each.first, each.last, 1.0) for each in stretches)):
        late = np.maximum(day - last, 0) / _DAYS_AFTER
        early = np.maximum(first - day, 0) / _DAYS_BEFORE
        near = np.maximum(near, worth * np.maximum(0.0, 1.0 - late - early))
    return np.where(day > 0, near, 0.0)


def _named(day: Numbers, dates: tuple[NamedDate, ...]) -> Iterator[tuple[int, int, float]]:
    """The first day, last day and weight of each date, for every year of the days if it names no year."""
    if not dates or not (day > 0).any():
        return
    known = day[day > 0]
    years = range(date.fromordinal(int(known.min())).year, date.fromordinal(int(known.max())).year + 1)
    for each in dates:
        for year in (each.year,) if each.year else years:
            stretch = each.days(year)
            if stretch:
                yield *stretch, 1.0 if each.month else _WHOLE_YEAR
