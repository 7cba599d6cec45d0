"""Budgets: how many model tokens a tenant may use per UTC day.

A chat turn, or a proxied call, reserves an estimate before it runs and settles with the actual number when it
ends. A turn is allowed while the tokens used and reserved are below the limit: one turn alone is refused only
when the limit is reached, and turns in parallel exceed it no further than turns in sequence do, if the
estimate holds.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import RecollectError
from ...ids import new_hex
from ...sql.columns import check_count, check_id
from ...sql.database import SQLStore
from ..database import tokens as rows
from ..database.schema import ServiceSchema
from ..problems import Problem
from .cache import ExpiringCache

_log = logging.getLogger("recollect.budget")
_RETRY_IN_FLIGHT = 2.0  # seconds after which a turn in flight may have ended


def utc_now() -> datetime:
    """The current time in UTC."""
    return datetime.now(UTC)


def seconds_left(now: datetime) -> float:
    """Seconds until the UTC day ends."""
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return (tomorrow - now).total_seconds()


class TokenLedger(SQLStore):
    """Counts the tokens that tenants use and reserve by day, for all instances on a database."""

    schema = ServiceSchema()

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        create_tables: bool = False,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url_or_path, create_tables=create_tables, engine_kwargs=engine_kwargs)
        self._queries = rows.ReservationQueries(self._database.dialect)

    async def add(self, tenant: str, tokens: int, *, day: str | None = None) -> int:
        """Count tokens of today, or of a day such as `2026-11-16`; returns the total of the day."""
        counted = check_count("tokens", tokens) or 0
        return await self._write(partial(rows.add, check_id("tenant", tenant), day or _today(), counted))

    async def used(self, tenant: str, *, day: str | None = None) -> int:
        """The tokens of today, or of a given day."""
        return await self._fetch(rows.READ, (check_id("tenant", tenant), day or _today()), rows.number_in)

    async def reserve(self, request: rows.ReservationRequest) -> rows.ReservationResult:
        """Reserve tokens, if those used and reserved so far are below the limit."""
        return await self._write(partial(rows.reserve, self._queries, request))

    async def settle(self, tenant: str, day: str, reservation_id: str, tokens: int) -> int:
        """Replace a reservation by the tokens actually used; returns the total of the day."""
        counted = check_count("tokens", tokens) or 0
        return await self._write(partial(rows.settle, tenant, day, reservation_id, counted))

    async def settle_all(self, settlements: Sequence[rows.Settlement]) -> dict[tuple[str, str], int]:
        """Settle many calls in one transaction; returns the total of each tenant and day."""
        return await self._write(partial(rows.settle_all, settlements))

    async def release(self, tenant: str, reservation_id: str) -> None:
        """Delete the reservation of a turn that used no tokens. A second call does nothing."""
        await self._write(partial(rows.release, tenant, reservation_id))


@dataclass(frozen=True)
class ReservationRules:
    """How many tokens are reserved for a turn, and how long the reservation lasts."""

    tokens_per_turn: Callable[[str], int] = lambda _: 2000
    """The estimate for a tenant before its first turn in this process has ended."""
    lease_seconds: float = 300.0
    """Longer than any turn: a reservation older than this belongs to a dead process."""


class Budget:
    """Enforces the daily token limits of tenants, for chat turns and for workers.

    `tokens_per_day` returns a tenant's limit, or `None` if there is none. Workers read the used tokens at
    most once a second. Chat turns reserve their tokens in the database, so the limit holds across all
    instances.
    """

    def __init__(
        self,
        ledger: TokenLedger,
        tokens_per_day: Callable[[str], int | None],
        *,
        rules: ReservationRules | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._ledger = ledger
        self._tokens_per_day = tokens_per_day
        self._rules = rules or ReservationRules()
        self._now = now
        self._estimates = TurnEstimates()
        self._used: ExpiringCache[tuple[str, str], int] = ExpiringCache()
        self.on_spent: Callable[[int], None] = _ignore
        """Called with the tokens of each model call in this process."""
        self.spent_here = 0
        """Tokens used in this process."""

    def is_limited(self, tenant: str) -> bool:
        """Whether a tenant has a limit, so that its calls must reserve tokens."""
        return self._tokens_per_day(tenant) is not None

    async def wait(self, tenant: str) -> float:
        """Seconds for which a tenant must not call a model: 0, or the time until the day ends."""
        limit = self._tokens_per_day(tenant)
        if limit is None:
            return 0.0
        now = self._now()
        return seconds_left(now) if await self._used_on(tenant, _day_of(now)) >= limit else 0.0

    async def spent(self, tenant: str, tokens: int) -> None:
        """Count used tokens, also for a tenant without a limit."""
        if tokens > 0:
            self._count(tokens)
            day = _day_of(self._now())
            self._used.put((tenant, day), await self._ledger.add(tenant, tokens, day=day))

    async def reserve(self, tenant: str, *, at_least: int = 0) -> "Reservation":
        """Reserve the estimated tokens of a chat turn. Raises a `Problem` if too few are left today.

        Settle or release the reservation. Otherwise it expires with its lease.
        """
        limit = self._tokens_per_day(tenant)
        if limit is None:
            return Reservation(self, tenant, None)
        wait = await self.wait(tenant)  # the cached count allows a refusal without a write
        if wait > 0:
            raise _exceeded(limit, wait)
        return await self._reserve(tenant, limit, at_least)

    async def _reserve(self, tenant: str, limit: int, at_least: int) -> "Reservation":
        estimate = self._estimates.get(tenant)
        tokens = max(self._rules.tokens_per_turn(tenant) if estimate is None else estimate, at_least)
        now, reservation_id = self._now(), new_hex()
        day, lease = _day_of(now), self._rules.lease_seconds
        request = rows.ReservationRequest(tenant, day, reservation_id, tokens, limit, lease)
        result = await self._ledger.reserve(request)
        self._used.put((tenant, day), result.used)
        if result.is_granted:
            return Reservation(self, tenant, reservation_id)
        raise _exceeded(limit, seconds_left(now)) if result.used >= limit else _reserved(limit)

    async def settle(self, tenant: str, reservation_id: str, tokens: int) -> None:
        """Replace a reservation by the tokens that the turn actually used."""
        self._count(tokens)
        if tokens:  # a turn that failed before the model responded is no estimate for the next one
            self._estimates.note(tenant, tokens)
        day = _day_of(self._now())
        used = await self._ledger.settle(tenant, day, reservation_id, tokens)
        self._used.put((tenant, day), used)

    def settlement(
        self, tenant: str, tokens: int, reservation_id: str | None, *, is_turn: bool = True
    ) -> rows.Settlement:
        """The tokens of a call that ends now, for `settle_all`. They count for the metrics at once.

        A call that is no turn, such as one for embeddings, is no estimate for the next turn.
        """
        self._count(tokens)
        if tokens and is_turn:
            self._estimates.note(tenant, tokens)
        return rows.Settlement(tenant, _day_of(self._now()), tokens, reservation_id)

    async def settle_all(self, settlements: Sequence[rows.Settlement]) -> None:
        """Write the tokens of many calls in one transaction."""
        for place, used in (await self._ledger.settle_all(settlements)).items():
            self._used.put(place, used)

    async def release(self, tenant: str, reservation_id: str) -> None:
        """Release the reservation of a turn that called no model."""
        await self._ledger.release(tenant, reservation_id)

    def _count(self, tokens: int) -> None:
        self.spent_here += tokens
        self.on_spent(tokens)

    async def _used_on(self, tenant: str, day: str) -> int:
        used = self._used.get((tenant, day))
        if used is None:
            used = await self._ledger.used(tenant, day=day)
            self._used.put((tenant, day), used)
        return used


class Reservation:
    """Tokens reserved for one chat turn, until they are settled or released. Only the first call counts.

    A database error here does not fail the turn: the reservation expires with its lease.
    """

    def __init__(self, budget: Budget, tenant: str, reservation_id: str | None) -> None:
        """`reservation_id` is `None` for a tenant without a limit, which needs no reservation."""
        self._budget = budget
        self._tenant = tenant
        self._id = reservation_id
        self._is_open = True

    def hand_over(self) -> str | None:
        """The id of the reservation, for a caller that settles it with others by `Budget.settle_all`."""
        self._is_open = False
        return self._id

    async def settle(self, tokens: int) -> None:
        """Count the tokens actually used instead of the estimate."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self._id is None:
                await self._budget.spent(self._tenant, tokens)
            else:
                await self._budget.settle(self._tenant, self._id, tokens)
        except (RecollectError, OSError) as error:
            fields = {"tokens": tokens, "error": type(error).__name__}
            _log.warning("used tokens could not be counted", extra=fields)

    async def release(self) -> None:
        """Release the tokens. After `settle` this does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self._id is not None:
                await self._budget.release(self._tenant, self._id)
        except (RecollectError, OSError) as error:
            fields = {"error": type(error).__name__}
            _log.warning("token reservation could not be released", extra=fields)


def _exceeded(limit: int, wait: float) -> Problem:
    detail = f"The tenant has used its {limit} model tokens of today. The day ends at 00:00 UTC."
    return Problem("token_budget_exceeded", detail, headers={"Retry-After": str(math.ceil(wait))})


def _reserved(limit: int) -> Problem:
    detail = f"Turns in flight have reserved the rest of the {limit} model tokens of today. Retry soon."
    headers = {"Retry-After": str(math.ceil(_RETRY_IN_FLIGHT))}
    return Problem("token_budget_exceeded", detail, headers=headers)


def _ignore(_: int) -> None:
    """The default of `on_spent`."""


def _day_of(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def _today() -> str:
    return _day_of(utc_now())


# --- estimates ---

_MAX_TENANTS = 10_000
_DECAY = 4  # after a cheaper turn, the estimate moves a quarter of the way down


def next_estimate(estimate: int, cost: int) -> int:
    """The estimate after a turn. An expensive turn raises it at once; cheap ones lower it slowly."""
    return max(cost, estimate - (estimate - cost) // _DECAY)


class TurnEstimates:
    """The expected tokens of a chat turn by tenant. The least recently used tenants are dropped first."""

    def __init__(self, max_tenants: int = _MAX_TENANTS) -> None:
        self._max_tenants = max_tenants
        self._estimates: OrderedDict[str, int] = OrderedDict()

    def get(self, tenant: str) -> int | None:
        """The estimate of a tenant; `None` if none of its turns has ended in this process."""
        return self._estimates.get(tenant)

    def note(self, tenant: str, cost: int) -> None:
        """Update the estimate with the tokens of a turn."""
        self._estimates[tenant] = next_estimate(self._estimates.get(tenant, cost), cost)
        self._estimates.move_to_end(tenant)
        if len(self._estimates) > self._max_tenants:
            self._estimates.popitem(last=False)

    def __len__(self) -> int:
        return len(self._estimates)
