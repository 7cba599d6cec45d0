"""How many requests a tenant may send: a bucket that fills by itself, in this process.

Each instance counts for itself: behind a proxy that spreads requests over three, a tenant may send three
times as many. A tenant that was quiet may use a minute's worth at once, and then goes on at the steady rate.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

_MOST_TENANTS = 10_000


class Bucket(NamedTuple):
    """How many requests were left at a time; they come back as time goes by."""

    left: float
    at: float


class Taking(NamedTuple):
    """A bucket after a request, and for how many seconds the request should have waited."""

    bucket: Bucket
    wait: float


def left_in(bucket: Bucket | None, per_minute: int, now: float) -> float:
    """How many requests are left now; a new bucket is full."""
    if bucket is None:
        return float(per_minute)
    refilled = max(0.0, now - bucket.at) * per_minute / 60
    return min(float(per_minute), bucket.left + refilled)


def take_from(bucket: Bucket | None, per_minute: int, now: float) -> Taking:
    """Take one request out of a bucket, or say when there will be one."""
    left = left_in(bucket, per_minute, now)
    if left >= 1:
        return Taking(Bucket(left - 1, now), 0.0)
    return Taking(Bucket(left, now), (1 - left) * 60 / per_minute)


class RateLimiter:
    """Counts the requests of tenants in this process."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most_tenants: int = _MOST_TENANTS
    ) -> None:
        self._clock = clock
        self._most_tenants = most_tenants
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, tenant: str, per_minute: int) -> float:
        """Count a request: 0 if it may go on, else the seconds after which the next one may."""
        bucket, wait = take_from(self._buckets.get(tenant), per_minute, self._clock())
        self._buckets[tenant] = bucket
        self._buckets.move_to_end(tenant)
        if len(self._buckets) > self._most_tenants:
            self._buckets.popitem(last=False)  # the one that was quiet for longest is the fullest
        return wait

    def __len__(self) -> int:
        return len(self._buckets)
