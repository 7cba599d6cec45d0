"""How many requests a tenant may send."""

import pytest

from recollect.server.access.limits import Bucket, RateLimiter, left_in, take_from


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_new_bucket_is_full() -> None:
    assert left_in(None, 60, 5.0) == 60


def test_a_bucket_fills_as_time_goes_by_and_never_over() -> None:
    assert left_in(Bucket(0, 100.0), 60, 100.0) == 0
    assert left_in(Bucket(0, 100.0), 60, 110.0) == 10
    assert left_in(Bucket(0, 100.0), 60, 1_000_000.0) == 60


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    assert left_in(Bucket(5, 100.0), 60, 40.0) == 5


def test_an_empty_bucket_says_when_there_is_something_in_it() -> None:
    taking = take_from(Bucket(0.5, 100.0), 60, 100.0)
    assert taking.wait == pytest.approx(0.5)
    assert taking.bucket == Bucket(0.5, 100.0), "who is refused takes nothing"


def test_a_minutes_worth_goes_at_once_and_then_at_a_steady_rate() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    assert [limiter.take("a", 3) for _ in range(3)] == [0, 0, 0]
    assert limiter.take("a", 3) == pytest.approx(20)
    clock.now += 20
    assert limiter.take("a", 3) == 0
    assert limiter.take("a", 3) == pytest.approx(20)


def test_waiting_as_long_as_was_said_is_enough() -> None:
    clock = Clock()
    limiter = RateLimiter(clock)
    for per_minute in (1, 7, 60, 1000):
        tenant = str(per_minute)
        while not (wait := limiter.take(tenant, per_minute)):
            pass
        clock.now += wait + 1e-6
        assert limiter.take(tenant, per_minute) == 0


def test_tenants_do_not_share() -> None:
    limiter = RateLimiter(Clock())
    assert limiter.take("a", 1) == 0
    assert limiter.take("a", 1) > 0
    assert limiter.take("b", 1) == 0


def test_it_remembers_a_bounded_number_of_tenants_and_forgets_the_quietest() -> None:
    limiter = RateLimiter(Clock(), max_tenants=10)
    for number in range(100):
        limiter.take("busy", 5)
        limiter.take(str(number), 5)
    assert len(limiter) == 10
    assert limiter.take("busy", 5) > 0
