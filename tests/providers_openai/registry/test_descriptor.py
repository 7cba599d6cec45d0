"""Descriptors say what is wrong with them, and where."""

from typing import Any

import pytest

from recollect import RecollectError
from recollect.providers.openai.registry import AgentConfigError, AgentDescriptor
from recollect.providers.openai.registry.descriptor import read_descriptor

REFUSED: list[tuple[str, Any]] = [
    ("name", ""),
    ("name", "two words"),
    ("name", "n" * 65),
    ("name", 7),
    ("instructions", " "),
    ("instructions", None),
    ("model", ""),
    ("model", 4),
    ("description", None),
    ("tools", "module:function"),
    ("tools", [1]),
    ("tools", ["no colon"]),
    ("tools", ["a:b", "a:b"]),
    ("tools", ["a:b; import os"]),
    ("handoffs", "billing"),
    ("handoffs", ["support"]),
    ("memory_strategy_defaults", "trim"),
    ("memory_strategy_defaults", {"mode": "forget"}),
    ("memory_strategy_defaults", {"mode": "trim", "max_user_turns": -1}),
    ("memory_strategy_defaults", {"max_user_turns": 3}),
    ("memory_injection_default", "yes"),
    ("model_settings", [1]),
    ("max_turns", 0),
    ("max_turns", True),
    ("max_turns", 2.5),
]


@pytest.mark.parametrize(("field", "value"), REFUSED)
def test_a_field_that_makes_no_sense_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(AgentConfigError) as caught:
        AgentDescriptor(**{"name": "support", "instructions": "Help.", field: value})
    assert caught.value.field == field
    assert field in str(caught.value)
    assert isinstance(caught.value, RecollectError)


def test_the_error_names_the_agent() -> None:
    with pytest.raises(AgentConfigError, match="agent 'support': max_turns must be"):
        AgentDescriptor("support", "Help.", max_turns=-1)


def test_a_descriptor_is_read_from_a_table() -> None:
    told = {
        "instructions": "Help.",
        "tools": ["shop:look_up"],
        "handoffs": ["billing"],
        "memory_strategy_defaults": {"mode": "trim", "max_user_turns": 3},
        "memory_injection_default": True,
        "max_turns": 5,
    }
    descriptor = read_descriptor("support", told)
    assert descriptor.tools == ("shop:look_up",)
    assert descriptor.handoffs == ("billing",)
    assert descriptor.memory_injection_default is True
    assert descriptor.max_turns == 5


def test_a_table_with_an_unknown_field_is_refused() -> None:
    with pytest.raises(AgentConfigError, match="instruction is unknown; the fields are description"):
        read_descriptor("support", {"instruction": "Help."})


def test_a_table_without_instructions_is_refused() -> None:
    with pytest.raises(AgentConfigError, match="instructions is missing"):
        read_descriptor("support", {"model": "m"})


def test_a_name_that_is_no_table_is_refused() -> None:
    with pytest.raises(AgentConfigError, match="must be a table, not str"):
        read_descriptor("support", "Help.")
