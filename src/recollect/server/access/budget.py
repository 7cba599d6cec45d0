"""How many tokens of models a tenant may use in a day, which is one of UTC."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from functools import partial

from ...sessions.sql.columns import check_count, check_id
from ...sessions.sql.database import SQLStore
from ...sessions.sql.scripts import Row, Script, Statement
from ..database.schema import TENANT_TOKENS, ServiceSchema
from ..problems import Problem
from .briefly import BrieflyKept

_ADD = (
    f"INSERT INTO {TENANT_TOKENS.name} (tenant, day, tokens) VALUES (?1, ?2, ?3)"
    f" ON CONFLICT (tenant, day) DO UPDATE SET tokens = {TENANT_TOKENS.name}.tokens + excluded.tokens"
    " RETURNING tokens"
)
_READ = f"SELECT tokens FROM {TENANT_TOKENS.name} WHERE tenant = ?1 AND day = ?2"


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def seconds_left(now: datetime) -> float:
    """Seconds until the day of UTC ends."""
    tomorrow = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
    return (tomorrow - now).total_seconds()


class TokenLedger(SQLStore):
    """Counts the tokens that tenants use, day by day, for all instances on a database."""

    schema = ServiceSchema()

    async def add(self, tenant: str, tokens: int, *, day: str | None = None) -> int:
        """Count tokens, as of today unless a day such as `2026-11-16` is given; returns the day's sum."""
        counted = check_count("tokens", tokens) or 0
        return await self._write(partial(_add, check_id("tenant", tenant), day or _today(), counted))

    async def used(self, tenant: str, *, day: str | None = None) -> int:
        """The tokens of a day; of today, unless one is given."""
        return await self._fetch(_READ, (check_id("tenant", tenant), day or _today()), _tokens_from)


class Budget:
    """Says who has used up their tokens of today: to requests, and to workers that learn.

    `tokens_per_day` gives a tenant's limit, or `None` if there is none. What was used is read at most once a
    second, so several instances together may go over it by what they use in that time.
    """

    def __init__(
        self,
        ledger: TokenLedger,
        tokens_per_day: Callable[[str], int | None],
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._ledger = ledger
        self._tokens_per_day = tokens_per_day
        self._now = now
        self._used: BrieflyKept[tuple[str, str], int] = BrieflyKept()
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
            self.spent_here += tokens
            self.on_spent(tokens)
            day = _day_of(self._now())
            self._used.put((tenant, day), await self._ledger.add(tenant, tokens, day=day))

    async def check(self, tenant: str) -> None:
        """Raise a problem if the tokens of today are used up."""
        wait = await self.wait(tenant)
        if wait > 0:
            raise Problem(
                "token_budget_exceeded",
                f"at most {self._tokens_per_day(tenant)} model tokens in a day, which ends at 00:00 UTC",
                headers={"Retry-After": str(math.ceil(wait))},
            )

    async def _used_on(self, tenant: str, day: str) -> int:
        used = self._used.get((tenant, day))
        if used is None:
            used = await self._ledger.used(tenant, day=day)
            self._used.put((tenant, day), used)
        return used


def _count_nowhere(_: int) -> None:
    """Nobody else wants to know."""


def _day_of(now: datetime) -> str:
    return now.astimezone(UTC).date().isoformat()


def _today() -> str:
    return _day_of(utc_now())


def _add(tenant: str, day: str, tokens: int) -> Script[int]:
    rows = yield Statement(_ADD, (tenant, day, tokens), alone=True)
    return _tokens_from(rows)


def _tokens_from(rows: list[Row]) -> int:
    return int(rows[0][0]) if rows else 0
