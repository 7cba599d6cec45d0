"""Finds the dates in an English sentence.

A cheap pattern finds the phrase and its precision. The `dateparser` library resolves it.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from itertools import zip_longest

from ..texts.any_case import AnyCase
from .moments import (
    NUMBER,
    Moment,
    Precision,
    Tense,
    first_of,
    format_date,
    format_span,
    monday_of,
    number_of,
    resolve,
)

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b"
_YEAR = r"(?:19|20)\d\d\b"
_SEASON = r"(?:spring|summer|fall|autumn|winter)"
_UNIT = r"(?P<unit>day|week|weekend|month|year)s?"
_WINTER = 12
_MONTHS = 12
_TO = r" ?(?:to|until|till|through|and|-|–) ?(?:the )?"
_TH = r"(?:st|nd|rd|th)?"
_ORDINAL = {
    word: number
    for number, word in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
            "fifteenth",
            "sixteenth",
            "seventeenth",
            "eighteenth",
            "nineteenth",
            "twentieth",
        ],
        1,
    )
}
_NTH = "|".join(_ORDINAL)
_ORDINALS = re.compile(rf"\b(?:{_NTH})\b", re.IGNORECASE)
_FIRST_MONTH = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": _WINTER}
_PERFECT = re.compile(r"['’](?:ve|s)\b|\b(?:have|has|been)\b", re.IGNORECASE)

Found = tuple[date, Precision, str] | tuple[date, Precision, str, date] | None
"""The first day, its precision, the date in words, and optionally the last day."""


def _day(phrase: str, said_on: date, tense: Tense) -> Found:
    return _found(resolve(phrase, False, said_on, tense), "day")


def _whole_date(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    plain = _ORDINALS.sub(lambda word: str(_ORDINAL[word.group().lower()]), match.group())
    found = _day(re.sub(r"(?<=\d)(?:st|nd|rd|th)| of\b|\bthe |,", "", plain), said_on, tense)
    return found and (found[0], "day", "" if re.search(_YEAR, match.group()) else found[2])


def _feast(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    """A day with a name, such as Christmas."""
    name = match.group().lower()
    phrase = "25 December" if "christmas" in name else "31 December" if "eve" in name else "1 January"
    return _day(phrase, said_on, "past" if "last" in name else tense)


def _days(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    """A range of days within a month."""
    year = match["year"] or ""
    last = resolve(f"{match['last']} {match['month']} {year}".strip(), False, said_on, tense)
    if last is None or int(match["first"]) >= last.day:
        return None
    first = last.replace(day=int(match["first"]))
    return first, "day", "" if year else f"{first.day} to {format_date(last, 'day', False)}", last


def _years(match: re.Match[str], _said_on: date, _tense: Tense) -> Found:
    first, last = int(match["first"]), int(match["last"])
    return (date(first, 1, 1), "year", "", date(last, 1, 1)) if first < last else None


def _numbers(match: re.Match[str], _said_on: date, _tense: Tense) -> Found:
    """A numeric date. If day and month cannot be told apart, only the year is certain."""
    one, other, year = int(match["one"]), int(match["other"]), int(match["year"])
    if one != other and max(one, other) <= _MONTHS:
        return _found(date(year, 1, 1), "year", "")
    return _found(date(year, min(one, other), max(one, other)), "day")


def _year_first(match: re.Match[str], _said_on: date, _tense: Tense) -> Found:
    return _found(date(int(match["year"]), int(match["month"]), int(match["day"])), "day")


def _named_day(match: re.Match[str], said_on: date, _tense: Tense) -> Found:
    phrase = match.group().lower()
    known = {"last night": "yesterday", "this morning": "today", "tonight": "today", "this evening": "today"}
    known |= {"this afternoon": "today", "earlier today": "today", "the day before yesterday": "2 days ago"}
    return _day(known.get(phrase, phrase), said_on, "past")


def _weekday(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    word = (match["which"] or "").lower()
    tense = "past" if "last" in word or "past" in word else "future" if word == "next" else tense
    found = _day(match["weekday"].rstrip("."), said_on, tense)
    if found and found[0] == said_on:  # a day of that name that is over, or to come
        found = _day(match["weekday"], said_on + timedelta(days=-1 if tense == "past" else 1), tense)
    return found


def _ago(match: re.Match[str], said_on: date, _tense: Tense) -> Found:
    number, unit = number_of(match["number"]), match["unit"].lower()
    if unit in ("week", "weekend"):
        return _span(unit, -number, said_on)
    return _in_unit(f"{number} {unit}s ago", unit, said_on)


def _ahead(match: re.Match[str], said_on: date, _tense: Tense) -> Found:
    number, unit = number_of(match["number"]), match["unit"].lower()
    if unit in ("week", "weekend"):
        return _span(unit, number, said_on)
    return _in_unit(f"in {number} {unit}s", unit, said_on)


def _in_unit(phrase: str, unit: str, said_on: date) -> Found:
    precision: Precision = "day" if unit == "day" else "month" if unit == "month" else "year"
    return _found(resolve(phrase, False, said_on, "past"), precision)


def _span(unit: str, count: int, said_on: date) -> Found:
    span: Precision = "weekend" if unit == "weekend" else "week"
    start = monday_of(said_on) + timedelta(weeks=count, days=5 if unit == "weekend" else 0)
    return start, span, format_span(span, count, said_on, False)


def _relative_unit(match: re.Match[str], said_on: date, _tense: Tense) -> Found:
    which, unit = match["which"].lower().removeprefix("the "), match["unit"].lower()
    count = {"last": -1, "past": -1, "this past": -1, "previous": -1, "next": 1, "coming": 1}.get(which, 0)
    if unit in ("week", "weekend"):
        return _span(unit, count, said_on)
    if not count:
        precision: Precision = "month" if unit == "month" else "year"
        return _found(said_on, precision)
    return _in_unit("in 1 " + unit if count > 0 else "1 " + unit + " ago", unit, said_on)


def _season(match: re.Match[str], said_on: date, _tense: Tense) -> Found:
    which, season = match["which"].lower(), match["season"].lower()
    month, year = _FIRST_MONTH[season], said_on.year
    if "last" in which or "past" in which:
        is_over = said_on.month > (month + 2) % 12
        year -= (not is_over) + (month == _WINTER)  # a winter ends in the year after it began
    elif which == "next" and month <= said_on.month:
        year += 1
    return date(year, month, 1), "season", f"{season} {year}"


def _month(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    which = (match["which"] or match.group().split()[0]).lower()
    tense = "past" if which in ("last", "since") else "future" if which in ("next", "until") else tense
    if match["year"]:
        return _found(resolve(f"1 {match['month']} {match['year']}", False, said_on, tense), "month", "")
    if len(match["month"]) < 4 and match["month"] not in ("May", "June", "July") and not match["which"]:
        return None  # "Mar" and "Jan" are names, too
    return _found(resolve(f"1 {match['month']}", False, said_on, tense), "month")


def _day_of_month(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    day = said_on
    for _ in range(62):  # back, or ahead, to the next day with that number
        if day.day == int(match["day"]):
            return day, "day", format_date(day, "day", False)
        day += timedelta(days=-1 if tense == "past" else 1)
    return None


def _year(match: re.Match[str], said_on: date, tense: Tense) -> Found:
    return _found(resolve(f"1 January {match['year']}", False, said_on, tense), "year", "")


def _lasting(match: re.Match[str], said_on: date, _tense: Tense) -> Found:
    if match.start() and not _PERFECT.search(match.string):
        return None  # it lasted so long, and is over
    number, unit = number_of(match["number"]), match["unit"].lower()
    found = _in_unit(f"{number} {unit}s ago", unit, said_on)
    return found and (found[0], found[1], f"since {found[2]}")


def _found(day: date | None, precision: Precision, words: str | None = None) -> Found:
    if day is None:
        return None
    return first_of(day, precision), precision, format_date(day, precision, False) if words is None else words


_Resolver = Callable[[re.Match[str], date, Tense], Found]
_FLAGS = re.IGNORECASE
# The order matters: the first pattern that matches at a position wins.
_PATTERNS: tuple[tuple[re.Pattern[str], _Resolver], ...] = (
    (
        re.compile(
            rf"\b(?:the )?(?P<first>\d{{1,2}}){_TH}{_TO}(?P<last>\d{{1,2}}){_TH}(?: of)? (?P<month>{_MONTH})"
            rf"(?:,? (?P<year>{_YEAR}))?"
        ),
        _days,
    ),
    (
        re.compile(
            rf"\b(?P<month>{_MONTH}) (?:the )?(?P<first>\d{{1,2}}){_TH}{_TO}(?P<last>\d{{1,2}}){_TH}\b(?!:)"
            rf"(?:,? (?P<year>{_YEAR}))?"
        ),
        _days,
    ),
    (re.compile(rf"\b(?:from|between) (?P<first>{_YEAR}){_TO}(?P<last>{_YEAR})", _FLAGS), _years),
    (re.compile(r"\b(?P<year>(?:19|20)\d\d)/(?P<month>\d{1,2})/(?P<day>\d{1,2})\b"), _year_first),
    (re.compile(rf"\b(?P<one>\d{{1,2}})[/.](?P<other>\d{{1,2}})[/.](?P<year>{_YEAR})"), _numbers),
    (
        re.compile(
            rf"\b\d{{4}}-\d\d-\d\d\b|\b(?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)?|(?i:{_NTH}) of)"
            rf" {_MONTH}(?:,? {_YEAR})?"
        ),
        _whole_date,
    ),
    (re.compile(rf"\b{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?\b(?:,? {_YEAR})?"), _whole_date),
    (
        re.compile(
            r"\b(?:the day before yesterday|yesterday|last night|(?:earlier )?today|tonight|tomorrow"
            r"|this (?:morning|afternoon|evening))\b",
            _FLAGS,
        ),
        _named_day,
    ),
    (
        re.compile(
            r"\b(?:on |at |last )?(?:christmas(?: day)?|new year['’]?s(?: (?:day|eve))?)(?! (?:party|tree"
            r"|market|song|gift|present))\b",
            _FLAGS,
        ),
        _feast,
    ),
    (re.compile(rf"\b(?P<number>{NUMBER}) {_UNIT} (?:ago|back|earlier)\b", _FLAGS), _ago),
    (re.compile(rf"\b(?:in|within) (?P<number>{NUMBER}) {_UNIT}\b", _FLAGS), _ahead),
    (re.compile(rf"\b(?P<which>last|this past|past|next|this)\s(?P<season>{_SEASON})\b", _FLAGS), _season),
    (
        re.compile(
            r"\b(?P<which>last|this past|(?:the )?past|(?:the )?previous|(?:the )?next|(?:the )?coming|this) "
            r"(?P<unit>week|weekend|month|year)\b(?!['’])",
            _FLAGS,
        ),
        _relative_unit,
    ),
    (
        re.compile(
            rf"\b(?:(?P<which>last|this past|past|this|next) |(?:on|by|until|till"
            rf"|before) )(?P<weekday>{_WEEKDAY})(?!s)\b",
            _FLAGS,
        ),
        _weekday,
    ),
    (
        re.compile(
            rf"\b(?:(?P<which>last|this|next)|in|since|during|of|until|by|early|late|before"
            rf"|after) (?P<month>{_MONTH})(?: (?P<year>{_YEAR}))?"
        ),
        _month,
    ),
    (
        re.compile(
            r"\b(?:on|for|by|to|until|till) the (?P<day>\d{1,2})(?:st|nd|rd|th)\b"
            r"(?! (?:floor|street|avenue|grade|of|place|time|day|century|row))",
            _FLAGS,
        ),
        _day_of_month,
    ),
    (
        re.compile(
            rf"\b(?:in|since|during|from|until|of|by|summer|winter|spring|fall) (?P<year>{_YEAR})", _FLAGS
        ),
        _year,
    ),
    (
        re.compile(
            r"\bfor (?:about |around |almost |nearly |over |just under |the (?:past|last) )?"
            rf"(?P<number>{NUMBER}) (?P<unit>month|year)s?\b",
            _FLAGS,
        ),
        _lasting,
    ),
    (re.compile(rf"^(?P<number>{NUMBER}) (?P<unit>month|year)s now\b", _FLAGS), _lasting),
)
# Each pattern needs one of these. Most sentences have none.
_NAMES_DATE = re.compile(rf"\d|{_MONTH}")
_NAMES_TIME = AnyCase(
    rf"\b{_WEEKDAY}|day|week|month|year|night|morning|afternoon|evening|tomorrow|christmas|{_SEASON}"
)
_MOST = 3  # dates of a sentence
_UNTIL = re.compile(r" (?:to|until|till|through|[-–]) (?:the )?", _FLAGS)
# These words tell of the past, unless the sentence looks ahead.
_NOW = (
    r"(?<!\bam )(?<!\bis )(?<!\bare )(?<!\bbe )(?<!\bget "
    r")(?<!getting )(?<!['’]m )(?<!['’]re )(?<!['’]s )(?<!\bso )(?<!\ban )(?<!\ba )"
)
_WAS = (
    "ate|became|began|bent|bought|broke|brought|built|came|caught|chose|dealt|did|drank|drew|drove|dug|fell|felt|flew"
    "|forgot|fought|found|froze|gave|got|grew|had|heard|held|hid|hung|kept|knew|laid|led|lent|lit|lost|made|meant|met"
    "|paid|ran|rang|rode|rose|said|sang|sank|sat|sent|shook|shot|showed|shut|slept|sold|spent|spoke|spun|stole|stood"
    "|stuck|swam|swept|swore|taught|thought|threw|told|took|tore|understood|used|was|went|were|woke|won|wore|wrote"
)
_PAST = AnyCase(
    rf"\b(?:ago|yesterday|since|ever|back in|(?:a |this )?(?:photo|pic|picture|snap)|it['’]s been|quit"
    rf"|left)\b|{_NOW}\b(?:{_WAS})\b"
    rf"|{_NOW}\b(?!(?:need|bed|red|wed|feed|speed|married|advanced|used|interested|hundred"
    rf"|unlimited)\b)[a-z]{{2,}}ed\b|\b(?:have|has|['’]ve) (?!to\b)(?:\w+ )?(?:\w+ed|been|gone|had|done"
    rf"|got)\b"
)
_UP_TO = re.compile(r"\b(?:until|till)(?: \w+){0,2} $", _FLAGS)
_FUTURE = AnyCase(
    r"\b(?:will|going to|gonna|next|tomorrow|plan(?:ning|s)?|upcoming|can['’]?t wait|looking forward"
    r"|booked|scheduled|postpon\w+|reschedul\w+|moved to|signed up"
    r"|registered|invited|expecting|due|hop(?:e|ing) to|coming up|about to|thinking (?:of|about)|until"
    r"|expires?)\b|['’]ll\b"
)


def _tense_of(sentence: str) -> Tense:
    """Plans are in the future: only a sentence that tells of the past means a day that is over."""
    return "past" if _PAST.search(sentence) and not _FUTURE.search(sentence) else "future"


def moments_in(sentence: str, said_on: date, tense: Tense | None = None) -> list[Moment]:
    """The first dates in an English sentence, in their order. `tense` is that of its verb, if it is known."""
    if not _NAMES_TIME.search(sentence) and not _NAMES_DATE.search(sentence):
        return []
    tense = tense or _tense_of(sentence)
    found: list[Moment] = []
    for pattern, resolver in _PATTERNS:
        for match in pattern.finditer(sentence):
            if any(match.start() < other.end and other.start < match.end() for other in found):
                continue
            moment = _moment(match, _resolved(resolver, match, said_on, tense))
            found += [moment] if moment else []
    return _with_ends(sorted(found, key=lambda moment: moment.start)[:_MOST], sentence)


def _with_ends(moments: list[Moment], sentence: str) -> list[Moment]:
    """The moments, with two that have "to" between them joined into a range."""
    return [
        replace(moment, last=after.day) if after and _is_until(moment, after, sentence) else moment
        for moment, after in zip_longest(moments, moments[1:])
    ]


def _is_until(moment: Moment, after: Moment, sentence: str) -> bool:
    is_linked = _UNTIL.fullmatch(sentence, moment.end, after.start)
    return bool(is_linked) and moment.precision == after.precision and moment.day < after.day


def _resolved(resolver: _Resolver, match: re.Match[str], said_on: date, tense: Tense) -> Found:
    try:
        return resolver(match, said_on, tense)
    except (OverflowError, ValueError):  # before the first year, or after the last
        return None


def _moment(match: re.Match[str], found: Found) -> Moment | None:
    if not found:
        return None
    phrase = match.group().rstrip(".")
    is_since = phrase.lower().startswith("since") or found[2].startswith("since")
    last = found[3] if len(found) > 3 else None
    is_until = bool(_UP_TO.search(match.string[: match.start()] + phrase.split(" ")[0] + " "))
    return Moment(match.start(), match.start() + len(phrase), phrase, *found[:3], is_since, last, is_until)
