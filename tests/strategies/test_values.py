"""Strategies are values that reject invalid fields and name them."""

import dataclasses
from typing import Any

import pytest

from recollect.strategies.values import Compact, Summarize, Trim


@pytest.mark.parametrize("kind", [Trim, Summarize])
@pytest.mark.parametrize(
    ("knobs", "error", "field"),
    [
        ({}, ValueError, "max_user_turns"),
        ({"max_user_turns": 0}, ValueError, "max_user_turns"),
        ({"max_user_turns": -3}, ValueError, "max_user_turns"),
        ({"max_user_turns": True}, TypeError, "max_user_turns"),
        ({"max_user_turns": 2.5}, TypeError, "max_user_turns"),
        ({"max_user_turns": "8"}, TypeError, "max_user_turns"),
        ({"max_user_turns": float("nan")}, TypeError, "max_user_turns"),
        ({"max_user_turns": 3, "keep_last_user_turns": -1}, ValueError, "keep_last_user_turns"),
        ({"max_user_turns": 3, "keep_last_user_turns": 4}, ValueError, "keep_last_user_turns"),
        ({"max_user_turns": 3, "keep_last_user_turns": None}, TypeError, "keep_last_user_turns"),
    ],
)
def test_turns_that_make_no_sense(
    kind: Any, knobs: dict[str, Any], error: type[Exception], field: str
) -> None:
    with pytest.raises(error, match=field):
        kind(**knobs)


@pytest.mark.parametrize("kind", [Trim, Summarize, Compact])
@pytest.mark.parametrize(
    ("knobs", "error", "field"),
    [
        ({"token_budget": 0}, ValueError, "token_budget"),
        ({"token_budget": -1}, ValueError, "token_budget"),
        ({"token_budget": 1e9}, TypeError, "token_budget"),
        ({"context_window_tokens": 8000}, ValueError, "token_remaining_pct"),
        ({"token_remaining_pct": 20}, ValueError, "context_window_tokens"),
        ({"context_window_tokens": 8000, "token_remaining_pct": 100}, ValueError, "token_remaining_pct"),
        ({"context_window_tokens": 8000, "token_remaining_pct": -1}, ValueError, "token_remaining_pct"),
        (
            {"context_window_tokens": 8000, "token_remaining_pct": float("nan")},
            ValueError,
            "token_remaining_pct",
        ),
        ({"context_window_tokens": 8000, "token_remaining_pct": "9"}, TypeError, "token_remaining_pct"),
        ({"context_window_tokens": 8000, "token_remaining_pct": True}, TypeError, "token_remaining_pct"),
        ({"context_window_tokens": 1, "token_remaining_pct": 99}, ValueError, "context_window_tokens"),
        (
            {"token_budget": 5, "context_window_tokens": 8000, "token_remaining_pct": 20},
            ValueError,
            "token_budget",
        ),
    ],
)
def test_budgets_that_make_no_sense(
    kind: Any, knobs: dict[str, Any], error: type[Exception], field: str
) -> None:
    with pytest.raises(error, match=field):
        kind(**knobs)


@pytest.mark.parametrize(
    ("knobs", "error", "field"),
    [
        ({}, ValueError, "trigger_turns"),
        ({"trigger_turns": 0}, ValueError, "trigger_turns"),
        ({"trigger_turns": 4, "keep": 0}, ValueError, "keep"),
        ({"trigger_turns": 4, "keep": 5}, ValueError, "keep"),
        ({"trigger_turns": 4, "keep": False}, TypeError, "keep"),
        ({"trigger_turns": 4, "clear_tool_inputs": 1}, TypeError, "clear_tool_inputs"),
        ({"trigger_turns": 4, "exclude_tools": "search"}, TypeError, "exclude_tools"),
        ({"trigger_turns": 4, "include_tools": [7]}, TypeError, "include_tools"),
        ({"trigger_turns": 4, "include_tools": [""]}, TypeError, "include_tools"),
        (
            {"trigger_turns": 4, "include_tools": ["a", "b"], "exclude_tools": ["b"]},
            ValueError,
            "both name b",
        ),
    ],
)
def test_compactions_that_make_no_sense(knobs: dict[str, Any], error: type[Exception], field: str) -> None:
    with pytest.raises(error, match=field):
        Compact(**knobs)


@pytest.mark.parametrize(
    ("knobs", "error"),
    [
        ({"summary_max_tokens": 0}, ValueError),
        ({"summary_max_tokens": None}, TypeError),
        ({"summary_prefix": " "}, ValueError),
        ({"summary_prefix": None}, TypeError),
    ],
)
def test_summaries_that_make_no_sense(knobs: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(knobs))):
        Summarize(max_user_turns=4, **knobs)


def test_a_budget_by_what_is_left_of_the_window() -> None:
    assert Trim(context_window_tokens=8000, token_remaining_pct=25).budget == 6000
    assert Trim(context_window_tokens=8000, token_remaining_pct=0).budget == 8000
    assert Trim(token_budget=500).budget == 500
    assert Trim(max_user_turns=5).budget is None


def test_strategies_are_values() -> None:
    assert Compact(8, include_tools=["a"]) == Compact(trigger_turns=8, include_tools=("a",))
    assert len({Trim(5), Trim(5, 0), Trim(5, 2)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Trim(5).max_user_turns = 6  # type: ignore[misc]
