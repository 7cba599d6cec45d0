"""Several requests that erase the same thing at once: one of them gets the receipt."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx2

from .running import Running
from .test_conversations import LISBON

AT_ONCE = 8


def delete_at_once(client: httpx2.Client, path: str) -> Counter[int]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return Counter(answer.status_code for answer in pool.map(client.delete, [path] * AT_ONCE))


def saved(client: httpx2.Client, user: str) -> str:
    body = {"agent_id": "a", "user_id": user, "messages": LISBON}
    made: str = client.post("/v1/conversations", json=body).json()["conversation_id"]
    return made


def test_a_conversation_is_erased_once(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{saved(client, user)}"
    assert delete_at_once(client, path) == {200: 1, 404: AT_ONCE - 1}


def test_a_message_is_erased_once(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{saved(client, user)}/messages"
    message = client.get(path).json()["items"][0]["message_id"]
    assert delete_at_once(client, f"{path}/{message}") == {200: 1, 404: AT_ONCE - 1}


def test_a_memory_that_nothing_else_needs_is_deleted_once(
    service: Running, client: httpx2.Client, user: str
) -> None:
    conversation = saved(client, user)
    service.learn()
    owner = {"agent_id": "a", "user_id": user}
    (memory,) = client.get("/v1/memories", params=owner).json()["items"]
    client.delete(f"/v1/conversations/{conversation}")
    entry = {"content_text": "Likes tea.", "content_type": "profile"}
    client.post(f"/v1/memories/{memory['memory_id']}/entries", json=entry)
    statuses = delete_at_once(client, f"/v1/memories/{memory['memory_id']}")
    assert statuses == {200: 1, 404: AT_ONCE - 1}
