"""How many tokens of models a tenant may use in a day, which is one of UTC.

A chat turn reserves an estimate before it runs and settles with the true figure when it ends. A turn is
allowed while the tokens used and reserved are below the limit: one turn alone is refused only when the limit
is reached, and turns in parallel exceed it no further than turns in sequence do, if the estimate holds.
"""

import logging
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import RecollectError
from ...sql.columns import check_count, check_id
from ...sql.database import SQLStore
from ..database import tokens as rows
from ..database.schema import ServiceSchema
from ..problems import Problem
from .cache import ExpiringCache

_log = logging.getLogger("recollect.budget")
_RETRY_IN_FLIGHT = 2.0  # seconds after which a turn in flight may have ended


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def seconds_left(now: datetime) -> float:
    """Seconds until the day of UTC ends."""
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return (tomorrow - now).total_seconds()


class TokenLedger(SQLStore):
    """Counts the tokens that tenants use and reserve, day by day, for all instances on a database."""

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
        """Count tokens, as of today unless a day such as `2026-11-16` is given; returns the day's sum."""
        counted = check_count("tokens", tokens) or 0
        return await self._write(partial(rows.add, check_id("tenant", tenant), day or _today(), counted))

    async def used(self, tenant: str, *, day: str | None = None) -> int:
        """The tokens of a day; of today, unless one is given."""
        return await self._fetch(rows.READ, (check_id("tenant", tenant), day or _today()), rows.number_in)

    async def reserve(self, wanted: rows.ReservationRequest) -> rows.ReservationResult:
        """Set tokens aside, if those used and reserved so far are below the limit."""
        return await self._write(partial(rows.reserve, self._queries, wanted))

    async def settle(self, tenant: str, day: str, reservation_id: str, tokens: int) -> int:
        """Replace a reservation by the tokens that were really used; returns the day's sum."""
        counted = check_count("tokens", tokens) or 0
        return await self._write(partial(rows.settle, tenant, day, reservation_id, counted))

    async def release(self, tenant: str, reservation_id: str) -> None:
        """Delete a reservation of a turn that used nothing. Twice is harmless."""
        await self._write(partial(rows.release, tenant, reservation_id))


@dataclass(frozen=True)
class ReservationRules:
    """How much is reserved for a turn, and for how long if nobody settles it."""

    tokens_per_turn: Callable[[str], int] = lambda _: 2000
    """The estimate for a tenant none of whose turns has ended in this process."""
    lease_seconds: float = 300.0
    """Longer than any turn: after it, the process that reserved has died."""


class Budget:
    """Says who has used up their tokens of today: to requests, and to workers that learn.

    `tokens_per_day` gives a tenant's limit, or `None` if there is none. For workers, the used tokens are read
    at most once a second. Chat turns reserve their tokens in the database, which counts for all instances.
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
        self.on_spent: Callable[[int], None] = _count_nowhere
        """Whom else to tell what was spent in this process."""
        self.spent_here = 0
        """Tokens that were told in this process."""

    async def wait(self, tenant: str) -> float:
        """Seconds for which a tenant must ask no model: 0, or until the day ends."""
        limit = self._tokens_per_day(tenant)
        if limit is None:
            return 0.0
        now = self._now()
        return seconds_left(now) if await self._used_on(tenant, _day_of(now)) >= limit else 0.0

    async def spent(self, tenant: str, tokens: int) -> None:
        """Count what a model was asked for, also of tenants without a limit."""
        if tokens > 0:
            self._count(tokens)
            day = _day_of(self._now())
            self._used.put((tenant, day), await self._ledger.add(tenant, tokens, day=day))

    async def reserve(self, tenant: str, *, at_least: int = 0) -> "Reservation":
        """Reserve the likely cost of a chat turn; raises a problem if the tokens of today do not suffice.

        The reservation must be settled or released. If neither happens, it ends with its lease.
        """
        limit = self._tokens_per_day(tenant)
        if limit is None:
            return Reservation(self, tenant, None)
        wait = await self.wait(tenant)  # the cached figure refuses without a write
        if wait > 0:
            raise _exceeded(limit, wait)
        return await self._reserve(tenant, limit, at_least)

    async def _reserve(self, tenant: str, limit: int, at_least: int) -> "Reservation":
        estimate = self._estimates.get(tenant)
        tokens = max(self._rules.tokens_per_turn(tenant) if estimate is None else estimate, at_least)
        now, reservation_id = self._now(), uuid.uuid4().hex
        day, lease = _day_of(now), self._rules.lease_seconds
        wanted = rows.ReservationRequest(tenant, day, reservation_id, tokens, limit, lease)
        result = await self._ledger.reserve(wanted)
        self._used.put((tenant, day), result.used)
        if result.is_granted:
            return Reservation(self, tenant, reservation_id)
        raise _exceeded(limit, seconds_left(now)) if result.used >= limit else _reserved(limit)

    async def settle(self, tenant: str, reservation_id: str, tokens: int) -> None:
        """Replace a reservation by what a turn has really cost."""
        self._count(tokens)
        if tokens:  # a turn that failed before a model answered says nothing about the next one
            self._estimates.note(tenant, tokens)
        day = _day_of(self._now())
        used = await self._ledger.settle(tenant, day, reservation_id, tokens)
        self._used.put((tenant, day), used)

    async def release(self, tenant: str, reservation_id: str) -> None:
        """Give back the reservation of a turn that asked no model."""
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
    """Tokens set aside for one chat turn, until it is settled or released: the first of these counts.

    A database that fails here ends no turn: the reservation then ends with its lease.
    """

    def __init__(self, budget: Budget, tenant: str, reservation_id: str | None) -> None:
        """Without a `reservation_id` nothing is reserved: the tenant has no limit."""
        self._budget = budget
        self._tenant = tenant
        self._id = reservation_id
        self._is_open = True

    async def settle(self, tokens: int) -> None:
        """Count the true cost in place of the estimate."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self._id is None:
                await self._budget.spent(self._tenant, tokens)
            else:
                await self._budget.settle(self._tenant, self._id, tokens)
        except (RecollectError, OSError) as error:
            _log.warning("%d tokens could not be counted (%s)", tokens, type(error).__name__)

    async def release(self) -> None:
        """Give the tokens back. After `settle` this does nothing."""
        if not self._is_open:
            return
        self._is_open = False
        try:
            if self._id is not None:
                await self._budget.release(self._tenant, self._id)
        except (RecollectError, OSError) as error:
            _log.warning("a token reservation could not be released (%s)", type(error).__name__)


def _exceeded(limit: int, wait: float) -> Problem:
    detail = f"at most {limit} model tokens in a day, which ends at 00:00 UTC"
    return Problem("token_budget_exceeded", detail, headers={"Retry-After": str(math.ceil(wait))})


def _reserved(limit: int) -> Problem:
    detail = f"turns in flight have reserved the rest of {limit} model tokens a day: send it again soon"
    headers = {"Retry-After": str(math.ceil(_RETRY_IN_FLIGHT))}
    return Problem("token_budget_exceeded", detail, headers=headers)


def _count_nowhere(_: int) -> None:
    """Nobody else wants to know."""


def _day_of(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def _today() -> str:
    return _day_of(utc_now())


# --- estimates ---

_MOST_TENANTS = 10_000
_DECAY = 4  # after a cheaper turn, the estimate moves a quarter of the way down


def next_estimate(estimate: int, cost: int) -> int:
    """The estimate after a turn: an expensive turn raises it at once, cheap ones lower it slowly."""
    return max(cost, estimate - (estimate - cost) // _DECAY)


class TurnEstimates:
    """Estimates by tenant; the tenants whose last turn is longest ago are dropped first."""

    def __init__(self, most_tenants: int = _MOST_TENANTS) -> None:
        self._most_tenants = most_tenants
        self._estimates: OrderedDict[str, int] = OrderedDict()

    def get(self, tenant: str) -> int | None:
        """The estimate of a tenant; `None` if no turn of it has ended here."""
        return self._estimates.get(tenant)

    def note(self, tenant: str, cost: int) -> None:
        """Take the cost of a turn into account."""
        self._estimates[tenant] = next_estimate(self._estimates.get(tenant, cost), cost)
        self._estimates.move_to_end(tenant)
        if len(self._estimates) > self._most_tenants:
            self._estimates.popitem(last=False)

    def __len__(self) -> int:
        return len(self._estimates)
