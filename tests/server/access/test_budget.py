"""Tokens of models, by tenant and day, and what happens when they are used up."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from recollect.server.access.budget import Budget, TokenLedger, seconds_left
from recollect.server.problems import Problem
from recollect.testing.contract import in_event_loop

from .places import Place


class Calendar:
    now = datetime(2026, 11, 16, 23, 59, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def test_the_day_ends_at_midnight_in_utc() -> None:
    assert seconds_left(datetime(2026, 12, 31, 23, 0, tzinfo=UTC)) == 3600
    assert seconds_left(datetime(2026, 11, 16, tzinfo=UTC)) == 86400
    assert seconds_left(datetime(2026, 11, 17, 1, 0, tzinfo=timezone(timedelta(hours=2)))) == 3600


@in_event_loop
async def test_tokens_are_counted_by_tenant_and_day(place: Place) -> None:
    async with place.open(TokenLedger) as ledger:
        assert await ledger.used("a") == 0
        assert await ledger.add("a", 10) == 10
        assert await ledger.add("a", 5) == 15
        await ledger.add("b", 1)
        await ledger.add("a", 7, day="2020-02-29")
        assert [await ledger.used("a"), await ledger.used("b"), await ledger.used("c")] == [15, 1, 0]
        assert await ledger.used("a", day="2020-02-29") == 7


@in_event_loop
async def test_nothing_is_lost_when_many_count_at_once(shared_place: Place) -> None:
    async with shared_place.open(TokenLedger) as one, shared_place.open(TokenLedger) as two:
        await asyncio.gather(*(ledger.add("a", 1, day="2026-01-01") for ledger in [one, two] * 20))
        assert await one.used("a", day="2026-01-01") == 40


@pytest.mark.parametrize("tokens", [-1, 2**63])
@in_event_loop
async def test_what_cannot_be_a_number_of_tokens_is_refused(tokens: int) -> None:
    async with TokenLedger(":memory:") as ledger:
        with pytest.raises(ValueError, match="tokens"):
            await ledger.add("a", tokens)


@in_event_loop
async def test_a_tenant_waits_until_the_day_ends_and_no_longer(place: Place) -> None:
    calendar = Calendar()
    async with place.open(TokenLedger) as ledger:
        budget = Budget(ledger, {"a": 100, "b": 100}.get, now=calendar)
        await budget.spent("a", 99)
        assert await budget.wait("a") == 0
        await budget.spent("a", 1)
        assert await budget.wait("a") == 30
        assert await budget.wait("b") == 0
        calendar.now += timedelta(seconds=30)
        assert await budget.wait("a") == 0


@in_event_loop
async def test_a_tenant_without_a_limit_is_counted_and_never_waits() -> None:
    async with TokenLedger(":memory:") as ledger:
        budget = Budget(ledger, lambda _: None)
        await budget.spent("a", 10**12)
        await budget.spent("a", 0)
        assert await budget.wait("a") == 0
        await (await budget.reserve("a")).release()
        assert await ledger.used("a") == 10**12


@in_event_loop
async def test_whoever_wants_to_know_is_told_what_was_spent_here() -> None:
    told: list[int] = []
    async with TokenLedger(":memory:") as ledger:
        budget = Budget(ledger, lambda _: None)
        budget.on_spent = told.append
        for tokens in (7, 0, 5):
            await budget.spent("a", tokens)
    assert (told, budget.spent_here) == ([7, 5], 12)


@in_event_loop
async def test_a_request_hears_when_it_may_come_again() -> None:
    async with TokenLedger(":memory:") as ledger:
        budget = Budget(ledger, {"a": 10}.get, now=Calendar())
        await (await budget.reserve("a")).release()
        await budget.spent("a", 10)
        with pytest.raises(Problem) as raised:
            await budget.reserve("a")
    problem = raised.value
    assert (problem.code, problem.status) == ("token_budget_exceeded", 429)
    assert problem.headers == {"Retry-After": "30"}
    assert "10 model tokens" in problem.detail


@in_event_loop
async def test_what_another_instance_used_counts(shared_place: Place) -> None:
    async with shared_place.open(TokenLedger) as one, shared_place.open(TokenLedger) as two:
        calendar = Calendar()
        await Budget(one, {"a": 10}.get, now=calendar).spent("a", 10)
        assert await Budget(two, {"a": 10}.get, now=calendar).wait("a") == 30


@in_event_loop
async def test_what_was_used_is_not_read_for_each_request() -> None:
    async with TokenLedger(":memory:") as ledger:
        budget = Budget(ledger, {"a": 10}.get, now=Calendar())
        assert await budget.wait("a") == 0
    assert await budget.wait("a") == 0, "the closed ledger was not asked"
