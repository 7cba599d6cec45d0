"""Dates in English and Chinese, resolved against the day on which they were said."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from recollect.memory.offline.chinese_dates import chinese_moments_in
from recollect.memory.offline.dates import moments_in
from recollect.memory.offline.moments import resolve

from .kit import candidates, only

THURSDAY = date(2023, 5, 25)
ENGLISH = [
    ("I fell yesterday", "2023-05-24", "24 May 2023"),
    ("I fell last night", "2023-05-24", "24 May 2023"),
    ("I fell today", "2023-05-25", "25 May 2023"),
    ("I leave tomorrow", "2023-05-26", "26 May 2023"),
    ("I fell the day before yesterday", "2023-05-23", "23 May 2023"),
    ("I fell three days ago", "2023-05-22", "22 May 2023"),
    ("I fell last Saturday", "2023-05-20", "20 May 2023"),
    ("I fell last Thursday", "2023-05-18", "18 May 2023"),
    ("On Friday, I fell", "2023-05-19", "19 May 2023"),
    ("I will sing on Sunday", "2023-05-28", "28 May 2023"),
    ("I will sing next Friday", "2023-05-26", "26 May 2023"),
    ("I fell last week", "2023-05-15", "the week before 25 May 2023"),
    ("I fell two weeks ago", "2023-05-08", "two weeks before 25 May 2023"),
    ("I fell last weekend", "2023-05-20", "the weekend before 25 May 2023"),
    ("I fell two weekends ago", "2023-05-13", "two weekends before 25 May 2023"),
    ("I sing this week", "2023-05-22", "the week of 25 May 2023"),
    ("I will sing next week", "2023-05-29", "the week after 25 May 2023"),
    ("I fell last month", "2023-04", "April 2023"),
    ("I will sing next month", "2023-06", "June 2023"),
    ("I will sing in two months", "2023-07", "July 2023"),
    ("I fell last year", "2022", "2022"),
    ("I fell ten years ago", "2013", "2013"),
    ("I fell in 2019", "2019", ""),
    ("I fell on 3 March 2021", "2021-03-03", ""),
    ("I fell on March 3rd, 2021", "2021-03-03", ""),
    ("I fell on 3 March", "2023-03-03", "3 March 2023"),
    ("I fell in August", "2022-08", "August 2022"),
    ("I will sing in August", "2023-08", "August 2023"),
    ("I fell last summer", "2022", "summer 2022"),
    ("I fell last winter", "2022", "winter 2022"),
    ("We're getting married on March 3rd", "2024-03-03", "3 March 2024"),
    ("We got married on March 3rd", "2023-03-03", "3 March 2023"),
    ("I'm so excited, we are flying in March", "2024-03", "March 2024"),
    ("My exam is on 3 March", "2024-03-03", "3 March 2024"),
    ("I fell on 13/4/2021", "2021-04-13", "13 April 2021"),
    ("I fell on 4/13/2021", "2021-04-13", "13 April 2021"),
    ("I fell on 2021/04/03", "2021-04-03", "3 April 2021"),
    ("I fell on 3/4/2021", "2021", ""),
    ("I fell on the 15th", "2023-05-15", "15 May 2023"),
    ("I've lived here since 2016", "2016", ""),
    ("I've had him for five years", "2018", "since 2018"),
    ("I've been fishing for about four months", "2023-01", "since January 2023"),
]
CHINESE = [
    ("我昨天摔倒了", "2023-05-24", "2023年5月24日"),
    ("我前天摔倒了", "2023-05-23", "2023年5月23日"),
    ("我三天前摔倒了", "2023-05-22", "2023年5月22日"),
    ("我上周摔倒了", "2023-05-15", "2023年5月25日的前一周"),
    ("我上周五摔倒了", "2023-05-19", "2023年5月19日"),
    ("我上星期三摔倒了", "2023-05-17", "2023年5月17日"),
    ("我周六摔倒了", "2023-05-20", "2023年5月20日"),
    ("我上周末摔倒了", "2023-05-20", "2023年5月25日的前一个周末"),
    ("我上个月摔倒了", "2023-04", "2023年4月"),
    ("我两个月前摔倒了", "2023-03", "2023年3月"),
    ("我去年摔倒了", "2022", "2022年"),
    ("我十二年前摔倒了", "2011", "2011年"),
    ("我明天要唱歌", "2023-05-26", "2023年5月26日"),
    ("我下周要唱歌", "2023-05-29", "2023年5月25日的后一周"),
    ("我5月7日摔倒了", "2023-05-07", "2023年5月7日"),
    ("我五月二十日摔倒了", "2023-05-20", "2023年5月20日"),
    ("我2019年摔倒了", "2019", ""),
    ("我2021年3月3日摔倒了", "2021-03-03", ""),
    ("我去年夏天摔倒了", "2022", "2022年夏天"),
    ("我今年春天摔倒了", "2023", "2023年春天"),
    ("我6月3日在利马", "2023-06-03", "2023年6月3日"),
    ("我6月3日在利马摔倒了", "2022-06-03", "2022年6月3日"),
]
SPANS = [
    ("I will be in Lima from 3 to 9 August", "2023-08-03", "2023-08-09"),
    ("I was in Lima from August 3-9, 2021", "2021-08-03", "2021-08-09"),
    ("I was in Lima between 3 and 9 August 2021", "2021-08-03", "2021-08-09"),
    ("I will be in Lima from 28 July to 3 August", "2023-07-28", "2023-08-03"),
    ("I will be in Lima from 28 December to 3 January", "2023-12-28", "2024-01-03"),
    ("I lived in Lima from 2010 to 2014", "2010", "2014"),
    ("我8月3日到9日要去利马", "2023-08-03", "2023-08-09"),
    ("我12月28日至1月3日要去利马", "2023-12-28", "2024-01-03"),
]
NO_DATE = [
    "I fell a few years ago",
    "May I come in",
    "I may sing",
    "I fell on 31 June",
    "Mark marched on",
    "I lived there for five years",
    "my son sat on the sofa",
    "I fell on 30 February 2023",
    "I fell on 31/31/2021",
]


@pytest.mark.parametrize(("said", "value", "words"), ENGLISH)
def test_an_english_date_is_resolved(said: str, value: str, words: str) -> None:
    (moment,) = moments_in(said, THURSDAY)
    assert (moment.value, moment.words) == (value, words)
    assert said[moment.start : moment.end] == moment.phrase


@pytest.mark.parametrize(("said", "value", "words"), CHINESE)
def test_a_chinese_date_is_resolved(said: str, value: str, words: str) -> None:
    (moment,) = chinese_moments_in(said, THURSDAY)
    assert (moment.value, moment.words) == (value, words)
    assert said[moment.start : moment.end] == moment.phrase


@pytest.mark.parametrize(("said", "first", "last"), SPANS)
def test_a_span_is_true_from_its_first_day_to_its_last(said: str, first: str, last: str) -> None:
    found = moments_in(said, THURSDAY) or chinese_moments_in(said, THURSDAY)
    assert (found[0].value, found[0].last_value) == (first, last)


def test_a_plan_for_a_span_holds_from_its_first_day_to_its_last() -> None:
    found = only("We're going to Norway from 3 to 9 August.")
    assert (found.valid_from, found.valid_to) == ("2023-08-03", "2023-08-09")
    assert found.text == "The user's trip to Norway is from 3 to 9 August 2023."


@pytest.mark.parametrize("said", NO_DATE)
def test_what_is_no_date_is_not_read_as_one(said: str) -> None:
    assert moments_in(said, THURSDAY) == []


@pytest.mark.parametrize("said", ["我二月三十日摔倒了", "我13月5日摔倒了", "我很开心"])
def test_what_is_no_chinese_date_is_not_read_as_one(said: str) -> None:
    assert chinese_moments_in(said, THURSDAY) == []


@pytest.mark.parametrize(
    ("said_on", "said", "value"),
    [
        (date(2024, 3, 1), "I fell yesterday", "2024-02-29"),
        (date(2023, 3, 1), "I fell yesterday", "2023-02-28"),
        (date(2024, 1, 1), "I fell yesterday", "2023-12-31"),
        (date(2023, 12, 31), "I leave tomorrow", "2024-01-01"),
        (date(2024, 1, 15), "I fell last month", "2023-12"),
        (date(2023, 3, 31), "I fell last month", "2023-02"),
        (date(2024, 2, 29), "I fell last year", "2023"),
        (date(2023, 12, 5), "I will sing next month", "2024-01"),
        (date(2024, 1, 2), "I fell last week", "2023-12-25"),
        (date(2023, 1, 1), "I fell last Sunday", "2022-12-25"),
        (date(2024, 1, 3), "I fell on the 30th", "2023-12-30"),
        (date(2023, 1, 10), "I fell last winter", "2021"),
        (date(2023, 12, 26), "I fell last summer", "2023"),
    ],
)
def test_dates_around_the_ends_of_months_and_years(said_on: date, said: str, value: str) -> None:
    assert [moment.value for moment in moments_in(said, said_on)] == [value]


@pytest.mark.parametrize("said_on", [date.min, date.max])
@pytest.mark.parametrize(
    "said",
    [
        "yesterday",
        "tomorrow",
        "last week",
        "next week",
        "99 years ago",
        "last winter",
        "next Friday",
        "on the 31st",
    ],
)
def test_at_the_ends_of_the_calendar_nothing_breaks(said: str, said_on: date) -> None:
    assert all(isinstance(moment.day, date) for moment in moments_in(said, said_on))


@pytest.mark.parametrize("said_on", [date.min, date.max])
@pytest.mark.parametrize("said", ["昨天", "明天", "上周", "下下周三", "九十九年前", "上个月", "明年春天"])
def test_at_the_ends_of_the_calendar_nothing_breaks_in_chinese(said: str, said_on: date) -> None:
    assert all(isinstance(moment.day, date) for moment in chinese_moments_in(said, said_on))


@pytest.fixture
def far_east() -> Iterator[None]:
    """A machine whose zone is a day ahead of most."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Pacific/Kiritimati"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_the_zone_of_the_machine_does_not_matter() -> None:
    resolve.cache_clear()
    midnight = datetime(2023, 5, 25, 0, 0, 1, tzinfo=UTC)
    assert only("I broke my arm yesterday.", on=midnight).valid_from == "2023-05-24"
    assert only("我昨天辞职了。", on=midnight).valid_from == "2023-05-24"


def test_an_entry_carries_its_date_as_data() -> None:
    found = only("I broke my arm last Saturday.")
    assert found.data["date"] == found.valid_from == "2023-05-20"
    assert found.text == "The user broke their arm (20 May 2023)."


def test_an_event_without_a_date_has_none() -> None:
    found = only("I broke my arm.")
    assert found.valid_from is None
    assert "date" not in found.data


def test_a_state_that_lasts_says_since_when() -> None:
    found = only("I've been vegan for five years.")
    assert (found.content_type, found.valid_from, found.text) == (
        "profile",
        "2018",
        "The user is vegan (since 2018).",
    )


def test_a_birthday_is_not_true_only_from_its_day_on() -> None:
    found = only("My birthday is on May 4th.")
    assert (found.slot, found.valid_from) == ("birthday", None)


@pytest.mark.parametrize(
    ("said", "until"),
    [
        ("I've been vegan since March 2023.", None),
        ("I live in Rome until 30 June 2027.", "2027-06-30"),
    ],
)
def test_only_what_ends_later_expires(said: str, until: str | None) -> None:
    assert {candidate.expires_at for candidate in candidates(said)} == {until}
