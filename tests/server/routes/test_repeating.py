"""Requests that are sent again with the same `Idempotency-Key`."""

import itertools
from typing import Any

import httpx2
import pytest

from .test_conversations import LISBON, save

_keys = (f"key-{number}" for number in itertools.count())


def send_twice(client: httpx2.Client, path: str, body: dict[str, Any]) -> list[httpx2.Response]:
    headers = {"Idempotency-Key": next(_keys)}
    return [client.post(path, json=body, headers=headers) for _ in range(2)]


def test_a_conversation_is_saved_once_and_answered_alike(client: httpx2.Client, user: str) -> None:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    first, second = send_twice(client, "/v1/conversations", body)
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    query = {"agent_id": "assistant", "user_id": user}
    assert len(client.get("/v1/conversations", params=query).json()["items"]) == 1


def test_messages_are_added_once_and_answered_alike(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}/messages"
    first, second = send_twice(client, path, {"messages": LISBON})
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert [message["message_index"] for message in first.json()["messages"]] == [2, 3]
    assert len(client.get(path).json()["items"]) == 4


def test_a_memory_and_an_entry_are_written_once(client: httpx2.Client, user: str) -> None:
    body = {"agent_id": "assistant", "user_id": user, "profile_content": ["The user is a cellist."]}
    first, second = send_twice(client, "/v1/memories", body)
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    path = f"/v1/memories/{first.json()['memory_id']}/entries"
    entry = {"content_type": "event", "content_text": "The user gave a concert."}
    first, second = send_twice(client, path, entry)
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert len(client.get(path).json()["items"]) == 2


def test_another_body_with_the_same_key_is_refused(client: httpx2.Client, user: str) -> None:
    headers = {"Idempotency-Key": next(_keys)}
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    assert client.post("/v1/conversations", json=body, headers=headers).status_code == 201
    refused = client.post("/v1/conversations", json={**body, "agent_id": "b"}, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_key_reused")


def test_a_key_is_free_again_after_a_request_that_was_refused(client: httpx2.Client, user: str) -> None:
    headers = {"Idempotency-Key": next(_keys)}
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    assert client.post("/v1/conversations", json=body).status_code == 201  # it makes their memory
    wrong = client.post("/v1/conversations", json={**body, "memory_id": "none"}, headers=headers)
    assert wrong.status_code == 409
    assert client.post("/v1/conversations", json=body, headers=headers).status_code == 201


def test_what_a_key_made_and_somebody_erased_is_not_made_again(client: httpx2.Client, user: str) -> None:
    headers = {"Idempotency-Key": next(_keys)}
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    saved = client.post("/v1/conversations", json=body, headers=headers).json()
    client.delete(f"/v1/conversations/{saved['conversation_id']}")
    again = client.post("/v1/conversations", json=body, headers=headers)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")


@pytest.mark.parametrize("key", ["", "with space", "x" * 256])
def test_a_key_that_is_no_visible_ascii_is_refused(client: httpx2.Client, user: str, key: str) -> None:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    refused = client.post("/v1/conversations", json=body, headers={"Idempotency-Key": key})
    assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed")
