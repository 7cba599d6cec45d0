"""Parsing and formatting of times and dates: UTC, ISO 8601 with Z."""

import re
from datetime import UTC, datetime, timedelta

from ..errors import InvalidTypeError, InvalidValueError
from ..sql.columns import check_time

MOST_AHEAD = timedelta(minutes=5)
"""How far the clock of a caller may be ahead."""
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")


def now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def read_time(name: str, given: object) -> datetime | None:
    """Parse a time: a `datetime` with a time zone, or an ISO 8601 text, which is UTC if it has no zone."""
    if not isinstance(given, str):
        return check_time(name, given)
    try:
        time = datetime.fromisoformat(given)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidValueError(f"{name} must be a time in ISO 8601, such as 2024-01-01T10:00:00Z") from error


def latest_allowed() -> datetime:
    """The latest allowed time of a message: now, plus a tolerance for clocks that differ."""
    return now() + MOST_AHEAD


def check_said(name: str, time: datetime) -> datetime:
    """Check the time of a message. Raises `InvalidValueError` if it is in the future."""
    if time > latest_allowed():
        minutes = MOST_AHEAD.total_seconds() / 60
        raise InvalidValueError(f"{name} must not be more than {minutes:g} minutes ahead of the clock")
    return time


def format_time(time: datetime) -> str:
    """A time as ISO 8601 text in UTC, such as `2024-05-07T10:00:00Z`."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def format_date(time: datetime) -> str:
    """The day of a time, such as `7 May 2024`."""
    return f"{time.day} {time:%B %Y}"


def read_date(name: str, given: object) -> str | None:
    """Parse a day, a month or a year: `2024-05-07`, `2024-05` or `2024`."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise InvalidTypeError(f"{name} must be a date as text, not {type(given).__name__}")
    if not _DATE.fullmatch(given) or not _is_in_calendar(given):
        raise InvalidValueError(f"{name} must be a date such as 2024-05-07, 2024-05 or 2024")
    return given


def start_of(date: str) -> datetime:
    """The time at which a day, a month or a year begins."""
    return datetime.fromisoformat(date + "-01-01"[len(date) - 4 :]).replace(tzinfo=UTC)


def end_of(date: str) -> datetime:
    """The last moment of a day, a month or a year."""
    try:
        later = start_of(date) + timedelta(days={4: 366, 7: 31, 10: 1}[len(date)])
    except OverflowError:  # the last year of the calendar
        return datetime.max.replace(tzinfo=UTC)
    if len(date) < 10:  # the first day of the next month or year
        later = later.replace(month=1 if len(date) == 4 else later.month, day=1)
    return later - timedelta(microseconds=1)


def read_bound(name: str, given: object, is_end: bool) -> datetime | None:
    """Parse the start or the end of a period. A day, a month or a year is included completely."""
    if isinstance(given, str) and _DATE.fullmatch(given) and _is_in_calendar(given):
        return end_of(given) if is_end else start_of(given)
    return read_time(name, given)


def _is_in_calendar(date: str) -> bool:
    try:
        start_of(date)
    except ValueError:
        return False
    return True
