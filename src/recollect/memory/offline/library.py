"""Dates, resolved by `dateparser`, always in the same way: whatever the machine's clock, zone and locale."""

from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, Literal

Tense = Literal["past", "future"]
_REMEMBERED = 2048  # phrases with their day


@lru_cache(_REMEMBERED)
def resolve(phrase: str, is_chinese: bool, said_on: date, tense: Tense) -> date | None:
    """The day that a phrase means which was said on a day; `None` where the library does not know."""
    found = _parser(is_chinese, said_on, tense).get_date_data(phrase).date_obj
    return None if found is None else found.date()


@lru_cache(64)
def _parser(is_chinese: bool, said_on: date, tense: Tense) -> Any:
    # Imported when first needed: it takes longer than all else here.
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
