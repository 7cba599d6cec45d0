"""The rows of idempotency keys: who carries out a request, until when, and what it made.

Times are by the database's clock, which all instances share.
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
class Asked:
    """A request that wants to be carried out, as its row would tell it."""

    tenant: str
    request_key: str
    body_hash: str
    seed: str
    owner: str


class Kept(NamedTuple):
    """A row that is there already."""

    body_hash: str
    seed: str
    made: Any
    is_leased: bool
    is_expired: bool


@dataclass(frozen=True)
class Claimed:
    """What became of a request that asked: whether it may go on, and with which seed, or what was made."""

    decision: Decision
    seed: str
    made: dict[str, Any] | None = None


def decide(kept: Kept, body_hash: str) -> Decision:
    """What a request may do whose key is there already."""
    if kept.is_expired:
        return "new"
    if kept.body_hash != body_hash:
        return "reused"
    if kept.made is not None:
        return "replay"
    return "in_progress" if kept.is_leased else "take_over"


class ClaimQueries:
    """The statements, as a database takes them."""

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


# Whoever lost a claim changes nothing more, and nobody changes what was made.
_OWN = "WHERE request_key = ?1 AND owner = ?2 AND made IS NULL RETURNING 1"


def add(queries: ClaimQueries, asked: Asked, lease: float, lifetime: float) -> Statement:
    """The statement that claims a key which nobody has: it gives a row if that was so."""
    row = (asked.request_key, asked.tenant, asked.body_hash, asked.seed, asked.owner, lease, lifetime)
    return Statement(queries.add, row)


def claim(queries: ClaimQueries, asked: Asked, lease: float, lifetime: float) -> Script[Claimed]:
    """Claim a key, or find out why that cannot be."""
    while not (yield add(queries, asked, lease, lifetime)):
        rows = yield Statement(queries.read, (asked.request_key,))
        if rows:
            return (yield from _claim_kept(queries, asked, Kept(*rows[0]), lease, lifetime))
        # It was deleted in between, and can be added now.
    return Claimed("new", asked.seed)


def _claim_kept(
    queries: ClaimQueries, asked: Asked, kept: Kept, lease: float, lifetime: float
) -> Script[Claimed]:
    decision = decide(kept, asked.body_hash)
    seed = asked.seed if decision == "new" else kept.seed
    if decision in ("new", "take_over"):
        taken = (asked.request_key, asked.body_hash, seed, asked.owner, lease, lifetime)
        yield Statement(queries.take, taken)
    made = json_from_column(kept.made) if decision == "replay" else None
    return Claimed(decision, seed, made)


def change(query: str, parameters: Sequence[Any]) -> Script[int]:
    """Run one statement, and count the rows that it concerned."""
    rows = yield Statement(query, parameters, alone=True)
    return len(rows)
