from typing import Any

import pytest
from hypothesis import given

from histories import PLACEHOLDER_ID, Item, odd_items, quick
from recollect.items import decode_item, encode_items, fingerprint

HI: Item = {"role": "user", "content": "hi"}


def with_keys_reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_keys_reversed(value[key]) for key in reversed(value)}
    return [with_keys_reversed(element) for element in value] if isinstance(value, list) else value


@quick
@given(odd_items())
def test_the_order_of_keys_does_not_matter(item: Item) -> None:
    assert fingerprint(with_keys_reversed(item)) == fingerprint(item)


@quick
@given(odd_items())
def test_it_survives_storage(item: Item) -> None:
    [stored] = encode_items([item])
    assert fingerprint(decode_item(stored)) == fingerprint(item)


@quick
@given(odd_items())
def test_an_item_with_an_id_is_the_same_item_whatever_else_changes(item: Item) -> None:
    one = {**item, "type": "message", "id": "msg_1"}
    assert fingerprint(one) == fingerprint({"type": "message", "id": "msg_1", "content": "rewritten"})
    assert fingerprint(one) != fingerprint({**one, "id": "msg_2"})


def test_the_values_that_are_stored_stay_what_they_are() -> None:
    assert fingerprint({"type": "message", "id": "msg_1", "role": "assistant"}) == "message:msg_1"
    assert fingerprint({**HI, "type": "message"}) == fingerprint(HI), "a message may come without its type"
    assert fingerprint(HI) == "message#3475fe74a4958bc099cef45f5831b2d90b33f483720b30830017d2e16648d91f"


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "content": "ho"},
        {"role": "user", "content": ["hi"]},
        {"role": "system", "content": "hi"},
        {"role": "user", "content": "hi", "extra": None},
        {"type": "from_the_future", "role": "user", "content": "hi"},
    ],
)
def test_without_an_id_the_content_decides(other: Item) -> None:
    assert fingerprint(HI) == fingerprint(dict(HI))
    assert fingerprint(HI) != fingerprint(other)


@pytest.mark.parametrize("given_id", [PLACEHOLDER_ID, "", None, 7, ["msg_1"]])
def test_what_is_no_id_names_nothing(given_id: Any) -> None:
    one = {"type": "message", "role": "assistant", "content": "one", "id": given_id}
    assert fingerprint(one) != fingerprint({**one, "content": "two"})
    assert fingerprint(one) == fingerprint(dict(one))


def test_a_call_without_an_id_of_its_own_goes_by_its_call_id() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    assert fingerprint(call) == fingerprint({**call, "arguments": '{"a": 1}', "id": PLACEHOLDER_ID})
    assert fingerprint(call) != fingerprint({**call, "call_id": "call_2"})


def test_a_call_and_its_output_are_two_items() -> None:
    call = {"type": "function_call", "call_id": "call_1"}
    assert fingerprint(call) != fingerprint({"type": "function_call_output", "call_id": "call_1"})


def test_the_id_comes_before_the_call_id() -> None:
    first = {"type": "function_call", "id": "fc_1", "call_id": "call_1"}
    again = {"type": "function_call", "id": "fc_2", "call_id": "call_1"}
    assert fingerprint(first) != fingerprint(again)
