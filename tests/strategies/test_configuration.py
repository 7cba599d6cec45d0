"""Strategies from dictionaries and JSON, and their precedence."""

import json
from typing import Any

import pytest

from recollect.strategies.configuration import (
    resolve_memory_injection,
    resolve_memory_strategy,
    strategy_from_config,
    strategy_to_config,
)
from recollect.strategies.values import Compact, Strategy, Summarize, Trim

CONFIGURED: list[tuple[dict[str, Any], Strategy | None]] = [
    ({"mode": "none"}, None),
    ({"mode": "trim", "max_user_turns": 20}, Trim(20)),
    ({"mode": "trim", "max_user_turns": 20, "keep_last_user_turns": 8}, Trim(20, 8)),
    ({"mode": "trim", "token_budget": 4000}, Trim(token_budget=4000)),
    (
        {"mode": "trim", "context_window_tokens": 128_000, "token_remaining_pct": 20},
        Trim(context_window_tokens=128_000, token_remaining_pct=20),
    ),
    (
        {"mode": "summarize", "max_user_turns": 9, "summary_max_tokens": 200, "summary_prefix": "So far:"},
        Summarize(9, summary_max_tokens=200, summary_prefix="So far:"),
    ),
    ({"mode": "compact", "compact_trigger_turns": 8}, Compact(8)),
    (
        {
            "mode": "compact",
            "compact_trigger_turns": 8,
            "compact_keep": 3,
            "compact_clear_tool_inputs": True,
            "compact_exclude_tools": ["search"],
            "compact_include_tools": ["read"],
            "token_budget": 900,
        },
        Compact(
            8,
            3,
            clear_tool_inputs=True,
            exclude_tools=("search",),
            include_tools=("read",),
            token_budget=900,
        ),
    ),
]


@pytest.mark.parametrize(("config", "strategy"), CONFIGURED)
def test_a_configuration_and_its_strategy(config: dict[str, Any], strategy: Strategy | None) -> None:
    assert strategy_from_config(config) == strategy
    assert strategy_from_config(json.dumps(config)) == strategy
    assert strategy_to_config(strategy) == config
    assert json.loads(json.dumps(strategy_to_config(strategy))) == config


def test_what_is_null_is_not_given() -> None:
    assert strategy_from_config({"mode": "trim", "max_user_turns": 4, "compact_keep": None}) == Trim(4)
    assert strategy_from_config(None) is None
    assert strategy_from_config(Trim(4)) == Trim(4)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "mode"),
        ("null", "mode"),
        ({"max_user_turns": 4}, "mode"),
        ({"mode": "forget"}, "mode must be one of trim, summarize, compact and none"),
        ({"mode": ["trim"]}, "mode"),
        ({"mode": "x" * 10_000}, "mode"),
        ({"mode": "trim", "max_user_turn": 4}, "max_user_turn"),
        ({"mode": "trim", "max_user_turns": 4, "compact_keep": 2}, "compact_keep"),
        ({"mode": "none", "max_user_turns": 4}, "max_user_turns"),
        ({"mode": "compact", "trigger_turns": 8}, "trigger_turns"),
        ({"mode": "trim", "max_user_turns": -4}, "max_user_turns"),
        ({"mode": "trim", "max_user_turns": "4"}, "max_user_turns"),
        ({"mode": "trim", "max_user_turns": 4, "keep_last_user_turns": 9}, "keep_last_user_turns"),
        ({"mode": "trim", "token_remaining_pct": 20}, "token_remaining_pct"),
        ({"mode": "summarize", "max_user_turns": 4, "summary_max_tokens": 0}, "summary_max_tokens"),
        ({"mode": "compact", "compact_trigger_turns": 0}, "compact_trigger_turns"),
        ({"mode": "compact", "compact_trigger_turns": 4, "compact_keep": 5}, "compact_keep"),
        ({"mode": "compact"}, "compact_trigger_turns"),
        (
            {"mode": "compact", "compact_trigger_turns": 4, "compact_exclude_tools": "a"},
            "compact_exclude_tools",
        ),
        (
            {"mode": "compact", "compact_trigger_turns": 4, "compact_clear_tool_inputs": "yes"},
            "clear_tool_inputs",
        ),
        ("{", "JSON"),
        ("[" * 100_000, "JSON"),
        ("[1]", "object"),
        (b"{}", "object"),
        (7, "object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_makes_no_sense_is_named(config: Any, field: str) -> None:
    with pytest.raises((ValueError, TypeError), match=field) as caught:
        strategy_from_config(config)
    assert len(str(caught.value)) < 300


def test_the_first_that_names_a_mode_wins_whole() -> None:
    request = {"max_user_turns": 3}
    conversation = {"mode": "trim", "max_user_turns": 9}
    agent = {"mode": "summarize", "max_user_turns": 20, "summary_max_tokens": 500}
    assert resolve_memory_strategy(request, conversation, agent) == Trim(9)
    assert resolve_memory_strategy(None, None, agent) == Summarize(20, summary_max_tokens=500)
    assert resolve_memory_strategy({"mode": "none"}, conversation, agent) is None
    assert resolve_memory_strategy({"mode": None}, json.dumps(conversation)) == Trim(9)
    assert resolve_memory_strategy("null", Compact(4), agent) == Compact(4)
    assert resolve_memory_strategy() is None
    with pytest.raises(ValueError, match="max_user_turns"):
        resolve_memory_strategy({"mode": "trim", "max_user_turns": 0}, conversation)


def test_injection_has_an_order_of_its_own() -> None:
    assert resolve_memory_injection() is False
    assert resolve_memory_injection(None, True, False) is True
    assert resolve_memory_injection(False, True, True) is False
    assert resolve_memory_injection(None, None, True) is True
    with pytest.raises(TypeError, match="memory_injection of the conversation"):
        resolve_memory_injection(None, "yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["NONE", "TRIM", "Summarize", "cOMPACT"])
def test_a_mode_is_taken_in_any_case(mode: str) -> None:
    """As the seed data of the provider has them."""
    turns = {"compact_trigger_turns": 8} if mode.lower() == "compact" else {"max_user_turns": 8}
    config = {"mode": mode, **({} if mode == "NONE" else turns)}
    assert strategy_from_config(config) == strategy_from_config({**config, "mode": mode.lower()})
    assert resolve_memory_strategy(json.dumps(config)) == strategy_from_config(config)
