"""The input of one model call stays within a strategy's limits."""

import logging
from dataclasses import dataclass
from typing import Any

import pytest

from recollect import estimate_tokens, find_orphans
from recollect.strategies.values import Compact, Strategy, Summarize, Trim
from recollect.strategies.views import fit_input, strategy_input_filter, view_of

from .generated import history
from .sessions import turn, turns

Item = dict[str, Any]


@dataclass
class ModelData:
    """The data as the SDK passes it."""

    input: list[Item]
    instructions: str | None


@dataclass
class CallData:
    model_data: ModelData
    agent: Any = None
    context: Any = None


def filtered(strategy: Strategy, items: list[Item], instructions: str | None = None) -> list[Item]:
    data = ModelData(list(items), instructions)
    result = strategy_input_filter(strategy)(CallData(data))
    assert type(result) is ModelData
    assert result.instructions == instructions
    assert data.input == items, "what was handed over is not changed"
    made: list[Item] = result.input
    return made


@pytest.mark.parametrize("strategy", [Trim(4, 2), Compact(4, 2)])
def test_turns_are_cut_as_in_a_session(strategy: Strategy) -> None:
    for number in range(1, 12):
        assert filtered(strategy, turns(1, number)) == view_of(turns(1, number), strategy)


def test_a_strategy_that_summarizes_leaves_the_turns_to_the_session() -> None:
    assert filtered(Summarize(4, 2), turns(1, 12)) == turns(1, 12)


STRATEGIES = [
    Trim(token_budget=250),
    Trim(5, 3, token_budget=250),
    Summarize(token_budget=250, keep_last_user_turns=2),
    Compact(5, 2, token_budget=250),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_is_torn(strategy: Strategy) -> None:
    for seed in range(500):
        items = history(seed)
        made, fits = fit_input(items, strategy)
        assert not find_orphans(made, spare_newest_turn=False), f"history {seed}"
        assert fits == (estimate_tokens(made) <= 250)
        assert fit_input(made, strategy)[0] == made or not fits, "once more changes nothing"


def test_the_instructions_count() -> None:
    items = [*turn(1, "words " * 50), *turn(2)[:1]]
    strategy = Trim(token_budget=estimate_tokens(items) + 20, keep_last_user_turns=2)
    assert filtered(strategy, items, "x" * 80) == items
    made = filtered(strategy, items, "x" * 100)
    assert "compacted" in made[2]["output"]
    assert made[4:] == items[4:], "what is left of the budget is enough for the rest"


def test_lists_of_tools_are_honoured() -> None:
    items = turns(1, 9)
    made = filtered(Compact(token_budget=100, keep=1, exclude_tools=["look_up"]), items)
    assert made == items


def test_it_says_so_once_when_it_cannot_be_done(caplog: pytest.LogCaptureFixture) -> None:
    keep_within = strategy_input_filter(Trim(token_budget=10))
    with caplog.at_level(logging.WARNING, logger="recollect"):
        for _ in range(3):
            keep_within(CallData(ModelData(turn(1), None)))
    assert len(caplog.records) == 1
    assert "budget of 10 tokens" in caplog.text


def test_nothing_is_too_little() -> None:
    assert filtered(Trim(token_budget=10), []) == []
    assert filtered(Trim(2), [{"role": "user", "content": "hi"}]) == [{"role": "user", "content": "hi"}]
