"""Tokens reserved for chat turns in flight."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from recollect.server.access.budget import (
    Budget,
    Reservation,
    ReservationRules,
    TokenLedger,
    TurnEstimates,
    next_estimate,
)
from recollect.server.problems import Problem
from recollect.testing.contract import in_event_loop

from .places import Place

LIMIT, COST, PARALLEL = 100, 70, 30
RULES = ReservationRules(lambda _: COST, 60.0)


def budget_on(ledger: TokenLedger, rules: ReservationRules = RULES) -> Budget:
    return Budget(ledger, {"a": LIMIT, "b": LIMIT}.get, rules=rules)


async def reserve_many(*budgets: Budget) -> tuple[list[Reservation], list[Problem]]:
    tries = [budgets[number % len(budgets)].reserve("a") for number in range(PARALLEL)]
    results = await asyncio.gather(*tries, return_exceptions=True)
    granted = [each for each in results if isinstance(each, Reservation)]
    refused = [each for each in results if isinstance(each, Problem)]
    assert len(granted) + len(refused) == PARALLEL
    return granted, refused


@in_event_loop
async def test_parallel_turns_exceed_a_budget_no_further_than_turns_in_sequence(place: Place) -> None:
    async with place.open(TokenLedger) as ledger:
        budget = budget_on(ledger)
        granted, refused = await reserve_many(budget)
        assert len(granted) == 2, "70 is below 100, and 140 is not"
        assert {problem.code for problem in refused} == {"token_budget_exceeded"}
        assert {problem.headers["Retry-After"] for problem in refused} == {"2"}
        for reservation in granted:
            await reservation.settle(COST)
        assert await ledger.used("a") == 2 * COST


@in_event_loop
async def test_instances_on_one_database_share_reservations(shared_place: Place) -> None:
    async with shared_place.open(TokenLedger) as one, shared_place.open(TokenLedger) as two:
        granted, _ = await reserve_many(budget_on(one), budget_on(two))
        assert len(granted) == 2
        await (await budget_on(two).reserve("b")).release()


@in_event_loop
async def test_turns_in_sequence_are_refused_only_at_the_limit(place: Place) -> None:
    """Also where one estimate is more than the whole budget."""
    async with place.open(TokenLedger) as ledger:
        budget = budget_on(ledger, ReservationRules(lambda _: 10 * LIMIT))
        for cost in (40, 30, 29, 5):
            await (await budget.reserve("a")).settle(cost)
        with pytest.raises(Problem, match="00:00 UTC"):
            await budget.reserve("a")
        assert await ledger.used("a") == 104


@in_event_loop
async def test_a_turn_that_asks_no_model_gives_its_tokens_back(place: Place) -> None:
    async with place.open(TokenLedger) as ledger:
        budget = budget_on(ledger)
        held = [await budget.reserve("a"), await budget.reserve("a")]
        with pytest.raises(Problem):
            await budget.reserve("a")
        for reservation in held:
            await reservation.release()
            await reservation.release()
            await reservation.settle(COST)
        assert await ledger.used("a") == 0, "a reservation that was released counts nothing"
        await budget.reserve("a")


@in_event_loop
async def test_the_reservation_of_a_dead_process_ends_with_its_lease(place: Place) -> None:
    async with place.open(TokenLedger) as ledger:
        dead = budget_on(ledger, ReservationRules(lambda _: LIMIT, lease_seconds=-1.0))
        await dead.reserve("a")  # its lease was over before anybody settled it
        living = budget_on(ledger)
        reservation = await living.reserve("a")
        await living.reserve("a")
        with pytest.raises(Problem):
            await living.reserve("a")
        await reservation.settle(1)
        await living.reserve("a")


@in_event_loop
async def test_a_long_message_reserves_at_least_its_own_tokens() -> None:
    async with TokenLedger(":memory:") as ledger:
        budget = budget_on(ledger, ReservationRules(lambda _: 1))
        await budget.reserve("a", at_least=LIMIT)
        with pytest.raises(Problem, match="in flight"):
            await budget.reserve("a")


@in_event_loop
async def test_recent_turns_give_the_estimate() -> None:
    async with TokenLedger(":memory:") as ledger:
        budget = budget_on(ledger, ReservationRules(lambda _: 1))
        await (await budget.reserve("a")).settle(60)
        await budget.reserve("a")
        with pytest.raises(Problem, match="in flight"):
            await budget.reserve("a")


@pytest.mark.parametrize(
    "end", [lambda held: held.settle(COST), Reservation.release], ids=["settle", "release"]
)
@in_event_loop
async def test_a_ledger_that_fails_ends_no_turn(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, end: Callable[[Reservation], Awaitable[None]]
) -> None:
    path = tmp_path / "service.db"
    async with TokenLedger(path) as ledger:
        reservation = await budget_on(ledger).reserve("a")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TABLE token_reservations")
        await end(reservation)
    warnings = [record for record in caplog.records if record.name == "recollect.budget"]
    assert [record.levelname for record in warnings] == ["WARNING"]


@pytest.mark.parametrize(
    ("estimate", "cost", "expected"), [(100, 500, 500), (100, 20, 80), (80, 80, 80), (2, 1, 2)]
)
def test_an_estimate_rises_at_once_and_falls_slowly(estimate: int, cost: int, expected: int) -> None:
    assert next_estimate(estimate, cost) == expected


def test_estimates_of_quiet_tenants_are_dropped() -> None:
    estimates = TurnEstimates(max_tenants=2)
    for tenant in "abac":
        estimates.note(tenant, 7)
    assert (len(estimates), estimates.get("b"), estimates.get("a")) == (2, None, 7)
