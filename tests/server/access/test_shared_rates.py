"""Rates that several processes of a service share."""

import multiprocessing
import os
from collections.abc import Iterator

import pytest

from recollect.server.access.shared_limits import SharedRateLimiter, create_shared_buckets


@pytest.fixture
def buckets() -> Iterator[int]:
    descriptor = create_shared_buckets()
    yield descriptor
    os.close(descriptor)


def test_two_limiters_share_a_tenants_requests(buckets: int) -> None:
    one, other = (SharedRateLimiter(buckets, lambda: 100.0) for _ in range(2))
    assert [one.take("acme", 3), other.take("acme", 3), one.take("acme", 3)] == [0, 0, 0]
    assert other.take("acme", 3) == one.take("acme", 3) == pytest.approx(20)
    assert other.take("elsewhere", 3) == 0


def test_a_bucket_refills_for_all(buckets: int) -> None:
    now = [100.0]
    one, other = (SharedRateLimiter(buckets, lambda: now[0]) for _ in range(2))
    assert one.take("acme", 1) == 0
    assert other.take("acme", 1) > 0
    now[0] += 60
    assert other.take("acme", 1) == 0
    assert one.take("acme", 1) > 0


def test_processes_that_take_at_once_take_no_more_than_there_are(buckets: int) -> None:
    def take(allowed: "multiprocessing.Queue[int]") -> None:
        limiter = SharedRateLimiter(buckets, lambda: 100.0)
        allowed.put(sum(limiter.take("acme", 500) == 0 for _ in range(400)))

    context = multiprocessing.get_context("fork")
    allowed: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=take, args=(allowed,)) for _ in range(3)]
    for process in processes:
        process.start()
    assert sum(allowed.get(timeout=60) for _ in processes) == 500
    for process in processes:
        process.join()


def test_more_tenants_than_records_are_limited_all_the_same(
    buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.server.access.shared_limits._RECORDS", 4)
    limiter = SharedRateLimiter(buckets, lambda: 100.0)
    for number in range(20):
        assert limiter.take(f"tenant {number}", 1) == 0
        assert limiter.take(f"tenant {number}", 1) > 0
