"""Bodies that are wrong a million times are refused as fast as those that are wrong once."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from recollect.server.schemas.base import MAX_ITEMS, RequestBody
from recollect.server.schemas.chat import ChatRequest
from recollect.server.schemas.conversations import NewConversation
from recollect.server.schemas.memories import NewMemory

from .running import Running
from .test_bad_input import GOOD, HELLO

LIMIT = 4 * 1024 * 1024


def errors_in(model: type[BaseModel], body: dict[str, Any]) -> list[tuple[str | int, ...]]:
    """Where pydantic finds something wrong: each of these takes memory and time."""
    with pytest.raises(ValidationError) as raised:
        model.model_validate(body)
    return [error["loc"] for error in raised.value.errors(include_url=False)]


def test_of_a_list_with_a_million_wrong_items_the_first_is_told() -> None:
    zeros = [0] * (LIMIT // 2)
    assert errors_in(NewConversation, {**GOOD, "messages": zeros}) == [("messages", 0)]
    wrong = {"agent_id": "a", "user_id": "u", "profile_content": zeros, "mind_content": zeros}
    assert errors_in(NewMemory, wrong) == [("profile_content", 0), ("mind_content", 0)]


def test_of_too_many_items_no_more_than_the_bound_is_looked_at() -> None:
    many = [HELLO] * (MAX_ITEMS + 1)
    assert errors_in(NewConversation, {**GOOD, "messages": many}) == [("messages",)]


def test_of_a_million_unknown_fields_the_first_is_told() -> None:
    unknown = {f"f{number}": 0 for number in range(LIMIT // 12)}
    assert errors_in(NewConversation, {**GOOD, **unknown}) == [("f0",)]
    assert errors_in(NewConversation, {**GOOD, "messages": [HELLO, HELLO | unknown]}) == [
        ("messages", 1, "f0")
    ]
    strategy = {"mode": "none", **unknown}
    assert errors_in(ChatRequest, {"message": "x", "memory_strategy": strategy}) == [
        ("memory_strategy", "none", "f0")
    ]


def models_below(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        yield model
        yield from models_below(model)


def lists_in(schema: Any) -> Iterator[dict[str, Any]]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    if isinstance(schema, dict) and schema.get("type") == "list":
        yield schema
    for each in inner:
        yield from lists_in(each)


def test_every_list_of_a_request_has_a_bound_and_ends_at_the_first_fault() -> None:
    found = [
        (model.__name__, each["max_length"], each["fail_fast"])
        for model in models_below(RequestBody)
        for each in lists_in(model.__pydantic_core_schema__)
    ]
    assert {name for name, _, _ in found} >= {"NewConversation", "MoreMessages", "NewMemory", "ChatRequest"}
    assert all(most <= MAX_ITEMS and is_fast for _, most, is_fast in found)


def test_a_body_that_is_wrong_all_over_is_told_in_a_few_words(service_on_sqlite: Running) -> None:
    head = b'{"agent_id":"a","user_id":"u","messages":['
    body = head + b"0," * ((LIMIT - len(head) - 3) // 2) + b"0]}"
    with service_on_sqlite.client() as client:
        kind = {"Content-Type": "application/json"}
        answer = client.post("/v1/conversations", content=body, headers=kind)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["body.messages.0"]
