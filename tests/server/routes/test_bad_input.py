"""Requests that are not as they should be are told so by name, and never break anything."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from .running import Running
from .test_conversations import LISBON, save

GOOD: dict[str, Any] = {"agent_id": "assistant", "user_id": "ada", "messages": LISBON}
HELLO = {"role": "user", "content": "Hello."}


@pytest.fixture(scope="module")
def client(service_on_sqlite: Running) -> Iterator[httpx2.Client]:
    with service_on_sqlite.client() as client:
        yield client


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ("text", "body"),
        ({}, "body.agent_id"),
        ({**GOOD, "extra": 1}, "body.extra"),
        ({**GOOD, "agent_id": ""}, "body.agent_id"),
        ({**GOOD, "agent_id": None}, "body.agent_id"),
        ({**GOOD, "agent_id": 1}, "body.agent_id"),
        ({**GOOD, "agent_id": "a\0b"}, "body.agent_id"),
        ({**GOOD, "user_id": "x" * 5000}, "body.user_id"),
        ({**GOOD, "session_id": "x" * 256}, "body.session_id"),
        ({**GOOD, "messages": []}, "body.messages"),
        ({**GOOD, "messages": "hello"}, "body.messages"),
        ({**GOOD, "messages": [HELLO] * 51}, "body.messages"),
        ({**GOOD, "messages": ["hello"]}, "body.messages.0"),
        ({**GOOD, "messages": [HELLO, {"role": "user"}]}, "body.messages.1.content"),
        ({**GOOD, "messages": [{**HELLO, "role": "function"}]}, "body.messages.0.role"),
        ({**GOOD, "messages": [{**HELLO, "content": ""}]}, "body.messages.0.content"),
        ({**GOOD, "messages": [{**HELLO, "content": " \n\t"}]}, "body.messages.0.content"),
        ({**GOOD, "messages": [{**HELLO, "content": ["Hello."]}]}, "body.messages.0.content"),
        ({**GOOD, "messages": [{**HELLO, "content": "\ud800"}]}, "body.messages.0.content"),
        ({**GOOD, "messages": [{**HELLO, "mood": "good"}]}, "body.messages.0.mood"),
        ({**GOOD, "messages": [{**HELLO, "created_at": "soon"}]}, "body.messages.0.created_at"),
        ({**GOOD, "messages": [{**HELLO, "created_at": 0}]}, "body.messages.0.created_at"),
    ],
)
def test_a_wrong_field_is_named(client: httpx2.Client, body: object, field: str) -> None:
    answer = client.post(
        "/v1/conversations", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), answer.text
    assert field in [error["field"] for error in answer.json()["errors"]]


def test_two_messages_with_one_id_are_refused(client: httpx2.Client) -> None:
    twice = {**GOOD, "messages": [{**HELLO, "message_id": "m"}] * 2}
    answer = client.post("/v1/conversations", json=twice)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"null", b'{"agent_id": NaN}', b"[" * 100_000])
def test_what_is_no_json_is_refused(client: httpx2.Client, body: bytes) -> None:
    answer = client.post("/v1/conversations", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.json()["code"] in ("invalid_json", "validation_failed")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/conversations?limit=0", "query.limit"),
        ("/v1/conversations?limit=21", "query.limit"),
        ("/v1/conversations?limit=many", "query.limit"),
        ("/v1/conversations?limit=99999999999999999999999", "query.limit"),
        ("/v1/conversations?user=ada", "query.user"),
        ("/v1/conversations?cursor=x", "query.cursor"),
        ("/v1/conversations?cursor=WyJydW5zIiwieCJd", "query.cursor"),
        ("/v1/memories?cursor=%F0%9F%8E%89", "query.cursor"),
        ("/v1/memories/of?agent_id=a", "query.user_id"),
        ("/v1/memories/of?agent_id=a&user_id=b&as_of=then", "query.as_of"),
        ("/v1/runs?status=lost", "query.status"),
        ("/v1/runs?cursor=!!!", "query.cursor"),
        ("/v1/audit?cursor=x", "query.cursor"),
        ("/v1/users/export?user_id=ada&format=xml", "query.format"),
        ("/v1/conversations/%00", "path.conversation_id"),
        (f"/v1/runs/{'x' * 300}", "path.run_id"),
    ],
)
def test_a_wrong_parameter_is_named(client: httpx2.Client, path: str, field: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), answer.text
    assert field in [error["field"] for error in answer.json()["errors"]]


def forged(kind: str, *place: str | int) -> str:
    """A cursor as nobody was given it, by somebody who has seen how they are made."""
    return base64.urlsafe_b64encode(json.dumps([kind, *place]).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("path", "cursor"),
    [
        ("/v1/conversations", forged("conversations", "")),
        ("/v1/conversations", forged("conversations", "nonsense")),
        ("/v1/conversations", forged("conversations", "a\0b")),
        ("/v1/conversations", forged("conversations", "\ud800")),
        ("/v1/memories", forged("memories", "a\0b")),
        ("/v1/runs", forged("runs", "a\0b")),
        ("/v1/audit", forged("audit", "a\0b")),
        ("/v1/audit", forged("audit", "")),
    ],
)
def test_a_forged_cursor_breaks_nothing(client: httpx2.Client, path: str, cursor: str) -> None:
    assert client.get(path, params={"cursor": cursor}).status_code in (200, 422)


@pytest.mark.parametrize("place", [-1, 2**63, -(2**70), 10**100])
@pytest.mark.parametrize("part", ["messages", "events"])
def test_a_forged_place_breaks_nothing(client: httpx2.Client, part: str, place: int) -> None:
    path = f"/v1/conversations/{save(client, 'ada')['conversation_id']}/{part}"
    assert client.get(path, params={"cursor": forged(part, place)}).status_code in (200, 422)


@pytest.mark.parametrize(
    "body",
    [
        {"query": "x", "agent_id": "a", "user_id": "u", "limit": "1"},
        {"query": "x", "agent_id": "a", "user_id": "u", "limit": 21},
        {"query": "x", "agent_id": "a", "user_id": "u", "since": "later"},
        {"query": "x", "agent_id": "a", "user_id": "u", "since": "2025", "until": "2024"},
        {"query": "x", "agent_id": "a", "user_id": "u", "content_type": "gossip"},
        {"query": None, "agent_id": "a", "user_id": "u"},
        {"query": "x", "agent_id": "a"},
    ],
)
def test_a_wrong_question_is_refused(client: httpx2.Client, body: dict[str, object]) -> None:
    answer = client.post("/v1/memories/search", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")


@pytest.mark.parametrize("query", ["", "\0", "🎉" * 1000, "'\"; DROP TABLE memories; --", "%", "\u200b"])
def test_any_question_can_be_asked(client: httpx2.Client, query: str) -> None:
    save(client, "ada")
    owner = {"agent_id": "assistant", "user_id": "ada"}
    for path in ("/v1/memories/search", "/v1/conversations/search", "/v1/memories/recall"):
        assert client.post(path, json={"query": query, **owner}).status_code == 200


# --- what is told ---


@pytest.mark.parametrize(
    "strategy",
    [
        {"mode": "my secret 42"},
        {"mode": ["my secret 42"]},
        {"my secret 42": 1},
        {"mode": "compact", "compact_keep": "my secret 42"},
        {
            "mode": "compact",
            "compact_trigger_turns": 3,
            "compact_exclude_tools": ["my secret 42"],
            "compact_include_tools": ["my secret 42"],
        },
    ],
)
def test_a_strategy_that_is_wrong_is_not_repeated(client: httpx2.Client, strategy: dict[str, Any]) -> None:
    body = {"user_id": "u", "message": "Hello.", "memory_strategy": strategy}
    answer = client.post("/v1/chat", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
    assert answer.json()["errors"][0]["field"].startswith("body.memory_strategy")
    assert "secret" not in answer.text


def test_a_mode_that_there_is_not_is_told_with_those_that_there_are(client: httpx2.Client) -> None:
    body = {"user_id": "u", "message": "Hello.", "memory_strategy": {"mode": "forget"}}
    (error,) = client.post("/v1/chat", json=body).json()["errors"]
    assert error == {
        "field": "body.memory_strategy",
        "message": "'mode' must be one of 'none', 'trim', 'summarize', 'compact'",
    }


def test_contents_are_not_repeated_in_a_problem(client: httpx2.Client) -> None:
    secret = "my secret diary"
    for body in (
        {**GOOD, "messages": [{"role": secret, "content": secret}]},
        {**GOOD, "messages": [{**HELLO, "created_at": secret}]},
        {**GOOD, "messages": [{**HELLO, "content": [secret]}]},
    ):
        answer = client.post("/v1/conversations", json=body)
        assert answer.status_code == 422
        assert secret not in answer.text
