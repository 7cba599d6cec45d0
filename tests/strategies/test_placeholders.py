"""Placeholders for outputs and arguments: named, in the right shape, and only where configured."""

import json
from typing import Any

import pytest
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

from histories import CALL_KINDS, call_and_output
from recollect.strategies.placeholders import call_ids_of, compact_items
from recollect.strategies.values import Compact

Item = dict[str, Any]

WORDS = "a long story " * 20
OUTPUTS = Compact(1, 1)
BOTH = Compact(1, 1, clear_tool_inputs=True)
LEFT_ALONE = {"computer_call", "tool_search_call", "mcp_approval_request"}
INPUT_LEFT_ALONE = {*LEFT_ALONE, "program"}


def compact(items: list[Item], strategy: Compact) -> list[Item]:
    return compact_items(items, len(items), strategy)


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_an_output_says_what_it_was_of(kind: str) -> None:
    call, output = call_and_output(kind, "call_7", WORDS)
    seen_call, seen = compact([call, output], OUTPUTS)
    assert seen_call == call
    if kind in LEFT_ALONE:
        assert seen == output
        return
    text = json.dumps(seen)
    assert WORDS not in text
    assert "call_7" in text
    assert str(call.get("name", kind.removesuffix("_call"))) in text
    assert "older turn" in text


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_arguments_say_what_they_were_of(kind: str) -> None:
    call, output = call_and_output(kind, "call_7", WORDS)
    seen, _ = compact([call, output], BOTH)
    if kind in INPUT_LEFT_ALONE:
        assert seen == call
        return
    text = json.dumps(seen)
    assert WORDS not in text
    assert "call_7" in text


def fits(item: Item) -> bool:
    try:
        TypeAdapter(ResponseInputItemParam).validate_python(item)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("strategy", [OUTPUTS, BOTH])
@pytest.mark.parametrize("kind", CALL_KINDS)
def test_the_shape_is_still_what_the_api_takes(kind: str, strategy: Compact) -> None:
    for item, seen in zip(
        pair := call_and_output(kind, "c", WORDS), compact(list(pair), strategy), strict=True
    ):
        assert fits(seen) or not fits(item)
        assert item.keys() == seen.keys()


def test_arguments_stay_a_json_object() -> None:
    call, _ = call_and_output("function_call", "c", WORDS)
    (seen,) = compact([call], BOTH)
    assert isinstance(json.loads(seen["arguments"]), dict)


@pytest.mark.parametrize("strategy", [OUTPUTS, BOTH])
@pytest.mark.parametrize("kind", CALL_KINDS)
def test_compacting_again_changes_nothing(kind: str, strategy: Compact) -> None:
    once = compact(list(call_and_output(kind, "c", WORDS)), strategy)
    assert compact(once, strategy) == once


def named(name: str, call_id: str) -> list[Item]:
    return [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": '{"q": 1}'},
        {"type": "function_call_output", "call_id": call_id, "output": WORDS},
    ]


@pytest.mark.parametrize(
    ("lists", "compacted"),
    [
        ({}, ["search", "read", "shell"]),
        ({"exclude_tools": ["search"]}, ["read", "shell"]),
        ({"include_tools": ["search"]}, ["search"]),
        ({"include_tools": ["search", "shell"]}, ["search", "shell"]),
        ({"include_tools": ["search"], "exclude_tools": ["read"]}, ["search"]),
        ({"exclude_tools": ["search", "read", "shell"]}, []),
    ],
)
def test_lists_of_tools_hold_for_calls_and_outputs_alike(lists: dict[str, Any], compacted: list[str]) -> None:
    tools = {
        "search": named("search", "a"),
        "read": named("read", "b"),
        "shell": list(call_and_output("shell_call", "c", WORDS)),
    }
    items = [item for pair in tools.values() for item in pair]
    seen = compact(items, Compact(1, 1, clear_tool_inputs=True, **lists))
    for number, name in enumerate(tools):
        changed = [seen[index] != items[index] for index in (2 * number, 2 * number + 1)]
        assert changed == [name in compacted] * 2


def test_an_id_that_is_used_again_names_the_tool_of_its_turn() -> None:
    seen = compact([*named("search", "c"), *named("read", "c")], Compact(1, 1, exclude_tools=["search"]))
    assert seen[1]["output"] == WORDS
    assert "read" in seen[3]["output"]


def test_only_what_stands_before_the_end_is_compacted() -> None:
    items = [*named("search", "a"), *named("search", "b")]
    assert compact_items(items, 2, OUTPUTS)[2:] == items[2:]
    assert compact_items(items, 2, OUTPUTS)[1] != items[1]


def test_tools_of_a_server_carry_their_output_themselves() -> None:
    item = {
        "type": "mcp_call",
        "id": "m",
        "name": "ask",
        "server_label": "s",
        "arguments": "{}",
        "output": WORDS,
    }
    (seen,) = compact([item], OUTPUTS)
    assert "ask" in seen["output"]
    assert seen["arguments"] == "{}"
    (seen,) = compact([item], BOTH)
    assert "compacted" in json.loads(seen["arguments"])


@pytest.mark.parametrize(
    "item",
    [
        {"type": "shell_call_output", "call_id": "c", "output": "no list"},
        {"type": "shell_call", "call_id": "c", "action": None},
        {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file", "path": "a"}},
        {"type": "function_call_output", "call_id": ["c"], "output": ""},
        {"type": ["function_call"], "call_id": "c"},
        {"type": {}, "output": "x"},
    ],
)
def test_what_has_another_shape_is_left_alone(item: Item) -> None:
    assert compact([item], BOTH) == [item]


def test_the_ids_of_calls_each_once() -> None:
    items = [*named("search", "a"), {"role": "user", "content": "hi"}, *named("read", "b"), {"type": []}]
    assert call_ids_of(items) == ["a", "b"]
