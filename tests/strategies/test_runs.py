"""Strategies in the real Runner: the input of the model at every call of a long conversation."""

import asyncio
import logging
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, ModelRetrySettings, ModelSettings, RunConfig, function_tool, retry_policies
from agents.run_internal.session_persistence import rewind_session_items
from agents.testing import ModelCall, ScriptedModel
from agents_sdk.scenarios import RUNS, answer, call, hiccup, thought

from recollect import InMemorySession, SQLiteSession, estimate_tokens, find_orphans
from recollect.sessions.advanced.sqlite import AdvancedSQLiteSession
from recollect.sessions.encryption import EncryptedSession
from recollect.strategies.session import StrategySession
from recollect.strategies.summarizers import SummaryRequest
from recollect.strategies.values import Compact, Strategy, Summarize, Trim
from recollect.strategies.views import strategy_input_filter, view_of
from recollect.testing.contract import in_event_loop

from .sessions import turn, turns

Item = dict[str, Any]
Open = Callable[[Path], Any]

TURNS = 60
STRATEGIES: dict[str, Strategy] = {
    "trim": Trim(8, 4),
    "trim by tokens": Trim(token_budget=500),
    "summarize": Summarize(8, 4, summary_max_tokens=100),
    "compact": Compact(8, 2, clear_tool_inputs=True),
}
SESSIONS: dict[str, Open] = {
    "in memory": lambda _: InMemorySession("s"),
    "sqlite": lambda folder: SQLiteSession("s", folder / "s.db"),
    "encrypted": lambda folder: EncryptedSession("s", SQLiteSession("s", folder / "s.db"), "secret"),
    "advanced": lambda folder: AdvancedSQLiteSession(session_id="s", db_path=folder / "s.db"),
    "encrypted over advanced": lambda folder: EncryptedSession(
        "s", AdvancedSQLiteSession(session_id="s", db_path=folder / "s.db"), "secret"
    ),
}
WIDE = [
    *(
        (session, strategy, "run")
        for session in SESSIONS
        for strategy in ("trim", "compact")
        if session != "sqlite"
    ),
    *(
        ("sqlite", strategy, kind)
        for strategy in ("summarize", "compact")
        for kind in ("run_streamed", "run_sync")
    ),
]
CASES = [
    *(("sqlite", strategy, "run") for strategy in STRATEGIES),
    ("encrypted over advanced", "summarize", "run"),
    *(pytest.param(*case, marks=pytest.mark.proof) for case in WIDE),
]


@function_tool
def look_up(order: int) -> str:
    """Look an order up."""
    return f"order {order} is in Leipzig, and will be for a while"


async def count_turns(request: SummaryRequest) -> str:
    """A summary that says how many turns it covers."""
    before = int(request.previous.split()[0]) if request.previous else 0
    return f"{before + sum(item.get('role') == 'user' for item in request.items)} turns"


def customer_service(model: ScriptedModel) -> Agent[Any]:
    retry = ModelRetrySettings(
        max_retries=2, policy=retry_policies.provider_suggested(), backoff={"initial_delay": 0}
    )
    return Agent(name="Desk", model=model, tools=[look_up], model_settings=ModelSettings(retry=retry))


def steps_of(number: int) -> list[Any]:
    """The script of the model in a turn: it thinks, calls a tool or two, fails, answers."""
    calls = [call("look_up", f"a{number}", order=number), call("look_up", f"b{number}", order=number + 1)]
    calls = calls[: 1 + number % 2]
    faltering = [hiccup()] if number % 7 == 0 else []
    thinking = [thought(f"{number}")] if number % 3 == 0 else []
    return [[*thinking, *calls], *faltering, answer(f"in Leipzig {number}")]


def expected_view(log: list[Item], strategy: Strategy) -> list[Item]:
    shown = view_of(log, strategy)
    if not isinstance(strategy, Summarize) or len(shown) == len(log):
        return shown
    covered = sum(item.get("role") == "user" for item in log[: len(log) - len(shown)])
    return view_of(log, strategy, summary=f"{covered} turns")


@pytest.mark.parametrize(("kind", "name", "run_kind"), CASES)
def test_a_conversation_of_sixty_turns(tmp_path: Path, kind: str, name: str, run_kind: str) -> None:
    strategy, inner = STRATEGIES[name], SESSIONS[kind](tmp_path)
    session = StrategySession(inner, strategy, summarizer=count_turns)
    assert isinstance(session, agents.Session)
    log: list[Item] = []
    with asyncio.Runner() as reader:
        for number in range(TURNS):
            model = ScriptedModel(steps_of(number))
            said = f"where is order {number}? " + "It is late. " * 5
            config = RunConfig(tracing_disabled=True)
            RUNS[run_kind](customer_service(model), said, session=session, run_config=config)
            model.assert_complete()
            shown = [list(made.input) for made in model.calls]
            expected = [*expected_view(log, strategy), {"role": "user", "content": said}]
            assert shown[0] == expected, f"turn {number}"
            for items in shown:
                check_input(items, strategy)
                assert items[: len(expected)] == expected, "what was shown stays while the turn goes on"
            log = check_log(reader.run(inner.get_items()), log, said)
        reader.run(session.aclose())


def check_input(items: list[Any], strategy: Strategy) -> None:
    assert not find_orphans(items)
    turns_shown = sum(item.get("role") == "user" for item in items)
    if isinstance(strategy, Compact):
        whole = sum("Leipzig, and" in str(item.get("output")) for item in items)
        assert whole <= 2 * (8 + 1), "outputs of older turns are compacted"
    elif strategy.budget is not None:
        assert estimate_tokens(items) <= strategy.budget + 200, "the budget, and the turn that goes on"
    else:
        assert turns_shown <= 8 + 1 + isinstance(strategy, Summarize)


def check_log(log: list[Item], before: list[Item], said: str) -> list[Item]:
    """The stored history has one more turn and is otherwise unchanged."""
    assert log[: len(before)] == before
    assert log[len(before)] == {"role": "user", "content": said}
    assert not find_orphans(log)
    assert len(log) > len(before) + 3
    return log


@pytest.mark.parametrize("name", STRATEGIES)
@in_event_loop
async def test_the_runners_rewind_takes_back_the_newest_items(tmp_path: Path, name: str) -> None:
    """The Runner compares its items with the end of the history, so the view must not hide that."""
    inner = SQLiteSession("s", tmp_path / "s.db")
    session = StrategySession(inner, STRATEGIES[name], summarizer=count_turns)
    for number in range(1, 31):
        await session.add_items(turn(number))
        before = await session.get_items()
        tail = turn(number + 100)[: 1 + number % 4]
        await session.add_items(tail)
        await rewind_session_items(session, tail)  # type: ignore[arg-type]
        assert await inner.get_items() == turns(1, number)
        after = await session.get_items()
        assert after == before or len(after) < len(before), "a cut that the turn made may stay"
    await session.aclose()


# --- settings of the run ---


@in_event_loop
async def test_a_limit_of_the_run_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    session = StrategySession(InMemorySession("s"), Trim(4, 2))
    await session.add_items(turns(1, 8))
    model = ScriptedModel([answer("one"), answer("two"), answer("three")])
    agent = Agent(name="Desk", model=model)
    limited = RunConfig(tracing_disabled=True, session_settings=agents.SessionSettings(limit=6))
    with caplog.at_level(logging.WARNING, logger="recollect"):
        await agents.Runner.run(agent, "hi", session=session, run_config=RunConfig(tracing_disabled=True))
        assert caplog.records == []
        for _ in range(2):
            await agents.Runner.run(agent, "hi", session=session, run_config=limited)
    assert len(caplog.records) == 1
    assert "bypasses the strategy" in caplog.text
    assert len(model.calls[1].input) == 7


# --- within one run ---


@function_tool
def read_page(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "much ado about nothing " * 40


def reading(pages: int) -> list[Any]:
    return [
        *([thought(f"p{page}"), call("read_page", f"c{page}", page=page)] for page in range(pages)),
        answer("the end"),
    ]


async def read_book(strategy: Strategy, pages: int, session: Any = None) -> list[ModelCall]:
    model = ScriptedModel(reading(pages))
    agent = Agent(name="Reader", instructions="Read it all.", model=model, tools=[read_page])
    config = RunConfig(tracing_disabled=True, call_model_input_filter=strategy_input_filter(strategy))
    result = await agents.Runner.run(agent, "read", session=session, run_config=config, max_turns=pages + 1)
    assert result.final_output == "the end"
    return list(model.calls)


@pytest.mark.parametrize(
    "strategy",
    [Trim(token_budget=2500), Summarize(token_budget=2500), Compact(token_budget=2500, keep=1)],
    ids=lambda strategy: strategy.mode,
)
@in_event_loop
async def test_a_long_run_stays_within_the_budget(strategy: Strategy) -> None:
    session = InMemorySession("s")
    calls = await read_book(strategy, 30, session)
    changed = 0
    for made, later in pairwise(calls):
        items: list[Any] = list(later.input)
        assert not find_orphans(items)
        assert estimate_tokens(items) <= 2500
        assert "much ado" in items[-1]["output"], "what the last tool gave back is there"
        changed += items[: len(made.input)] != list(made.input)
    assert 1 <= changed <= 10, "it is cut in steps, so that most calls begin as the one before"
    stored = await session.get_items()
    assert sum("much ado" in str(item.get("output")) for item in stored) == 30, "the log is whole"


@in_event_loop
async def test_a_run_that_fits_is_left_alone() -> None:
    calls = await read_book(Trim(token_budget=100_000), 5)
    assert (
        sum("much ado" in str(item.get("output")) for item in calls[-1].input if isinstance(item, dict)) == 5
    )
