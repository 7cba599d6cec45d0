"""The rows of idempotency keys: the owner and lease of a request, and its result.

Times are those of the database's clock, which all instances share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ...memory.database.dialect import dialect_of
from ...sql.columns import json_from_column
from ...sql.scripts import Script, Statement
from .schema import IDEMPOTENCY_KEYS

_TABLE = IDEMPOTENCY_KEYS.name

Decision: TypeAlias = Literal["new", "take_over", "replay", "reused", "in_progress"]


@dataclass(frozen=True)
class ClaimRequest:
    """A request that claims a key, with the values of its row."""

    tenant: str
    request_key: str
    body_hash: str
    seed: str
    owner: str


class ClaimRow(NamedTuple):
    """An existing row of a key."""

    body_hash: str
    seed: str
    made: Any
    is_leased: bool
    is_expired: bool


@dataclass(frozen=True)
class ClaimResult:
    """The decision on a claim, the seed of the ids, and the stored result if there is one."""

    decision: Decision
    seed: str
    made: dict[str, Any] | None = None


def decide(row: ClaimRow, body_hash: str) -> Decision:
    """Decide on a request whose key has a row already."""
    if row.is_expired:
        return "new"
    if row.body_hash != body_hash:
        return "reused"
    if row.made is not None:
        return "replay"
    return "in_progress" if row.is_leased else "take_over"


class ClaimQueries:
    """The statements in the dialect of a database."""

    def __init__(self, dialect_name: str) -> None:
        dialect = dialect_of(dialect_name)
        now = dialect.now
        self.add = (
            f"INSERT INTO {_TABLE} (request_key, tenant, body_hash, seed, owner, leased_until, expires_at)"
            f" VALUES (?1, ?2, ?3, ?4, ?5, {now} + ?6, {now} + ?7)"
            " ON CONFLICT (request_key) DO NOTHING RETURNING 1"
        )
        self.read = (
            f"SELECT body_hash, seed, made, CASE WHEN leased_until > {now} THEN 1 ELSE 0 END,"
            f" CASE WHEN expires_at > {now} THEN 0 ELSE 1 END FROM {_TABLE} WHERE request_key = ?1"
            f"{dialect.lock}"
        )
        self.take = (
            f"UPDATE {_TABLE} SET body_hash = ?2, seed = ?3, owner = ?4, leased_until = {now} + ?5,"
            f" expires_at = {now} + ?6, made = NULL, user_key = NULL WHERE request_key = ?1"
        )
        self.renew = f"UPDATE {_TABLE} SET leased_until = {now} + ?3 {_OWN}"
        self.finish = f"UPDATE {_TABLE} SET made = ?3, user_key = ?4, leased_until = 0 {_OWN}"
        self.release = f"UPDATE {_TABLE} SET leased_until = 0 {_OWN}"
        self.drop = f"DELETE FROM {_TABLE} {_OWN}"
        self.purge = (
            f"DELETE FROM {_TABLE} WHERE request_key IN"
            f" (SELECT request_key FROM {_TABLE} WHERE expires_at <= {now} LIMIT ?1{dialect.skip_locked})"
            " RETURNING 1"
        )
        self.forget = f"DELETE FROM {_TABLE} WHERE user_key = ?1 RETURNING 1"


# Only the owner of a claim may change it, and a stored result never changes.
_OWN = "WHERE request_key = ?1 AND owner = ?2 AND made IS NULL RETURNING 1"


def add(queries: ClaimQueries, request: ClaimRequest, lease: float, lifetime: float) -> Statement:
    """The statement that claims a new key. It returns a row if the key was new."""
    row = (
        request.request_key,
        request.tenant,
        request.body_hash,
        request.seed,
        request.owner,
        lease,
        lifetime,
    )
    return Statement(queries.add, row)


def claim(queries: ClaimQueries, request: ClaimRequest, lease: float, lifetime: float) -> Script[ClaimResult]:
    """Claim a key, or say why that is not possible."""
    while not (yield add(queries, request, lease, lifetime)):
        rows = yield Statement(queries.read, (request.request_key,))
        if rows:
            return (yield from _claim_existing(queries, request, ClaimRow(*rows[0]), lease, lifetime))
        # The row was deleted in between, and can be added now.
    return ClaimResult("new", request.seed)


def _claim_existing(
    queries: ClaimQueries, request: ClaimRequest, row: ClaimRow, lease: float, lifetime: float
) -> Script[ClaimResult]:
    decision = decide(row, request.body_hash)
    seed = request.seed if decision == "new" else row.seed
    if decision in ("new", "take_over"):
        taken = (request.request_key, request.body_hash, seed, request.owner, lease, lifetime)
        yield Statement(queries.take, taken)
    made = json_from_column(row.made) if decision == "replay" else None
    return ClaimResult(decision, seed, made)


def change(query: str, parameters: Sequence[Any]) -> Script[int]:
    """Run one statement; returns the number of rows that it returns."""
    rows = yield Statement(query, parameters, alone=True)
    return len(rows)
