"""What turns cost: stored from the results of real runs, or while they run, each run once."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunState,
)
from agents.testing import ModelStep, ScriptedModel
from agents.usage import Usage
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Reply
from recollect.testing.providers import Usage as TokensTold

from ...agents_sdk.scenarios import RUNS, answer, approve, approve_elsewhere, call, desk, outage
from ...providers.clients import client_of
from .database import Database, MemoryDatabase, change, turns

UNTRACED = RunConfig(tracing_disabled=True)
COUNTS = ("requests", "input_tokens", "output_tokens", "total_tokens")


def cost(number: int) -> Usage:
    return Usage(
        requests=1,
        input_tokens=number,
        output_tokens=2 * number,
        total_tokens=3 * number,
        input_tokens_details=InputTokensDetails(cached_tokens=number, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=number),
    )


def step(output: list[Any], number: int, response_id: str | None = "") -> ModelStep:
    """An answer of the model that costs so much; its response has an id of its own unless given another."""
    response_id = f"resp_{number}" if response_id == "" else response_id
    return ModelStep(output=output, usage=cost(number), response_id=response_id)


def totals_of(*results: Any) -> list[int]:
    """What runs have cost, as their results say."""
    return [sum(getattr(result.context_wrapper.usage, name) for result in results) for name in COUNTS]


async def stored(session: Any, branch: str | None = None) -> list[int] | None:
    found = await session.get_session_usage(branch)
    return found and [found[name] for name in COUNTS]


async def by_turn(session: Any, branch: str | None = None) -> dict[int, int]:
    return {
        turn["user_turn_number"]: turn["input_tokens"] for turn in await session.get_turn_usage(None, branch)
    }


async def run(model: ScriptedModel, given: Any, session: Any, agent: Any = None) -> Any:
    return await Runner.run(agent or desk(model), given, session=session, run_config=UNTRACED)


# --- from results ---


@pytest.mark.parametrize("kind", RUNS)
def test_the_result_of_a_run_is_stored_once(database: Database, kind: str) -> None:
    model = ScriptedModel([step([call("add", a=1, b=2)], 5), step(answer("3"), 7), step(answer("bye"), 100)])
    session = database.open()
    results = [
        RUNS[kind](desk(model), text, session=session, run_config=UNTRACED) for text in ("1+2?", "bye")
    ]

    async def store() -> None:
        for result in results:
            await session.store_run_usage(result)  # both belong to the turn that is current now
            await session.store_run_usage(result)
        assert await stored(session) == totals_of(*results) == [3, 112, 224, 336]
        assert await by_turn(session) == {2: 112}
        await session.aclose()

    asyncio.run(store())


@in_event_loop
async def test_a_turn_has_every_field_with_details_parsed(database: Database) -> None:
    model = ScriptedModel([step([call("add", a=1, b=2)], 5), step(answer("3"), 7), step(answer("bye"), 100)])
    async with database.open() as session:
        for text in ("1+2?", "bye"):
            await session.store_run_usage(await run(model, text, session))
        first = {
            "requests": 2,
            "input_tokens": 12,
            "output_tokens": 24,
            "total_tokens": 36,
            "input_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 12},
        }
        found = await session.get_turn_usage(1)
        every = await session.get_turn_usage()
        assert every[0] == {"user_turn_number": 1, **found}
        assert (
            found["input_tokens_details"].pop("cache_write_tokens_details", None) is None
        )  # by newer clients
        assert found == first
        assert await session.get_turn_usage(9) == {}
        assert [turn["user_turn_number"] for turn in every] == [1, 2]
        assert await session.get_session_usage() == {
            "requests": 3,
            "input_tokens": 112,
            "output_tokens": 224,
            "total_tokens": 336,
            "total_turns": 2,
        }


@in_event_loop
async def test_two_runs_in_one_turn_add_up(database: Database) -> None:
    """The second is given no user message: it goes on where the first was cut off."""
    model = ScriptedModel([step([call("add", a=1, b=2)], 5), step(answer("3"), 7), step(answer("x"), 100)])
    async with database.open() as session:
        first = await run(model, "1+2?", session)
        await session.store_run_usage(first)
        second = await run(model, [{"role": "developer", "content": "say more"}], session)
        await session.store_run_usage(second)
        await session.store_run_usage(first)
        assert await by_turn(session) == {1: 112}
        details = (await session.get_turn_usage(1))["output_tokens_details"]
        assert details == {"reasoning_tokens": 112}


@in_event_loop
async def test_a_stream_stored_before_its_end_and_after(database: Database) -> None:
    model = ScriptedModel([step([call("add", a=1, b=2)], 5), step(answer("3"), 7)])
    async with database.open() as session:
        result = Runner.run_streamed(desk(model), "1+2?", session=session, run_config=UNTRACED)
        seen: list[Any] = []
        async for _ in result.stream_events():
            await session.store_run_usage(result)
            seen.append(await stored(session) or [])
        await session.store_run_usage(result)
        assert await stored(session) == totals_of(result) == [2, 12, 24, 36]
        assert seen == sorted(seen), "it only ever grew"


@pytest.mark.parametrize("response_id", ["", None, "__fake_id__"], ids=["ids", "no ids", "placeholders"])
@in_event_loop
async def test_runs_of_models_that_give_no_ids_are_told_apart(database: Database, response_id: Any) -> None:
    model = ScriptedModel([step(answer(str(n)), n, response_id) for n in (5, 5, 5)])
    if response_id == "":
        model = ScriptedModel([step(answer(str(n)), 5, f"resp_{n}") for n in range(3)])
    async with database.open() as session:
        results = [await run(model, "hi", session) for _ in range(3)]
        for result in results * 2:
            await session.store_run_usage(result)
        assert await stored(session) == totals_of(*results) == [3, 15, 30, 45]


@pytest.mark.parametrize("response_id", ["", None], ids=["ids", "no ids"])
@in_event_loop
async def test_an_interrupted_run_that_goes_on_counts_once(database: Database, response_id: Any) -> None:
    model = ScriptedModel(
        [step([call("pay", amount=5)], 5, response_id), step(answer("x"), 100, response_id)]
    )
    async with database.open() as session:
        agent = desk(model)
        first = await run(model, "pay 5", session, agent)
        assert first.interruptions
        await session.store_run_usage(first)
        assert await stored(session) == [1, 5, 10, 15]
        second = await run(model, approve(first), session, agent)
        for result in (second, first, second):
            await session.store_run_usage(result)
        assert await stored(session) == totals_of(second) == [2, 105, 210, 315]


@in_event_loop
async def test_a_run_interrupted_here_that_goes_on_elsewhere_counts_once(database: Database) -> None:
    """Its state was written down and read again, as by another process; responses keep their ids."""
    model = ScriptedModel([step([call("pay", amount=5)], 5), step(answer("paid"), 100)])
    async with database.open() as session:
        agent = desk(model)
        first = await run(model, "pay 5", session, agent)
        await session.store_run_usage(first)
        second = await run(model, await restored(first, agent), session, agent)
        await session.store_run_usage(second)
        assert await stored(session) == totals_of(second) == [2, 105, 210, 315]


async def restored(result: Any, agent: Any) -> RunState[Any]:
    state: RunState[Any] = await RunState.from_json(agent, result.to_state().to_json())
    for interruption in state.get_interruptions():
        state.approve(interruption)
    return state


@in_event_loop
async def test_handoffs_and_agents_as_tools_are_part_of_the_run(database: Database) -> None:
    inner = ScriptedModel([step(answer("sunny"), 1000)])
    forecaster = Agent(name="Forecaster", model=inner)
    outer = ScriptedModel(
        [
            step([call("ask", input="sun?")], 1),
            step([call("transfer_to_expert", "t")], 10),
            step(answer("x"), 100),
        ]
    )
    agent = desk(outer)
    agent.tools.append(forecaster.as_tool("ask", "Ask for the weather."))
    async with database.open() as session:
        result = await run(outer, "sun?", session, agent)
        await session.store_run_usage(result)
        assert await stored(session) == totals_of(result)
        assert await by_turn(session) == {1: 1111}


@pytest.mark.parametrize("automatic", [False, True], ids=["stored", "automatic"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_runs_of_real_models_streamed_and_whole(automatic: bool, api: str) -> None:
    """Over HTTP: the SDK gives each streamed response of Chat Completions one and the same id."""
    kinds: dict[str, Any] = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}

    async def play(server: ProviderServer) -> None:
        async with client_of(server) as client, MemoryDatabase().open(store_usage=automatic) as session:
            settings = ModelSettings(include_usage=True)
            agent = Agent("desk", model=kinds[api]("gpt-4o-mini", client), model_settings=settings)
            results = []
            for number in (1, 10, 100, 1000):
                getattr(server, api).reply(Reply("hello", usage=TokensTold(number, 1)))
                results.append(await whole_or_streamed(agent, session, streamed=number < 100))
                await session.store_run_usage(results[-1])
            assert await stored(session) == totals_of(*results)
            assert await by_turn(session) == {1: 1, 2: 10, 3: 100, 4: 1000}

    with ProviderServer() as server:
        asyncio.run(play(server))


async def whole_or_streamed(agent: Agent[Any], session: Any, streamed: bool) -> Any:
    if not streamed:
        return await Runner.run(agent, "hi", session=session, run_config=UNTRACED)
    result = Runner.run_streamed(agent, "hi", session=session, run_config=UNTRACED)
    async for _ in result.stream_events():
        pass
    return result


# --- while they run ---


@pytest.mark.parametrize("kind", RUNS)
def test_usage_is_stored_while_runs_run_and_afterwards_nothing_is_added(
    database: Database, kind: str
) -> None:
    steps = [[call("add", a=1, b=2)], [call("transfer_to_expert", "t")], answer("3"), answer("bye")]
    model = ScriptedModel([step(output, 10**n) for n, output in enumerate(steps)])
    session = database.open(store_usage=True)
    results = [
        RUNS[kind](desk(model), text, session=session, run_config=UNTRACED) for text in ("1+2?", "bye")
    ]

    async def compare() -> None:
        assert await by_turn(session) == {1: 111, 2: 1000}
        assert await stored(session) == totals_of(*results)
        for result in results:
            await session.store_run_usage(result)
        assert await by_turn(session) == {1: 111, 2: 1000}
        await session.aclose()

    asyncio.run(compare())


@pytest.mark.parametrize("decide", [approve, approve_elsewhere], ids=["here", "elsewhere"])
@pytest.mark.parametrize("kind", RUNS)
def test_an_interrupted_run_that_goes_on_is_counted_as_it_runs(kind: str, decide: Any) -> None:
    model = ScriptedModel(
        [step([call("pay", amount=5)], 5), step(answer("paid"), 100), step(answer("x"), 1000)]
    )
    agent, session = desk(model), MemoryDatabase().open(store_usage=True)
    first = RUNS[kind](agent, "pay 5", session=session, run_config=UNTRACED)
    assert asyncio.run(stored(session)) == [1, 5, 10, 15]
    second = RUNS[kind](agent, decide(first), session=session, run_config=UNTRACED)
    assert asyncio.run(stored(session)) == totals_of(second) == [2, 105, 210, 315]
    third = RUNS[kind](agent, "thanks", session=session, run_config=UNTRACED)
    for result in (first, second, third):
        asyncio.run(session.store_run_usage(result))
    assert asyncio.run(by_turn(session)) == {1: 105, 2: 1000}
    session.close()


@in_event_loop
async def test_a_run_that_is_given_nothing_new_is_counted(database: Database) -> None:
    model = ScriptedModel([step(answer("hello"), 5)])
    async with database.open(store_usage=True) as session:
        await session.add_items(turns(1)[:1])
        result = await run(model, [], session)
        assert await stored(session) == totals_of(result)
        assert await by_turn(session) == {1: 5}


@in_event_loop
async def test_what_a_run_cost_before_it_failed_is_kept(database: Database) -> None:
    model = ScriptedModel([step([call("add", a=1, b=2)], 5), outage(), step(answer("3"), 100)])
    async with database.open(store_usage=True) as session:
        with pytest.raises(RuntimeError):
            await run(model, "1+2?", session)
        assert await by_turn(session) == {1: 5}
        await run(model, "again", session)
        assert await by_turn(session) == {1: 5, 2: 100}


@in_event_loop
async def test_without_the_option_nothing_is_stored_by_itself(database: Database) -> None:
    async with database.open() as session:
        await run(ScriptedModel([step(answer("hello"), 5)]), "hi", session)
        assert await session.get_session_usage() is None


@in_event_loop
async def test_runs_at_once_on_one_session_are_all_counted(database: Database) -> None:
    async with database.open(store_usage=True) as session:
        models = [
            ScriptedModel([step([call("add", a=1, b=2)], n), step(answer("3"), n)]) for n in range(1, 9)
        ]
        results = await asyncio.gather(*(run(model, "1+2?", session) for model in models))
        assert await stored(session) == totals_of(*results)
        await asyncio.gather(*(session.store_run_usage(result) for result in results))
        assert await stored(session) == totals_of(*results)


# --- branches ---


@in_event_loop
async def test_each_branch_has_usage_of_its_own(database: Database) -> None:
    model = ScriptedModel([step(answer(str(n)), 10**n) for n in range(4)])
    async with database.open(store_usage=True) as session:
        for text in ("one", "two"):
            await run(model, text, session)
        await session.create_branch_from_turn(2, "b")
        for text in ("three", "four"):
            await run(model, text, session)
        assert await by_turn(session) == {2: 100, 3: 1000}
        assert await by_turn(session, "main") == {1: 1, 2: 10}
        assert (await stored(session, "b"), await stored(session, "main")) == (
            [2, 1100, 2200, 3300],
            [2, 11, 22, 33],
        )
        assert await stored(session) == [4, 1111, 2222, 3333]
        assert (await session.get_session_usage())["total_turns"] == 4
        assert (await session.get_turn_usage(2, "main"))["input_tokens"] == 10
        assert await session.get_turn_usage(1) == {}, "it was main that paid for it"
        await session.delete_branch("b", force=True)
        assert await stored(session) == [2, 11, 22, 33]


# --- results that are none ---


@in_event_loop
async def test_turns_that_are_none(database: Database) -> None:
    async with database.open() as session:
        for turn in (-1, 2**31, 2**70, True, "1", 1.0):
            with pytest.raises(ValueError, match="turn"):
                await session.get_turn_usage(turn)


@in_event_loop
async def test_details_that_cannot_be_read_are_left_out(database: Database) -> None:
    """Others write to these tables too. On PostgreSQL the column takes nothing but JSON."""
    async with database.open(store_usage=True) as session:
        await run(ScriptedModel([step(answer("x"), 5)]), "hi", session)
        bad = "'[1]'" if "sessions_table" in repr(database) else "'{{broken'"
        statement = (
            f"UPDATE {{usage}} SET input_tokens_details = {bad}, output_tokens = NULL WHERE session_id = ?1"
        )
        await change(session, statement, "s")
        found = await session.get_turn_usage(1)
        assert (found["input_tokens_details"], found["output_tokens"]) == (None, 0)
        assert found["output_tokens_details"] == {"reasoning_tokens": 5}
        assert await stored(session) == [1, 5, 0, 15]


@in_event_loop
async def test_large_counts(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        for _ in range(2):
            usage = Usage(requests=1, input_tokens=2**40, output_tokens=2**40, total_tokens=2**41)
            await session.store_run_usage(SimpleNamespace(context_wrapper=SimpleNamespace(usage=usage)))
        assert await stored(session) == [2, 2**41, 2**41, 2**42]
