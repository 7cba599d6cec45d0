"""What a chat with the offline agent shows: no placeholder ids, and only the memories that it quotes."""

import httpx2

from .running import Running
from .test_conversations import LISBON


def say(client: httpx2.Client, user: str, text: str) -> dict[str, object]:
    answer = client.post("/v1/chat", json={"user_id": user, "message": text})
    assert answer.status_code == 200, answer.text
    told: dict[str, object] = answer.json()
    return told


def test_a_view_shows_no_placeholder_id(client: httpx2.Client, user: str) -> None:
    conversation = say(client, user, "Hello.")["conversation_id"]
    for query in ({}, {"mode": "trim", "max_user_turns": 1}):
        view = client.get(f"/v1/conversations/{conversation}/view", params=query)
        assert [item["role"] for item in view.json()["items"]] == ["user", "assistant"]
        assert "__fake_id__" not in view.text
        assert all("id" not in item for item in view.json()["items"])
    assert "__fake_id__" not in client.get(f"/v1/conversations/{conversation}/events").text


def test_memories_that_are_not_quoted_are_not_used(
    service: Running, client: httpx2.Client, user: str
) -> None:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    assert client.post("/v1/conversations", json=body).status_code == 201
    service.learn()
    nothing = say(client, user, "Quantum chromodynamics?")
    assert "I remember nothing about that." in str(nothing["text"])
    assert nothing["memories_used"] == 0
    known = say(client, user, "Where do I live?")
    assert known["memories_used"] == str(known["text"]).count("\n> ") > 0


def test_an_answer_of_the_offline_agent_is_not_something_said(
    service: Running, client: httpx2.Client, user: str
) -> None:
    said = say(client, user, "I keep a boat called Wanda in Lisbon.")
    asked = say(client, user, "Where is the boat?")
    service.learn()
    for turn in (said, asked):
        where = f"/v1/conversations/{turn['conversation_id']}"
        roles = [each["role"] for each in client.get(f"{where}/messages").json()["items"]]
        assert roles == ["user", "system"]
        view = client.get(f"{where}/view").json()["items"]
        assert [item["role"] for item in view] == ["user", "assistant"]
    body = {"agent_id": "assistant", "user_id": user, "query": "No model is configured. Where is the boat?"}
    hits = client.post("/v1/conversations/search", json=body).json()["items"]
    assert hits
    assert {hit["message"]["role"] for hit in hits} == {"user"}


def test_turns_of_a_branch_are_user_turns(client: httpx2.Client, user: str) -> None:
    conversation = say(client, user, "Hello.")["conversation_id"]
    (branch,) = client.get(f"/v1/conversations/{conversation}/branches").json()["items"]
    outline = client.get(f"/v1/conversations/{conversation}/outline").json()
    assert (branch["user_turn_count"], outline["turn_count"]) == (1, 2)
