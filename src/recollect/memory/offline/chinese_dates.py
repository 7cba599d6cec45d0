"""Finds the dates in a Chinese sentence."""

import re
from collections.abc import Callable
from datetime import date, timedelta

from .moments import (
    CHINESE_NUMBER,
    Moment,
    Precision,
    Tense,
    chinese_number_of,
    first_of,
    format_date,
    format_span,
    monday_of,
    resolve,
)

DONE = re.compile("了(?!解)|(?<![超经])过(?![敏程去年节于分度来])|曾经?|刚(?:刚|才)?")

Found = tuple[date, Precision, str] | tuple[date, Precision, str, date] | None
"""The first day, its precision, the date in words, and optionally the last day."""

_WEEKDAYS = {character: number for number, character in enumerate("一二三四五六日")} | {"天": 6}
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
_YEARS_AWAY = {"前年": -2, "去年": -1, "今年": 0, "明年": 1, "后年": 2}
_UNITS: dict[str, Precision] = {"天": "day", "日": "day", "月": "month", "年": "year"}
_TO_COME = re.compile("[要会将打算准备计划下明后]")
_TENSES: tuple[Tense, Tense] = ("past", "future")
_MOST = 3  # dates of a sentence


def _named_day(match: re.Match[str], said_on: date) -> Found:
    phrase = {"昨晚": "昨天", "今晚": "今天", "今早": "今天", "明晚": "明天"}.get(
        match.group(), match.group()
    )
    return _found_date(resolve(phrase, True, said_on, "past"), "day")


def _weekday(match: re.Match[str], said_on: date) -> Found:
    weeks = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["which"] or "", 0)
    day = monday_of(said_on) + timedelta(weeks=weeks, days=_WEEKDAYS[match["weekday"]])
    if not match["which"] and day >= said_on and DONE.search(match.string):
        day -= timedelta(weeks=1)
    return _found_date(day, "day")


def _week(match: re.Match[str], said_on: date) -> Found:
    weeks = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["which"], 0)
    if match["end"]:
        return (
            monday_of(said_on) + timedelta(weeks=weeks, days=5),
            "weekend",
            format_span("weekend", weeks, said_on, True),
        )
    return monday_of(said_on) + timedelta(weeks=weeks), "week", format_span("week", weeks, said_on, True)


def _month(match: re.Match[str], said_on: date) -> Found:
    months = {"上上": -2, "上": -1, "下": 1, "下下": 2}.get(match["which"], 0)
    phrase = f"{abs(months)} months ago" if months < 0 else f"in {months} months"
    day = resolve(phrase, False, said_on, "past") if months else said_on
    return _found_date(day, "month")


def _day_of_month(match: re.Match[str], said_on: date) -> Found:
    found = _month(match, said_on)
    return found and _found_date(found[0].replace(day=chinese_number_of(match["day"])), "day")


def _ago(match: re.Match[str], said_on: date) -> Found:
    number, unit = chinese_number_of(match["number"]), match["unit"]
    is_past = match["side"] in ("前", "以前", "之前")
    if unit in ("周", "星期", "礼拜"):
        weeks = -number if is_past else number
        return monday_of(said_on) + timedelta(weeks=weeks), "week", format_span("week", weeks, said_on, True)
    precision = _UNITS[unit]
    phrase = f"{number} {precision}s ago" if is_past else f"in {number} {precision}s"
    return _found_date(resolve(phrase, False, said_on, "past"), precision)


def _whole_date(match: re.Match[str], said_on: date) -> Found:
    month, day = chinese_number_of(match["month"]), match["day"]
    year = _year_of(match["year"], said_on)
    number = chinese_number_of(day) if day else 1
    if not 1 <= month <= 12 or not 1 <= number <= 31:
        return None
    if year:
        resolved: date | None = date(year, month, number)
    else:
        resolved = _nearest(f"{number} {_ENGLISH[month]}", match.string, said_on)
    found = _found_date(resolved, "day" if day else "month")
    return found and (*found[:2], "" if match["year"] and match["year"].isdigit() else found[2])


def _nearest(phrase: str, sentence: str, said_on: date) -> date | None:
    """The past day if the sentence says it is done, the future day if it is planned, else the nearer one."""
    past, future = (resolve(phrase, False, said_on, tense) for tense in _TENSES)
    if past is None or future is None or DONE.search(sentence):
        return past
    return future if _TO_COME.search(sentence) or future - said_on < said_on - past else past


def _days(match: re.Match[str], said_on: date) -> Found:
    """From a day to another one."""
    found = _whole_date(match, said_on)
    if found is None:
        return None
    first, month = found[0], match["last_month"]
    last = first.replace(
        month=chinese_number_of(month) if month else first.month, day=chinese_number_of(match["last_day"])
    )
    last = last if last >= first else last.replace(year=last.year + 1)
    return first, "day", found[2] and f"{found[2]}至{format_date(last, 'day', True)}", last


def _year(match: re.Match[str], said_on: date) -> Found:
    year = _year_of(match["year"], said_on)
    if match["season"]:
        return date(year, _SEASONS[match["season"]], 1), "season", f"{year}年{match['season']}天"
    found = _found_date(date(year, 1, 1), "year")
    return found and (*found[:2], "" if match["year"].isdigit() else found[2])


def _year_of(named: str | None, said_on: date) -> int:
    if not named:
        return 0
    return int(named) if named.isdigit() else said_on.year + _YEARS_AWAY[named]


def _found_date(day: date | None, precision: Precision) -> Found:
    if day is None:
        return None
    return first_of(day, precision), precision, format_date(day, precision, True)


_ENGLISH = dict(
    enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
)
_WHICH = "(?P<which>上上|下下|上|下|这|本)"
_MONTH = "(?:[0-9]{1,2}|十[一二]?|[一二三四五六七八九])"
_DATE = f"(?:(?P<year>(?:19|20)[0-9]{{2}}|前年|去年|今年|明年)年?)?(?P<month>{_MONTH})月"
_LAST = f"(?:(?P<last_month>{_MONTH})月)?(?P<last_day>{CHINESE_NUMBER})"
_Resolver = Callable[[re.Match[str], date], Found]
_PATTERNS: tuple[tuple[re.Pattern[str], _Resolver], ...] = (
    (re.compile(f"{_DATE}(?P<day>{CHINESE_NUMBER})[日号](?:到|至|[-—~～]){_LAST}[日号]"), _days),
    (re.compile(f"{_DATE}(?:份|(?P<day>{CHINESE_NUMBER})[日号])?"), _whole_date),
    (re.compile("大前天|前天|昨天|昨晚|今天|今晚|今早|明天|明晚|大后天|后天"), _named_day),
    (re.compile(f"{_WHICH}?个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?![个年月])"), _weekday),
    (re.compile(f"{_WHICH}个?(?:周|星期|礼拜)(?P<end>末)?"), _week),
    (re.compile(f"{_WHICH}个?月(?P<day>{CHINESE_NUMBER})[日号]"), _day_of_month),
    (re.compile(f"{_WHICH}个?月"), _month),
    (
        re.compile(
            f"(?P<number>{CHINESE_NUMBER})个?(?P<unit>天|日|周|星期|礼拜|月|年)(?P<side>以前|之前|前"
            f"|以后|之后|后)"
        ),
        _ago,
    ),
    (
        re.compile(
            "(?P<year>(?:19|20)[0-9]{2}(?=年)|前年|去年|今年(?![0-9一二三四五六七八九十]{1,3}岁)|明年"
            "|后年)年?(?:的?(?P<season>[春夏秋冬])[天季])?"
        ),
        _year,
    ),
)


def chinese_moments_in(sentence: str, said_on: date) -> list[Moment]:
    """The first dates in a Chinese sentence, in their order."""
    found: list[Moment] = []
    for pattern, resolver in _PATTERNS:
        for match in pattern.finditer(sentence):
            if any(match.start() < other.end and other.start < match.end() for other in found):
                continue
            moment = _moment(match, _resolved(resolver, match, said_on))
            found += [moment] if moment else []
    return sorted(found, key=lambda moment: moment.start)[:_MOST]


def _resolved(resolver: _Resolver, match: re.Match[str], said_on: date) -> Found:
    try:
        return resolver(match, said_on)
    except (OverflowError, ValueError):  # before the first year, or after the last
        return None


def _moment(match: re.Match[str], found: Found) -> Moment | None:
    if not found:
        return None
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 3]
    is_since = before in ("从", "自") or after.startswith(("以来", "起", "开始"))
    last = found[3] if len(found) > 3 else None
    return Moment(match.start(), match.end(), match.group(), *found[:3], is_since, last)
