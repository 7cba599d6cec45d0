"""The messages of a conversation over HTTP."""

import httpx2

from .running import Running
from .test_conversations import LISBON, save

POTTERY = {"role": "user", "content": "I started a pottery class yesterday."}


def path_of(client: httpx2.Client, user: str) -> str:
    return f"/v1/conversations/{save(client, user)['conversation_id']}/messages"


def test_added_messages_go_on_where_the_conversation_ended(client: httpx2.Client, user: str) -> None:
    path = path_of(client, user)
    added = client.post(path, json={"messages": [POTTERY]})
    assert added.status_code == 201
    (message,) = added.json()["messages"]
    assert (message["message_index"], message["content"]) == (2, POTTERY["content"])
    told = client.get(path).json()
    assert [each["content"] for each in told["items"]] == [
        *(said["content"] for said in LISBON),
        POTTERY["content"],
    ]
    assert told["next_cursor"] is None


def test_messages_are_read_page_by_page(client: httpx2.Client, user: str) -> None:
    path = path_of(client, user)
    client.post(path, json={"messages": [POTTERY]})
    first = client.get(path, params={"limit": 2}).json()
    second = client.get(path, params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [each["message_index"] for each in first["items"] + second["items"]] == [0, 1, 2]
    assert second["next_cursor"] is None


def test_the_same_ids_with_other_words_are_a_conflict(client: httpx2.Client, user: str) -> None:
    path = path_of(client, user)
    message = {**POTTERY, "message_id": "mine"}
    assert client.post(path, json={"messages": [message]}).status_code == 201
    assert client.post(path, json={"messages": [message]}).status_code == 201
    other = client.post(path, json={"messages": [{**message, "content": "Something else."}]})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert len(client.get(path).json()["items"]) == 3


def test_an_erased_message_takes_with_it_what_was_learned_from_it(
    client: httpx2.Client, user: str, service: Running
) -> None:
    path = path_of(client, user)
    named = {**POTTERY, "content": "I am allergic to peanuts.", "message_id": "a/b?c#d"}
    client.post(path, json={"messages": [named]})
    service.learn()
    memory = {"agent_id": "assistant", "user_id": user}
    assert "peanuts" in client.get("/v1/memories/of", params=memory).text
    receipt = client.delete(f"{path}/a%2Fb%3Fc%23d")
    assert receipt.status_code == 200, receipt.text
    assert "peanuts" not in client.get("/v1/memories/of", params=memory).text
    assert "peanuts" not in client.get(path).text
    assert client.delete(f"{path}/a%2Fb%3Fc%23d").json()["code"] == "not_found"


def test_messages_of_a_conversation_that_is_not_there_are_not_found(client: httpx2.Client) -> None:
    path = "/v1/conversations/nowhere/messages"
    for answer in (
        client.get(path),
        client.post(path, json={"messages": LISBON}),
        client.delete(f"{path}/m"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_page_can_begin_anywhere_or_stand_around_a_message(client: httpx2.Client, user: str) -> None:
    said = [{"role": "user", "content": f"This is {n}.", "message_id": f"m/{n}"} for n in range(11)]
    path = f"/v1/conversations/{save(client, user, messages=said)['conversation_id']}/messages"

    def places(**query: str | int) -> list[int]:
        page = client.get(path, params={"limit": 3, **query}).json()
        return [each["message_index"] for each in page["items"]]

    assert places(from_index=4) == [4, 5, 6]
    assert places(from_index=11) == []
    assert places(around="m/5") == [4, 5, 6]
    assert places(around="m/5", limit=1) == [5]
    assert places(around="m/0") == [0, 1, 2]
    assert places(around="m/10") == [9, 10]
    around = client.get(path, params={"limit": 3, "around": "m/5"}).json()
    assert places(cursor=around["next_cursor"]) == [7, 8, 9]
    assert client.get(path, params={"around": "nowhere"}).json()["code"] == "not_found"


def test_a_page_begins_in_one_way(client: httpx2.Client, user: str) -> None:
    answer = client.get(path_of(client, user), params={"from_index": 1, "around": "m"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.from_index")
