"""How the benchmark decides whether a text names the date that was asked for."""

import pytest

from benchmarks.quality.answers import is_date, names_date


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It was on 20 May 2023.", "20 May 2023"),
        ("It was on 20 May 2023.", "May 20th, 2023"),
        ("It was on 20 May 2023.", "May, 2023"),
        ("It was in 2022.", "2022"),
        ("It was the week before 9 June 2023.", "The week before 9 June 2023"),
        ("It was on 21 May 2023.", "The Sunday before 25 May 2023"),
    ],
)
def test_a_text_names_the_date(text: str, answer: str) -> None:
    assert names_date(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It was on 21 May 2023.", "20 May 2023"),
        ("It was in May 2023.", "20 May 2023"),
        ("It was in May 2022.", "May 2023"),
        ("It was said on 9 June 2023.", "The week before 9 June 2023"),
        ("It was said on 25 May 2023.", "The Sunday before 25 May 2023"),
        ("It was on 20 May 2023.", "The Sunday before 25 May 2023"),
    ],
)
def test_a_text_does_not_name_the_date(text: str, answer: str) -> None:
    assert not names_date(text, answer)


@pytest.mark.parametrize("answer", ["four months", "Lima", "three", "ten years ago"])
def test_a_duration_or_a_name_is_no_date(answer: str) -> None:
    assert not is_date(answer)
