"""Rate limits by tenant, and limits of concurrent requests in total, by tenant and by key.

Each instance counts on its own: behind a proxy that spreads requests over three instances, a tenant may send
three times as many. Rates use a token bucket: an idle tenant may send a minute's worth at once, and then
continues at the steady rate.
"""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from ..problems import Problem
from .authentication import Caller

_MAX_TENANTS = 10_000


class Bucket(NamedTuple):
    """The requests left in a token bucket at a time. The bucket refills continuously."""

    left: float
    at: float


class TakeResult(NamedTuple):
    """The bucket after a request, and the seconds that the request would have to wait."""

    bucket: Bucket
    wait: float


def left_in(bucket: Bucket | None, per_minute: int, now: float) -> float:
    """The requests left now. A new bucket is full."""
    if bucket is None:
        return float(per_minute)
    refilled = max(0.0, now - bucket.at) * per_minute / 60
    return min(float(per_minute), bucket.left + refilled)


def take_from(bucket: Bucket | None, per_minute: int, now: float) -> TakeResult:
    """Take one request from a bucket, or compute when one will be available."""
    left = left_in(bucket, per_minute, now)
    if left >= 1:
        return TakeResult(Bucket(left - 1, now), 0.0)
    return TakeResult(Bucket(left, now), (1 - left) * 60 / per_minute)


class RateLimiter:
    """Limits the request rates of tenants in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, max_tenants: int = _MAX_TENANTS) -> None:
        self._clock = clock
        self._max_tenants = max_tenants
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, tenant: str, per_minute: int) -> float:
        """Count a request: 0 if it is allowed, else the seconds until the next one is."""
        bucket, wait = take_from(self._buckets.get(tenant), per_minute, self._clock())
        self._buckets[tenant] = bucket
        self._buckets.move_to_end(tenant)
        if len(self._buckets) > self._max_tenants:
            self._buckets.popitem(last=False)  # the least recently used bucket is the fullest
        return wait

    def __len__(self) -> int:
        return len(self._buckets)


# --- concurrency ---

RETRY_AFTER = {"Retry-After": "1"}


@dataclass(frozen=True)
class SlotLimits:
    """The most concurrent requests."""

    total: int
    per_tenant: int
    per_key: int

    @classmethod
    def of_shares(cls, total: int, tenant_share: float, key_share: float) -> "SlotLimits":
        """Limits as shares of the total, each at least 1."""
        return cls(total, max(1, int(total * tenant_share)), max(1, int(total * key_share)))


class Slots:
    """Counts requests in progress and refuses those beyond the limits.

    A tenant and a key may use only a share of the total, so that neither can use it up alone. Without
    keys there is one caller, and no share.
    """

    def __init__(self, limits: SlotLimits) -> None:
        self._limits = limits
        self._total = 0
        self._by_tenant: Counter[str] = Counter()
        self._by_key: Counter[str] = Counter()

    @contextmanager
    def hold(self, caller: Caller) -> Iterator[None]:
        """Hold a slot while the block runs. Raises a `Problem` if none is free."""
        self._check(caller)
        self._change(caller, 1)
        try:
            yield
        finally:
            self._change(caller, -1)

    def _check(self, caller: Caller) -> None:
        limits = self._limits
        if caller.key_id is not None and self._by_key[caller.key_id] >= limits.per_key:
            raise _too_many(f"A key may run at most {limits.per_key} requests at once.")
        if caller.key_id is not None and self._by_tenant[caller.tenant] >= limits.per_tenant:
            raise _too_many(f"A tenant may run at most {limits.per_tenant} requests at once.")
        if self._total >= limits.total:
            raise Problem(
                "overloaded",
                f"The service runs at most {limits.total} requests at once.",
                headers=RETRY_AFTER,
            )

    def _change(self, caller: Caller, step: int) -> None:
        self._total += step
        _change(self._by_tenant, caller.tenant, step)
        if caller.key_id is not None:
            _change(self._by_key, caller.key_id, step)

    def __len__(self) -> int:
        return self._total


def _change(counts: Counter[str], name: str, step: int) -> None:
    counts[name] += step
    if not counts[name]:
        del counts[name]


def _too_many(detail: str) -> Problem:
    return Problem("concurrency_limited", detail, headers=RETRY_AFTER)
