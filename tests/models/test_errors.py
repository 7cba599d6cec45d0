"""Errors of a provider are translated to ours, without a word of the provider's message."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from recollect.errors import ModelRefusedError, ModelUnavailableError
from recollect.models.errors import error_in_body, error_of_status, retry_after_seconds


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503, 529])
def test_a_status_that_may_pass_is_unavailable(status: int) -> None:
    error = error_of_status(status, "overloaded_error", retry_after=3.0)
    assert isinstance(error, ModelUnavailableError)
    assert str(error) == f"the model's endpoint answered {status} (overloaded_error)"
    assert error.retry_after == 3.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_status_that_will_not_pass_is_refused(status: int) -> None:
    error = error_of_status(status)
    assert isinstance(error, ModelRefusedError)
    assert str(error) == f"the model's endpoint answered {status}"


@pytest.mark.parametrize(
    ("body", "status"),
    [({"code": 429}, 429), ({"code": 404}, 404), ({"code": "x"}, 500), ({"code": 200}, 500), ("oh no", 500)],
)
def test_an_error_with_status_200_has_the_status_of_its_body(body: Any, status: int) -> None:
    assert str(error_in_body(body)) == f"the model's endpoint answered {status}"


@pytest.mark.parametrize(
    ("header", "expected"), [("", None), ("soon", None), ("nan", None), ("inf", None), ("-3", 0), ("2", 2)]
)
def test_odd_waiting_times_are_no_waiting_times(header: str, expected: float | None) -> None:
    assert retry_after_seconds({"retry-after": header}) == expected


def test_a_waiting_time_may_be_a_date() -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    assert 3000 < (retry_after_seconds({"retry-after": format_datetime(later, usegmt=True)}) or 0) <= 3600
    assert retry_after_seconds({"retry-after": "Wed, 08 May 2024 09:30:00 GMT"}) == 0
