"""Whether a text names the date that is the answer to a question."""

import calendar
import re
from datetime import date, timedelta

_MONTHS = tuple(name.lower() for name in calendar.month_name[1:])
_WEEKDAYS = tuple(name.lower() for name in calendar.day_name)
_MONTH = "(" + "|".join([*_MONTHS, *(month[:3] for month in _MONTHS)]) + r")[a-z]*\.?"
_NOTATIONS = (
    (re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ?{_MONTH},? (\d{{4}})", re.IGNORECASE), "dmy"),
    (re.compile(rf"\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})", re.IGNORECASE), "mdy"),
    (re.compile(rf"\b{_MONTH},? (\d{{4}})", re.IGNORECASE), "my"),
    (re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b"), "ymd"),
    (re.compile(rf"\b(\d{{1,2}}) ?{_MONTH}", re.IGNORECASE), "dm"),
    (re.compile(r"\b((?:19|20)\d\d)\b"), "y"),
)
_RELATED = re.compile(
    r"(?:(?P<count>two) )?(?P<unit>weekend|week|" + "|".join(_WEEKDAYS) + r")s? (?P<side>before|of|after)",
    re.IGNORECASE,
)

Parts = dict[str, int]


def dates_in(text: str) -> list[Parts]:
    """The dates in a text, as far as each is named."""
    found: list[Parts] = []
    for pattern, letters in _NOTATIONS:
        found += [_parts(letters, match) for match in pattern.finditer(text)]
        text = pattern.sub(" ; ", text)
    return found


def _parts(letters: str, match: re.Match[str]) -> Parts:
    return {letter: _number(part) for letter, part in zip(letters, match.groups(), strict=True)}


def is_date(answer: str) -> bool:
    """Whether an answer is a date at all: durations and names are not."""
    return bool(dates_in(answer))


def names_date(text: str, answer: str) -> bool:
    """Whether a text has the date of an answer, in any usual notation; all of it that the answer names."""
    wanted = dates_in(answer)[0]
    named = dates_in(text)
    has_it = any(all(other.get(part) == value for part, value in wanted.items()) for other in named)
    related = _RELATED.search(answer)
    if not related or "d" not in wanted:
        return has_it
    return (has_it and related.group().lower() in text.lower()) or any(
        _is_that_weekday(other, wanted, related) for other in named
    )


def _is_that_weekday(named: Parts, wanted: Parts, related: re.Match[str]) -> bool:
    unit = related["unit"].lower()
    if unit not in _WEEKDAYS or {"d", "m", "y"} - named.keys() or related["side"].lower() != "before":
        return False
    anchor = date(wanted["y"], wanted["m"], wanted["d"])
    back = (anchor.weekday() - _WEEKDAYS.index(unit) - 1) % 7 + 1
    return date(named["y"], named["m"], named["d"]) == anchor - timedelta(days=back)


def _number(part: str) -> int:
    low = part.lower()
    if low.isdigit():
        return int(low)
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(low[:3]))
