"""How many requests a tenant may send: a bucket that fills by itself, in this process.

Each instance counts for itself: behind a proxy that spreads requests over three, a tenant may send three
times as many. A tenant that was quiet may use a minute's worth at once, and then goes on at the steady rate.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from ..problems import Problem
from .authentication import Caller

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


# --- concurrency ---

_RETRY_AFTER = {"Retry-After": "1"}


@dataclass(frozen=True)
class SlotLimits:
    """The most requests at once."""

    total: int
    per_tenant: int
    per_key: int

    @classmethod
    def of_shares(cls, total: int, tenant_share: float, key_share: float) -> "SlotLimits":
        """Limits by shares of the total; each is one request at least."""
        return cls(total, max(1, int(total * tenant_share)), max(1, int(total * key_share)))


class Slots:
    """Counts what is in progress, and refuses what would be too much."""

    def __init__(self, limits: SlotLimits) -> None:
        self._limits = limits
        self._total = 0
        self._of_tenants: Counter[str] = Counter()
        self._of_keys: Counter[str] = Counter()

    @contextmanager
    def hold(self, caller: Caller) -> Iterator[None]:
        """Take a slot while the block runs; raises a problem if there is none."""
        self._check(caller)
        self._change(caller, 1)
        try:
            yield
        finally:
            self._change(caller, -1)

    def _check(self, caller: Caller) -> None:
        limits = self._limits
        if caller.key_id is not None and self._of_keys[caller.key_id] >= limits.per_key:
            raise _too_many(f"at most {limits.per_key} requests of a key at once")
        if caller.key_id is not None and self._of_tenants[caller.tenant] >= limits.per_tenant:
            raise _too_many(f"at most {limits.per_tenant} requests of a tenant at once")
        if self._total >= limits.total:
            raise Problem("overloaded", f"at most {limits.total} at once", headers=_RETRY_AFTER)

    def _change(self, caller: Caller, step: int) -> None:
        self._total += step
        _change(self._of_tenants, caller.tenant, step)
        if caller.key_id is not None:
            _change(self._of_keys, caller.key_id, step)

    def __len__(self) -> int:
        return self._total


def _change(counts: Counter[str], name: str, step: int) -> None:
    counts[name] += step
    if not counts[name]:
        del counts[name]


def _too_many(detail: str) -> Problem:
    return Problem("concurrency_limited", detail, headers=_RETRY_AFTER)
