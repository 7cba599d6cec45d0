from typing import get_args, get_type_hints

import pytest
from hypothesis import given

from histories import (
    CALL_KINDS,
    PICTURE,
    Item,
    assistant_messages,
    call_and_output,
    compactions,
    hosted_calls,
    odd_items,
    quick,
    system_messages,
    user_messages,
)
from recollect.items import (
    is_call,
    is_from_model,
    is_output,
    is_reasoning,
    is_user_message,
    role_of,
    text_of,
    type_of,
)
from recollect.items.shapes import CALL_TYPE_OF_OUTPUT, OUTPUT_TYPE_OF_CALL


def needs_care(item: Item) -> bool:
    """Whether the item is nothing without another."""
    return is_call(item) or is_output(item) or is_reasoning(item)


def says(part: object) -> Item:
    return {"type": "message", "role": "assistant", "content": [part]}


@pytest.mark.parametrize(
    ("item", "kind", "role"),
    [
        ({"role": "user", "content": "hi"}, "message", "user"),
        ({"type": "message", "role": "developer", "content": "hi"}, "message", "developer"),
        ({"type": None, "role": "user", "content": "hi"}, "message", "user"),
        ({"type": "message", "role": 7}, "message", None),
        ({"type": "message"}, "message", None),
        ({"type": "additional_tools", "role": "developer"}, "additional_tools", None),
        ({"type": "from_the_future"}, "from_the_future", None),
        ({"type": 7}, "", None),
        ({}, "", None),
    ],
)
def test_type_and_role(item: Item, kind: str, role: str | None) -> None:
    assert (type_of(item), role_of(item)) == (kind, role)


@quick
@given(user_messages())
def test_a_user_message_is_one_and_nothing_else(item: Item) -> None:
    assert is_user_message(item)
    assert not is_from_model(item)
    assert not needs_care(item)


@quick
@given(system_messages())
def test_a_system_message_is_neither_the_users_nor_the_models(item: Item) -> None:
    assert not is_user_message(item)
    assert not is_from_model(item)
    assert not needs_care(item)


@quick
@given(assistant_messages() | hosted_calls() | compactions())
def test_what_the_model_made_and_nobody_must_answer(item: Item) -> None:
    assert is_from_model(item)
    assert not is_user_message(item)
    assert not needs_care(item)


@pytest.mark.parametrize("kind", CALL_KINDS)
def test_calls_come_from_the_model_and_outputs_do_not(kind: str) -> None:
    call, output = call_and_output(kind, "call_1")
    assert is_call(call)
    assert is_from_model(call)
    assert not is_output(call)
    assert is_output(output)
    assert not is_call(output)
    assert not is_from_model(output)


@pytest.mark.parametrize("item", [{"type": "item_reference", "id": "rs_1"}, {"id": "rs_1"}, {}])
def test_a_reference_is_not_known_to_come_from_the_model(item: Item) -> None:
    assert not is_from_model(item)


def test_each_kind_of_output_answers_one_kind_of_call() -> None:
    assert set(CALL_KINDS) == set(OUTPUT_TYPE_OF_CALL)
    assert {CALL_TYPE_OF_OUTPUT[OUTPUT_TYPE_OF_CALL[kind]] for kind in CALL_KINDS} == set(CALL_KINDS)


def test_every_kind_of_output_that_the_openai_package_knows_is_known_here() -> None:
    params = pytest.importorskip("openai.types.responses.response_input_item_param")
    kinds = {
        kind
        for param in get_args(params.ResponseInputItemParam)
        for kind in get_args(get_type_hints(param)["type"])
        if isinstance(kind, str)
    }
    outputs = {kind for kind in kinds if kind.endswith(("_output", "_response"))}
    assert "function_call_output" in outputs
    assert outputs <= set(CALL_TYPE_OF_OUTPUT)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ({"role": "user", "content": "hi"}, "hi"),
        ({"role": "user", "content": ["a", "b"]}, "a\nb"),
        ({"role": "user", "content": {"type": "input_text", "text": "alone"}}, "alone"),
        (says({"type": "input_text", "text": "in"}), "in"),
        (says({"type": "output_text", "text": "out", "annotations": []}), "out"),
        (says({"type": "text", "text": "plain"}), "plain"),
        (says({"type": "refusal", "refusal": "I cannot."}), "I cannot."),
        (says({"type": "audio", "transcript": "spoken", "data": "UklGRg=="}), "spoken"),
        (says({"type": "input_image", "image_url": PICTURE}), ""),
        (says({"type": "input_audio", "input_audio": {"data": "UklGRg=="}}), ""),
        (says({"type": "from_the_future", "text": 7}), ""),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'}, '{"a": 1}'),
        ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "SELECT 1"}, "SELECT 1"),
        ({"type": "function_call_output", "call_id": "c", "output": "sunny"}, "sunny"),
        (
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
            "x",
        ),
        ({"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "42"}, "{}\n42"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "first"}]}, "first"),
        (
            {
                "type": "reasoning",
                "summary": [{"text": "s"}],
                "content": [{"type": "reasoning_text", "text": "c"}],
                "encrypted_content": "gAAAAA",
            },
            "s\nc",
        ),
        ({"type": "compaction", "encrypted_content": "gAAAAA"}, ""),
        ({"type": "web_search_call", "id": "ws_1"}, ""),
        ({"role": "user", "content": None}, ""),
        ({}, ""),
    ],
)
def test_the_text_of_every_shape(item: Item, text: str) -> None:
    assert text_of(item) == text


def test_the_parts_of_a_message_are_lines() -> None:
    parts = [
        {"type": "input_text", "text": "看"},
        {"type": "input_image", "image_url": PICTURE},
        {"type": "input_text", "text": "👀"},
    ]
    assert text_of({"role": "user", "content": parts}) == "看\n👀"


@quick
@given(odd_items())
def test_nothing_is_too_odd_to_be_described(item: Item) -> None:
    assert isinstance(type_of(item), str)
    assert isinstance(text_of(item), str)
    assert isinstance(role_of(item), str | None)
    assert is_call(item) + is_output(item) + is_reasoning(item) + is_user_message(item) <= 1
