"""Export and erasure of users over HTTP."""

import json

import httpx2
import pytest

from .running import Running
from .test_conversations import LISBON, save

ODD = ["a/b", "..", ".", "a?b#c", "用户 一", "a+b%2Fc", " ", "'; --"]


def test_an_export_holds_what_was_said_and_learned(
    client: httpx2.Client, user: str, service: Running
) -> None:
    save(client, user)
    service.learn()
    exported = client.get("/v1/users/export", params={"user_id": user}).json()
    assert (exported["format"], exported["user_id"]) == ("recollect.user/2", user)
    said = exported["conversations"][0]["conversation_data"]["messages"]
    assert [message["content"] for message in said] == [message["content"] for message in LISBON]
    assert any("Lisbon" in entry["content_text"] for entry in exported["entries"])


@pytest.mark.parametrize(
    "asked", [{"params": {"format": "jsonl"}}, {"headers": {"Accept": "application/jsonl"}}]
)
def test_an_export_as_lines_holds_the_same(
    client: httpx2.Client, user: str, service: Running, asked: dict[str, dict[str, str]]
) -> None:
    save(client, user)
    service.learn()
    whole = client.get("/v1/users/export", params={"user_id": user}).json()
    params = {"user_id": user, **asked.get("params", {})}
    answer = client.get("/v1/users/export", params=params, headers=asked.get("headers"))
    assert answer.headers["content-type"].startswith("application/jsonl")
    heading, *records = [json.loads(line) for line in answer.text.splitlines()]
    assert heading == {name: whole[name] for name in ("format", "user_id", "agent_id")}
    for kind in ("memories", "entries", "conversations", "runs"):
        assert [each["data"] for each in records if each["kind"] == kind] == whole[kind]


def test_an_erased_user_is_gone_and_others_stay(client: httpx2.Client, user: str, service: Running) -> None:
    other = f"{user} other"
    gone, kept = save(client, user)["conversation_id"], save(client, other)["conversation_id"]
    service.learn()
    receipt = client.delete("/v1/users", params={"user_id": user})
    assert receipt.status_code == 200
    assert receipt.json()["counts"]["conversations"] == 1
    assert user not in receipt.text
    assert client.get(f"/v1/conversations/{gone}").status_code == 404
    assert client.get(f"/v1/conversations/{kept}").status_code == 200
    exported = client.get("/v1/users/export", params={"user_id": user}).json()
    assert [name for name, found in exported.items() if isinstance(found, list) and found] == []


def test_an_erasure_with_one_agent_leaves_the_others(client: httpx2.Client, user: str) -> None:
    save(client, user)
    kept = save(client, user, agent_id="cook")["conversation_id"]
    client.delete("/v1/users", params={"user_id": user, "agent_id": "assistant"})
    exported = client.get("/v1/users/export", params={"user_id": user}).json()
    assert [each["conversation_id"] for each in exported["conversations"]] == [kept]


@pytest.mark.parametrize("name", ODD)
def test_any_text_can_be_the_id_of_a_user(client: httpx2.Client, user: str, name: str) -> None:
    named = f"{name}{user}" if name.strip(" .") else name
    save(client, named)
    exported = client.get("/v1/users/export", params={"user_id": named}).json()
    assert len(exported["conversations"]) == 1
    assert client.delete("/v1/users", params={"user_id": named}).json()["counts"]["conversations"] == 1


def test_nobody_is_erased_by_a_request_that_names_nobody(client: httpx2.Client) -> None:
    for params in ({}, {"user_id": ""}, {"user": "ada"}):
        refused = client.delete("/v1/users", params=params)
        assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed")


def test_an_erasure_also_takes_what_repeated_requests_would_have_found(
    client: httpx2.Client, user: str
) -> None:
    headers = {"Idempotency-Key": f"erased-{hash(user)}"}
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    first = client.post("/v1/conversations", json=body, headers=headers).json()
    client.delete("/v1/users", params={"user_id": user})
    again = client.post("/v1/conversations", json=body, headers=headers)
    assert again.status_code == 201
    assert again.json()["conversation_id"] != first["conversation_id"]
