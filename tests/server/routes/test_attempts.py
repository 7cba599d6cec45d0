"""Requests whose first attempt died after it had made something, and before that was noted."""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import httpx2
import pytest

from ..operations.kit import execute
from .running import Running
from .test_conversations import save

_keys = (f"attempt-{number}" for number in itertools.count())
SendTwice: TypeAlias = Callable[[str, dict[str, Any]], list[httpx2.Response]]


@pytest.fixture
def send_twice(client: httpx2.Client, service: Running) -> SendTwice:
    """Send a request, lose what was noted of it, and send it again."""

    def send(path: str, body: dict[str, Any]) -> list[httpx2.Response]:
        headers = {"Idempotency-Key": next(_keys)}
        first = client.post(path, json=body, headers=headers)
        service.do(execute(service.service, "UPDATE idempotency_keys SET made = NULL, leased_until = 0"))
        return [first, client.post(path, json=body, headers=headers)]

    return send


def test_an_entry_is_written_once(client: httpx2.Client, user: str, send_twice: SendTwice) -> None:
    body = {"agent_id": "assistant", "user_id": user, "profile_content": ["The user is a cellist."]}
    path = f"/v1/memories/{client.post('/v1/memories', json=body).json()['memory_id']}/entries"
    entry = {"content_type": "event", "content_text": "The user gave a concert."}
    first, second = send_twice(path, entry)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert len(client.get(path).json()["items"]) == 2


@pytest.mark.parametrize("body", [{"from_turn": 1}, {"from_turn": 1, "name": "other-city"}])
def test_a_branch_is_made_once(
    client: httpx2.Client, user: str, send_twice: SendTwice, body: dict[str, Any]
) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}/branches"
    first, second = send_twice(path, body)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert len(client.get(path).json()["items"]) == 2


def test_a_branch_of_a_name_that_is_taken_stays_a_conflict(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}/branches"
    for status in (201, 409):
        body, headers = {"from_turn": 1, "name": "other-city"}, {"Idempotency-Key": next(_keys)}
        assert client.post(path, json=body, headers=headers).status_code == status
        client.put(f"{path}/current", json={"name": "main"})


def test_two_branches_without_a_name_have_their_own(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}/branches"
    client.post(path, json={"from_turn": 1})
    client.put(f"{path}/current", json={"name": "main"})
    assert client.post(path, json={"from_turn": 1}).status_code == 201
    assert len(client.get(path).json()["items"]) == 3


def test_erasing_a_user_with_one_agent_leaves_their_keys_with_others(
    client: httpx2.Client, user: str
) -> None:
    headers = {"Idempotency-Key": next(_keys)}
    said = [{"role": "user", "content": "I sail."}]
    body = {"agent_id": "cook", "user_id": user, "messages": said}
    first = client.post("/v1/conversations", json=body, headers=headers)
    client.delete("/v1/users", params={"user_id": user, "agent_id": "assistant"})
    assert client.post("/v1/conversations", json=body, headers=headers).json() == first.json()
    found = client.get("/v1/conversations", params={"agent_id": "cook", "user_id": user})
    assert len(found.json()["items"]) == 1
