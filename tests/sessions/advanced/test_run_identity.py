"""A run is counted once, and every run is counted, whatever ids, contexts and results there are."""

import asyncio
import json
import logging
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from agents import RunContextWrapper, Runner, RunResult, RunState
from agents.testing import ScriptedModel
from agents.usage import Usage

from recollect import AdvancedSQLiteSession, RetryingSession
from recollect.errors import DatabaseBusyError
from recollect.testing.contract import in_event_loop

from ...agents_sdk.scenarios import answer, approve, call, desk
from .database import Database, MemoryDatabase, SharedDatabase, rows, turns
from .test_usage import UNTRACED, by_turn, cost, restored, run, step, stored, totals_of

SAME_ID = "resp-789"


# --- ids that repeat ---


@pytest.mark.parametrize("automatic", [False, True], ids=["stored", "automatic"])
@in_event_loop
async def test_runs_whose_responses_repeat_an_id_are_all_counted(database: Database, automatic: bool) -> None:
    model = ScriptedModel([step(answer("hello"), 5, SAME_ID) for _ in range(3)])
    async with database.open(store_usage=automatic) as session:
        results = [await run(model, "hi", session) for _ in range(3)]
        for result in results * 2:
            await session.store_run_usage(result)
        assert await stored(session) == totals_of(*results) == [3, 15, 30, 45]


@in_event_loop
async def test_runs_that_share_a_context_are_counted_without_overlap(database: Database) -> None:
    """A caller may pass a wrapper in place of a context; its usage then grows from run to run."""
    model = ScriptedModel([step(answer("hello"), 5, SAME_ID) for _ in range(3)])
    shared: Any = RunContextWrapper(context=None)
    async with database.open() as session:
        for _ in range(3):
            result = await Runner.run(desk(model), "hi", session=session, context=shared, run_config=UNTRACED)
            await session.store_run_usage(result)
        assert await by_turn(session) == {1: 5, 2: 5, 3: 5}


# --- runs that are resumed ---


@pytest.mark.parametrize("response_id", ["", None, SAME_ID], ids=["ids", "no ids", "same id"])
@in_event_loop
async def test_a_run_resumed_from_json_is_counted_once(database: Database, response_id: Any) -> None:
    steps = [[call("pay", amount=5)], [call("pay", "b", amount=6)], answer("paid")]
    model = ScriptedModel([step(output, 10, response_id) for output in steps])
    async with database.open() as session:
        agent = desk(model)
        result = await run(model, "pay 5 and 6", session, agent)
        for _ in range(2):
            assert result.interruptions
            await session.store_run_usage(result)
            result = await run(model, await restored(result, agent), session, agent)
            await session.store_run_usage(result)
            await session.store_run_usage(result)
        assert await stored(session) == totals_of(result) == [3, 30, 60, 90]


@in_event_loop
async def test_two_ways_on_from_one_saved_state_are_both_counted(database: Database) -> None:
    """Each continuation costs its own requests, and the part before them costs once."""
    model = ScriptedModel([step([call("pay", amount=5)], 10), step(answer("x"), 20), step(answer("y"), 400)])
    async with database.open() as session:
        agent = desk(model)
        first = await run(model, "pay 5", session, agent)
        await session.store_run_usage(first)
        for _ in range(2):
            await session.store_run_usage(await run(model, approve(first), session, agent))
        assert await by_turn(session) == {1: 430}


@in_event_loop
async def test_interrupted_runs_with_the_same_costs_are_told_apart_by_their_turns(database: Database) -> None:
    model = ScriptedModel([step([call("pay", amount=5)], 5, SAME_ID) for _ in range(3)])
    async with database.open() as session:
        for _ in range(3):
            await session.store_run_usage(await run(model, "pay 5", session))
        assert await by_turn(session) == {1: 5, 2: 5, 3: 5}


@in_event_loop
async def test_a_new_run_in_the_turn_of_an_interrupted_one_is_counted(database: Database) -> None:
    model = ScriptedModel([step([call("pay", amount=5)], 5, SAME_ID) for _ in range(2)])
    async with database.open() as session:
        for given in ("pay 5", []):
            await session.store_run_usage(await run(model, given, session))
        assert await by_turn(session) == {1: 10}


_ELSEWHERE = """
import asyncio, json, sys
from tests.sessions.advanced.database import database_of
from tests.sessions.advanced.test_run_identity import resume
asyncio.run(resume(database_of(json.loads(sys.argv[1])), sys.argv[2]))
"""


async def resume(shared: SharedDatabase, state: str) -> None:
    """Approve everything, run to the end, and store the usage twice."""
    agent = desk(ScriptedModel([step(answer("paid"), 20, None)]))
    restored_state: RunState[Any] = await RunState.from_string(agent, state)
    for interruption in restored_state.get_interruptions():
        restored_state.approve(interruption)
    async with shared.open() as session:
        result = await Runner.run(agent, restored_state, session=session, run_config=UNTRACED)
        await session.store_run_usage(result)
        await session.store_run_usage(result)


@pytest.mark.proof
@in_event_loop
async def test_a_run_resumed_in_another_process_is_not_counted_twice(shared_database: SharedDatabase) -> None:
    model = ScriptedModel([step([call("pay", amount=5)], 10, None)])
    async with shared_database.open() as session:
        first = await run(model, "pay 5", session)
        await session.store_run_usage(first)
        state = first.to_state().to_string()
        command = (sys.executable, "-c", _ELSEWHERE, json.dumps(shared_database.arguments()), state)
        process = await asyncio.create_subprocess_exec(*command)
        assert await process.wait() == 0
        assert await stored(session) == [2, 30, 60, 90]


# --- contexts and results of every kind ---


class SlotsContext:
    __slots__ = ("usage",)

    def __init__(self, usage: object) -> None:
        self.usage = usage


class SlotsResult:
    __slots__ = ("context_wrapper",)

    def __init__(self, context: object) -> None:
        self.context_wrapper = context


def mocked(context: object) -> Any:
    return Mock(spec=RunResult, context_wrapper=context)


def wholly_mocked(context: object) -> Any:
    return Mock(context_wrapper=context)


def plain(context: object) -> Any:
    return SimpleNamespace(context_wrapper=context)


def mock_context(usage: object) -> Any:
    return Mock(spec=RunContextWrapper, usage=usage)


def plain_context(usage: object) -> Any:
    return SimpleNamespace(usage=usage)


@pytest.mark.parametrize("make_result", [plain, SlotsResult, mocked, wholly_mocked])
@pytest.mark.parametrize("make_context", [plain_context, SlotsContext, mock_context])
@in_event_loop
async def test_contexts_and_results_of_every_kind(make_context: Any, make_result: Any) -> None:
    async with MemoryDatabase().open() as session:
        usage = cost(5)
        for number in (1, 2):
            await session.add_items(turns(number))
            result = make_result(make_context(usage))
            await session.store_run_usage(result)
            await session.store_run_usage(result)
        assert await by_turn(session) == {1: 5, 2: 5}


@pytest.mark.parametrize("make_context", [plain_context, SlotsContext])
@in_event_loop
async def test_runs_of_one_turn_add_up_for_each_context(database: Database, make_context: Any) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        for number in (5, 5, 100):
            await session.store_run_usage(plain(make_context(cost(number))))
        assert await by_turn(session) == {1: 110}


@in_event_loop
async def test_a_run_on_which_nothing_can_be_marked_is_known_by_its_turn(database: Database) -> None:
    """As in the Agents SDK: the turn has the usage of the run that was stored last."""
    async with database.open() as session:
        await session.add_items(turns(1))
        for number in (5, 5, 100):
            await session.store_run_usage(SlotsResult(SlotsContext(cost(number))))
        assert await by_turn(session) == {1: 100}


@in_event_loop
async def test_details_of_every_kind(database: Database) -> None:
    class Slots:
        __slots__ = ()

    kinds = [{"a": 1}, SimpleNamespace(a=1), Mock(), Slots(), "text", 5]
    async with database.open() as session:
        for number, details in enumerate(kinds, start=1):
            await session.add_items(turns(number))
            usage = SimpleNamespace(requests=1, input_tokens_details=details)
            await session.store_run_usage(plain(plain_context(usage)))
        found = [turn["input_tokens_details"] for turn in await session.get_turn_usage()]
        assert found[:2] == [{"a": 1}, {"a": 1}]
        assert [turn["requests"] for turn in await session.get_turn_usage()] == [1] * len(kinds)


# --- where there is nothing to store, or it fails ---


@in_event_loop
async def test_results_without_usage_are_logged_and_change_nothing(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    nothing = plain(plain_context(None))
    unusable = (None, object(), "result", SimpleNamespace(), plain(None))
    async with database.open() as session:
        await session.add_items(turns(1))
        with caplog.at_level(logging.ERROR):
            await session.store_run_usage(nothing)
            assert not caplog.records, "a run may have no usage"
            for result in unusable:
                await session.store_run_usage(result)
        assert len(caplog.records) == len(unusable)
        for result in (nothing, *unusable):
            with pytest.raises(ValueError, match="usage"):
                await session.count_run(result)
        assert await session.get_session_usage() is None
        assert await rows(session, "SELECT 1 FROM {runs} WHERE session_id = ?1", "s") == []


@in_event_loop
async def test_a_session_without_items_has_no_turn_to_count_in(database: Database) -> None:
    result = plain(plain_context(cost(5)))
    async with database.open() as session:
        await session.store_run_usage(result)
        assert await session.get_turn_usage() == []
        await session.add_items([{"role": "system", "content": "Be brief."}])
        await session.store_run_usage(result)
        assert await by_turn(session) == {0: 5}


@in_event_loop
async def test_a_failure_is_logged_by_its_type_and_count_run_raises_it(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    session = database.open()
    await session.add_items(turns(1))
    await session.aclose()
    result = plain(plain_context(cost(5)))
    for used in (session, RetryingSession(session, delay=0)):
        caplog.clear()
        await used.store_run_usage(result)
        assert [record.getMessage() for record in caplog.records] == [
            "the usage of a run is not stored (SessionClosedError)"
        ]
        with pytest.raises(RuntimeError, match="closed"):
            await used.count_run(result)


class FailingOnce(AdvancedSQLiteSession):
    """A session whose database is busy at first."""

    failures = 1

    async def count_run(self, result: Any) -> None:
        if self.failures:
            self.failures -= 1
            raise DatabaseBusyError("the database is busy")
        await super().count_run(result)


@in_event_loop
async def test_a_retrying_session_tries_again_to_store_usage() -> None:
    async with FailingOnce(session_id="s") as session:
        await session.add_items(turns(1))
        await RetryingSession(session, delay=0).store_run_usage(plain(plain_context(Usage(requests=1))))
        assert await stored(session) == [1, 0, 0, 0]
