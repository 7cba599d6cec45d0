"""How many requests are in progress at once: in all, of one tenant, and of one key.

Each instance counts for itself. A key and a tenant have a share of what the instance takes in all, so that
none of them can use it up alone. Where the service runs without keys there is one caller, and no share.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..problems import Problem
from .callers import Caller

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
