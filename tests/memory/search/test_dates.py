"""How near a day is to the dates that a question names."""

from datetime import date

import numpy as np
import pytest

from recollect.memory.search.dates import NamedDate, Stretch, nearness


def near(named: NamedDate | Stretch, *days: date) -> list[float]:
    numbers = np.array([day.toordinal() for day in days], np.int64)
    dates, stretches = ((named,), ()) if isinstance(named, NamedDate) else ((), (named,))
    return [float(value) for value in nearness(numbers, dates, stretches)]


def test_the_day_itself_is_nearest_and_the_days_after_are_nearer_than_those_before() -> None:
    same, after, before, far = near(
        NamedDate(2023, 6, 3), date(2023, 6, 3), date(2023, 6, 5), date(2023, 6, 1), date(2023, 9, 1)
    )
    assert 1.0 == same > after > before > far == 0.0


def test_all_days_of_a_month_are_as_near() -> None:
    assert near(NamedDate(2024, 2), date(2024, 2, 1), date(2024, 2, 29), date(2024, 8, 1)) == [1.0, 1.0, 0.0]


def test_december_ends_with_the_year() -> None:
    assert near(NamedDate(2023, 12), date(2023, 12, 31), date(2023, 11, 1)) == [1.0, 0.0]


def test_a_month_without_a_year_is_that_of_every_year_there_is() -> None:
    assert near(NamedDate(None, 7), date(2021, 7, 9), date(2023, 7, 9), date(2022, 1, 1)) == [1.0, 1.0, 0.0]


def test_a_year_alone_says_less_than_a_day() -> None:
    year, other = near(NamedDate(2022), date(2022, 7, 9), date(2024, 7, 9))
    assert 0.0 == other < year < 1.0


def test_a_stretch_of_days_is_near_throughout() -> None:
    first = date(2024, 3, 4).toordinal()
    assert near(Stretch(first, first + 6), date(2024, 3, 4), date(2024, 3, 10)) == [1.0, 1.0]


@pytest.mark.parametrize("named", [NamedDate(2023, 6, 3), NamedDate(None, 6), NamedDate(9999, 12)])
def test_what_has_no_day_is_near_to_nothing(named: NamedDate) -> None:
    assert nearness(np.zeros(3, np.int64), (named,), ()).tolist() == [0.0, 0.0, 0.0]
