"""The rows of token budgets: tokens used by tenant and day, and tokens reserved for turns in flight.

Lock order: the tenant's row of the day first, then its reservations; several tenants by their names. The row
of the day is locked before reservations are summed, so two instances cannot both take the last tokens.
Reservations expire by the database's clock, which all instances share.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...memory.database.dialect import dialect_of
from ...sql.scripts import Row, Script, Statement
from .schema import TENANT_TOKENS, TOKEN_RESERVATIONS

_USED, _RESERVED = TENANT_TOKENS.name, TOKEN_RESERVATIONS.name

ADD = (
    f"INSERT INTO {_USED} (tenant, day, tokens) VALUES (?1, ?2, ?3)"
    f" ON CONFLICT (tenant, day) DO UPDATE SET tokens = {_USED}.tokens + excluded.tokens"
    " RETURNING tokens"
)
READ = f"SELECT tokens FROM {_USED} WHERE tenant = ?1 AND day = ?2"
_RELEASE = f"DELETE FROM {_RESERVED} WHERE tenant = ?1 AND reservation_id = ?2"


class ReservationRequest(NamedTuple):
    """A tenant's request to reserve tokens on a day, for a lease of some seconds."""

    tenant: str
    day: str
    reservation_id: str
    tokens: int
    limit: int
    lease_seconds: float


class ReservationResult(NamedTuple):
    """The tokens used and reserved before the request, and whether it was granted."""

    used: int
    reserved: int
    is_granted: bool


class Settlement(NamedTuple):
    """The tokens that one call used on a day, and its reservation, if it has one."""

    tenant: str
    day: str
    tokens: int
    reservation_id: str | None = None


class ReservationQueries:
    """The statements whose text depends on the database."""

    def __init__(self, dialect_name: str) -> None:
        now = dialect_of(dialect_name).now
        self.expire = f"DELETE FROM {_RESERVED} WHERE tenant = ?1 AND expires_at <= {now}"
        self.sum = f"SELECT COALESCE(SUM(tokens), 0) FROM {_RESERVED} WHERE tenant = ?1"
        self.reserve = (
            f"INSERT INTO {_RESERVED} (tenant, reservation_id, tokens, expires_at)"
            f" VALUES (?1, ?2, ?3, {now} + ?4)"
        )


def add(tenant: str, day: str, tokens: int) -> Script[int]:
    """Count tokens; returns the total of the day."""
    return number_in((yield Statement(ADD, (tenant, day, tokens), alone=True)))


def reserve(queries: ReservationQueries, request: ReservationRequest) -> Script[ReservationResult]:
    """Reserve tokens if those used and reserved so far are below the limit."""
    used = number_in((yield Statement(ADD, (request.tenant, request.day, 0))))
    yield Statement(queries.expire, (request.tenant,))
    reserved = number_in((yield Statement(queries.sum, (request.tenant,))))
    is_granted = used + reserved < request.limit
    if is_granted:
        row = (request.tenant, request.reservation_id, request.tokens, request.lease_seconds)
        yield Statement(queries.reserve, row)
    return ReservationResult(used, reserved, is_granted)


def settle(tenant: str, day: str, reservation_id: str, tokens: int) -> Script[int]:
    """Replace a reservation by the tokens actually used; returns the total of the day."""
    used = number_in((yield Statement(ADD, (tenant, day, tokens))))
    yield Statement(_RELEASE, (tenant, reservation_id))
    return used


def settle_all(settlements: Sequence[Settlement]) -> Script[dict[tuple[str, str], int]]:
    """Settle many calls at once; returns the total of each tenant and day."""
    used: dict[tuple[str, str], int] = {}
    for each in settlements:
        used[each.tenant, each.day] = used.get((each.tenant, each.day), 0) + each.tokens
    totals: dict[tuple[str, str], int] = {}
    for (tenant, day), tokens in sorted(used.items()):  # locks are taken in one order
        totals[tenant, day] = number_in((yield Statement(ADD, (tenant, day, tokens))))
    for each in settlements:
        if each.reservation_id is not None:
            yield Statement(_RELEASE, (each.tenant, each.reservation_id))
    return totals


def release(tenant: str, reservation_id: str) -> Script[None]:
    """Delete a reservation, if it still exists."""
    yield Statement(_RELEASE, (tenant, reservation_id), alone=True)


def number_in(rows: list[Row]) -> int:
    """The number in the first column of the first row; 0 if there is none."""
    return int(rows[0][0]) if rows else 0
