"""What users send over HTTP: names, tools, content parts, metadata, times, ids of memories, and no agent."""

from typing import Any

import httpx2
import pytest

from .running import Running
from .test_conversations import LISBON, save

LINK = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}
BLOB = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
BLOB_SHA = "b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78"


def test_a_memory_id_that_does_not_exist_yet_names_the_memory(client: httpx2.Client, user: str) -> None:
    memory_id = f"mem of {user}".replace("/", " ")
    saved = save(client, user, memory_id=memory_id)
    save(client, user, memory_id=memory_id)
    assert client.get(f"/v1/conversations/{saved['conversation_id']}").json()["memory_id"] == memory_id
    assert client.get(f"/v1/memories/{memory_id}").json()["user_id"] == user
    for owner, wrong in ((user, "another"), (f"{user} the other", memory_id)):
        body = {"agent_id": "assistant", "user_id": owner, "messages": LISBON, "memory_id": wrong}
        refused = client.post("/v1/conversations", json=body)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


def test_a_conversation_has_its_messages_under_both_names(client: httpx2.Client, user: str) -> None:
    saved = save(client, user)
    told = client.get(f"/v1/conversations/{saved['conversation_id']}").json()
    assert [message["content"] for message in told["messages"]] == [each["content"] for each in LISBON]
    assert told["conversation_data"] == {"messages": told["messages"]}


def test_names_tools_parts_metadata_and_times_are_taken(client: httpx2.Client, user: str) -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "name": "Maria", "content": [{"type": "text", "text": "My cat:"}, LINK, BLOB]},
        {"role": "tool", "name": "vet", "content": "The cat is well."},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Good."}]},
    ]
    metadata = {"channel": "mail", "tags": ["cat"]}
    saved = save(client, user, messages=said, metadata=metadata, created_at="2024-05-07T12:00:00+02:00")
    assert saved["created_at"] == "2024-05-07T10:00:00Z"
    told = client.get(f"/v1/conversations/{saved['conversation_id']}").json()
    assert (told["created_at"], told["metadata"]) == ("2024-05-07T10:00:00Z", metadata)
    assert [(each["role"], each["name"], each["content"]) for each in told["messages"]] == [
        ("user", "Maria", "My cat:"),
        ("tool", "vet", "The cat is well."),
        ("assistant", None, "Good."),
    ]
    assert told["messages"][0]["attachments"] == [
        {**LINK, "part_index": 1},
        {
            "type": "input_image",
            "part_index": 2,
            "image_url": {"media_type": "image/png", "bytes": 3, "sha256": BLOB_SHA},
        },
    ]
    assert {each["created_at"] for each in told["messages"]} == {"2024-05-07T10:00:00Z"}
    owner = {"agent_id": "assistant", "user_id": user}
    (outline,) = client.get("/v1/conversations", params=owner).json()["items"]
    assert outline["metadata"] == metadata
    more = {"messages": [{"role": "tool", "content": [LINK]}]}
    added = client.post(f"/v1/conversations/{saved['conversation_id']}/messages", json=more).json()
    assert added["messages"][0]["content"] == "[image_url]"


@pytest.mark.parametrize(
    ("changed", "field", "told"),
    [
        ({"metadata": []}, "body.metadata", "valid dictionary"),
        ({"metadata": {"a": {"b": {"c": {"d": {"e": {}}}}}}}, "body.metadata", "nested deeper than 5 levels"),
        ({"metadata": {"a": "x" * 16_384}}, "body.metadata", "at most 16,384 bytes"),
        ({"created_at": "then"}, "body.created_at", "ISO 8601"),
        ({"name": 7}, "body.messages.0.name", "valid string"),
        ({"name": "a\nb"}, "body.messages.0.name", "one line of printable text"),
        ({"role": "function"}, "body.messages.0.role", "'tool'"),
        ({"content": 7}, "body.messages.0.content", "valid string"),
        ({"content": " "}, "body.messages.0.content", "match pattern"),
        ({"content": []}, "body.messages.0.content", "1 to 100 parts"),
        ({"content": [7]}, "body.messages.0.content", "part 0 of it must be an object, not int"),
        ({"content": [{"type": "text"}]}, "body.messages.0.content", "must have its text as a string"),
        ({"content": [{"text": "x"}]}, "body.messages.0.content", "must have a type"),
        ({"content": [{"type": "text", "text": ""}]}, "body.messages.0.content", "at least 1 character"),
        ({"attachments": [7]}, "body.messages.0.attachments.0", "valid dictionary"),
        ({"attachments": [{}] * 101}, "body.messages.0.attachments", "at most 100 items"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_its_field(
    client: httpx2.Client, user: str, changed: dict[str, Any], field: str, told: str
) -> None:
    body: dict[str, Any] = {"agent_id": "assistant", "user_id": user, "messages": [dict(LISBON[0])]}
    (body if field.count(".") == 1 else body["messages"][0]).update(changed)
    answer = client.post("/v1/conversations", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), answer.text
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert told in error["message"]


def test_the_metadata_of_an_entry_is_taken_and_changed(client: httpx2.Client, user: str) -> None:
    memory = client.post("/v1/memories", json={"agent_id": "assistant", "user_id": user}).json()
    path = f"/v1/memories/{memory['memory_id']}/entries"
    body = {"content_type": "profile", "content_text": "The user sails.", "metadata": {"form": 7}}
    made = client.post(path, json=body).json()
    assert made["metadata"] == {"form": 7}
    kept = client.patch(f"/v1/entries/{made['content_id']}", json={"content_text": "The user rows."}).json()
    assert kept["metadata"] == {"form": 7}
    change = {"content_text": "The user swims.", "metadata": {"form": 8}}
    assert client.patch(f"/v1/entries/{kept['content_id']}", json=change).json()["metadata"] == {"form": 8}
    refused = client.post(path, json={**body, "metadata": {"": 1}})
    assert refused.json()["errors"][0]["field"] == "body.metadata"


def test_a_search_without_an_agent_is_over_all_agents_of_the_user(client: httpx2.Client, user: str) -> None:
    for agent, text in (("cook", "My boat is blue."), ("coach", "My boat is fast.")):
        save(client, user, agent_id=agent, messages=[{"role": "user", "content": text}])
        body = {"agent_id": f"{agent} 2", "user_id": user, "profile_content": [f"The user has a {agent}."]}
        client.post("/v1/memories", json=body)
    asked = {"query": "boat", "user_id": user}
    said = client.post("/v1/conversations/search", json=asked).json()["items"]
    assert sorted((hit["agent_id"], hit["message"]["content"]) for hit in said) == [
        ("coach", "My boat is fast."),
        ("cook", "My boat is blue."),
    ]
    known = client.post("/v1/memories/search", json={"query": "cook coach", "user_id": user}).json()["items"]
    assert sorted(hit["agent_id"] for hit in known if "has a" in hit["entry"]["content_text"]) == [
        "coach 2",
        "cook 2",
    ]
    recalled = client.post("/v1/memories/recall", json=asked).json()["text"]
    assert "blue" in recalled
    assert "fast" in recalled


def test_users_are_listed_page_by_page(keyed_service: Running, tenant: str) -> None:
    names = {f"user {number} {'x' * 4000}" for number in range(5)}
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as client:
        for name in names:
            save(client, name)
        listed, cursor = [], None
        while True:
            query = {"limit": "2", **({} if cursor is None else {"cursor": cursor})}
            page = client.get("/v1/users", params=query).json()
            assert len(page["items"]) <= 2
            listed += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert {each["user_id"] for each in listed} == names
        assert [each["memory_count"] for each in listed] == [1] * 5
        assert set(listed[0]) == {"user_id", "memory_count", "created_at", "updated_at", "position"}


def test_a_chat_takes_its_agent_under_either_name(client: httpx2.Client, user: str) -> None:
    asked = {"user_id": user, "message": "I live in Lisbon."}
    for names in (
        {"agent_id": "assistant"},
        {"agent": "assistant"},
        {"agent": "assistant", "agent_id": "assistant"},
    ):
        told = client.post("/v1/chat", json={**asked, **names})
        assert told.status_code == 200, told.text
        assert (told.json()["agent"], told.json()["agent_id"]) == ("assistant", "assistant")
    differing = client.post("/v1/chat", json={**asked, "agent": "assistant", "agent_id": "other"})
    assert (differing.status_code, differing.json()["code"]) == (422, "validation_failed")
    assert "must name the same agent" in differing.json()["errors"][0]["message"]
    unknown = client.post("/v1/chat", json={**asked, "agent_id": "nobody"})
    assert unknown.json()["errors"][0]["field"] == "body.agent_id"


def test_tags_are_taken_returned_and_changed(client: httpx2.Client, user: str) -> None:
    saved = save(client, user, tags=["work", "boat", "work"])
    told = client.get(f"/v1/conversations/{saved['conversation_id']}").json()
    assert told["tags"] == ["work", "boat"]
    owner = {"agent_id": "assistant", "user_id": user}
    assert client.get("/v1/conversations", params=owner).json()["items"][0]["tags"] == ["work", "boat"]
    path = f"/v1/memories/{told['memory_id']}/entries"
    body = {"content_type": "profile", "content_text": "The user sails.", "tags": ["sport"]}
    made = client.post(path, json=body).json()
    kept = client.patch(f"/v1/entries/{made['content_id']}", json={"content_text": "The user rows."}).json()
    assert (made["tags"], kept["tags"]) == (["sport"], ["sport"])
    change = {"content_text": "The user swims.", "tags": []}
    assert client.patch(f"/v1/entries/{kept['content_id']}", json=change).json()["tags"] == []


SEARCHES = ("/v1/conversations/search", "/v1/memories/search", "/v1/memories/recall")


def test_searches_are_filtered_by_tags_metadata_and_speaker(client: httpx2.Client, user: str) -> None:
    said = [
        {"role": "user", "name": "Ada", "content": "My boat is blue."},
        {"role": "user", "name": "Bo", "content": "My boat is fast."},
        {"role": "assistant", "content": "A boat, how nice."},
    ]
    saved = save(client, user, messages=said, tags=["work"], metadata={"ticket": 17})
    save(client, user, messages=[{"role": "user", "content": "A boat at home."}], tags=["home"])
    memory = client.get(f"/v1/conversations/{saved['conversation_id']}").json()["memory_id"]
    entry = {"content_type": "profile", "content_text": "The user owns a boat.", "tags": ["work"]}
    assert client.post(f"/v1/memories/{memory}/entries", json=entry).status_code == 201
    asked = {"query": "boat", "agent_id": "assistant", "user_id": user}

    def found(**filters: Any) -> list[str]:
        hits = client.post(SEARCHES[0], json={**asked, **filters}).json()["items"]
        return sorted(hit["message"]["content"] for hit in hits)

    blue, fast, nice = (each["content"] for each in said)
    assert found(tags=["work"]) == sorted([blue, fast, nice])
    assert found(metadata={"ticket": 17}, role="user") == [blue, fast]
    assert found(name="Bo") == [fast]
    assert found(tags=["home"], name="Bo") == []
    known = client.post(SEARCHES[1], json={**asked, "tags": ["work"], "since": "2020"}).json()
    assert [hit["entry"]["tags"] for hit in known["items"]] == [["work"]]
    recalled = client.post(SEARCHES[2], json={**asked, "tags": ["work"], "name": "Ada"}).json()
    assert "blue" in recalled["text"]
    assert "fast" not in recalled["text"]
    unknown = client.post(SEARCHES[0], json={**asked, "metadata": {"nope": 1}}).json()
    assert unknown["items"] == []
    assert unknown["warnings"] == [
        "no conversation of the user has the metadata key 'nope': nothing is found"
    ]


@pytest.mark.parametrize("path", SEARCHES)
@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"tags": "work"}, "body.tags"),
        ({"tags": ["x" * 65]}, "body.tags.0"),
        ({"tags": [" a"]}, "body.tags"),
        ({"tags": [str(number) for number in range(33)]}, "body.tags"),
        ({"metadata": {"a": "x" * 1_000_000}}, "body.metadata"),
        ({"metadata": {"a": {"b": {"c": {"d": {"e": {}}}}}}}, "body.metadata"),
        ({"role": "robot"}, "body.role"),
        ({"name": "a\nb"}, "body.name"),
    ],
)
def test_filters_that_cannot_be_are_refused_with_their_field(
    client: httpx2.Client, user: str, path: str, filters: dict[str, Any], field: str
) -> None:
    answer = client.post(path, json={"query": "boat", "user_id": user, **filters})
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), answer.text
    assert answer.json()["errors"][0]["field"] == field
