"""Conversations over HTTP."""

import httpx2

from .running import Running

LISBON = [
    {"role": "user", "content": "I live in Lisbon."},
    {"role": "assistant", "content": "Noted!"},
]


def save(client: httpx2.Client, user: str, **more: object) -> dict[str, object]:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON, **more}
    answer = client.post("/v1/conversations", json=body)
    assert answer.status_code == 201, answer.text
    told: dict[str, object] = answer.json()
    return told


def test_saving_answers_exactly_what_the_specification_says(client: httpx2.Client, user: str) -> None:
    told = save(client, user, session_id="s1")
    assert set(told) == {
        *("success", "message", "conversation_id", "session_id", "created_at", "message_count")
    }
    assert told["success"] is True
    assert told["message"] == "Conversation saved successfully"
    assert (told["session_id"], told["message_count"]) == ("s1", 2)
    assert str(told["created_at"]).endswith("Z")


def test_what_is_saved_can_be_read_where_location_says(client: httpx2.Client, user: str) -> None:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    saved = client.post("/v1/conversations", json=body)
    told = client.get(saved.headers["Location"]).json()
    said = told["conversation_data"]["messages"]
    assert [(message["role"], message["content"]) for message in said] == [
        ("user", "I live in Lisbon."),
        ("assistant", "Noted!"),
    ]
    assert [message["message_index"] for message in said] == [0, 1]
    assert (told["agent_id"], told["user_id"], told["turn_count"]) == ("assistant", user, 2)
    assert told["summary"] == "Conversation with 2 turns: I live in Lisbon...."
    assert told["closed_at"] is None


def seed_document(user: str) -> dict[str, object]:
    """The conversation document of the specification, with its result of a pipeline."""
    return {
        "conversation_id": f"会话 {user.replace('/', ' ')}",
        "agent_id": "agent_001",
        "user_id": user,
        "session_id": "session_uuid_456",
        "created_at": "2024-01-01T10:00:00Z",
        "turn_count": 4,
        "memory_id": f"mem {user}",
        "messages": [
            {
                "message_id": "msg_uuid_001",
                "role": "user",
                "content": "你好，我想了解一下这个项目",
                "message_index": 0,
                "created_at": "2024-01-01T10:00:00Z",
            },
            {
                "message_id": "msg_uuid_002",
                "role": "assistant",
                "content": "您好！",
                "message_index": 1,
                "created_at": "2024-01-01T10:00:10Z",
            },
        ],
        "pipeline_result": {"modification_result": "…", "mind_result": {"confidence_score": 0.8}},
    }


def test_the_document_of_the_specification_can_be_saved(client: httpx2.Client, user: str) -> None:
    document = seed_document(user)
    saved = client.post("/v1/conversations", json=document)
    assert saved.status_code == 201, saved.text
    read = client.get(saved.headers["Location"]).json()
    names = ("conversation_id", "agent_id", "user_id", "session_id", "created_at", "memory_id")
    assert {name: read[name] for name in names} == {name: document[name] for name in names}
    assert [(each["message_id"], each["message_index"]) for each in read["messages"]] == [
        ("msg_uuid_001", 0),
        ("msg_uuid_002", 1),
    ]
    assert read["turn_count"] == 2
    assert read["pipeline_result"] != document["pipeline_result"]


def test_a_conversation_can_be_saved_as_it_was_read(
    client: httpx2.Client, user: str, keyed_service: Running
) -> None:
    saved = save(client, user, metadata={"source": "test"}, tags=["a"])
    where = f"/v1/conversations/{saved['conversation_id']}"
    read = client.get(where).json()
    again = client.post("/v1/conversations", json=read)
    assert again.status_code == 201, again.text
    assert len(client.get(where).json()["messages"]) == 2
    with keyed_service.client(keyed_service.make_key("write")) as other:
        moved = other.post("/v1/conversations", json=read)
        assert moved.status_code == 201, moved.text
        copy = other.get(where).json()
    kept = ("conversation_id", "session_id", "created_at", "memory_id", "metadata", "tags", "messages")
    assert {name: copy[name] for name in kept} == {name: read[name] for name in kept}


def test_indexes_that_contradict_the_order_are_refused(client: httpx2.Client, user: str) -> None:
    messages = [{**message, "message_index": 1 - place} for place, message in enumerate(LISBON)]
    body = {"agent_id": "assistant", "user_id": user, "messages": messages}
    refused = client.post("/v1/conversations", json=body)
    assert refused.status_code == 422
    assert "in the order of message_index" in refused.json()["detail"]


def test_texts_and_times_come_back_as_they_went_in(client: httpx2.Client, user: str) -> None:
    said = {
        "role": "user",
        "content": "NUL \0, tab \t, 混合 🎉, \x01",
        "message_id": "m/1 é",
        "created_at": "2024-05-07T12:00:00+02:00",
    }
    saved = save(client, user, messages=[said])
    told = client.get(f"/v1/conversations/{saved['conversation_id']}/messages").json()["items"][0]
    assert told["content"] == said["content"]
    assert told["message_id"] == said["message_id"]
    assert told["created_at"] == "2024-05-07T10:00:00Z"


def test_pages_hold_each_conversation_once_and_the_newest_first(client: httpx2.Client, user: str) -> None:
    saved = [save(client, user)["conversation_id"] for _ in range(5)]
    query = {"agent_id": "assistant", "user_id": user, "limit": 2}
    pages, cursor = [], None
    while True:
        page = client.get("/v1/conversations", params={**query, **({"cursor": cursor} if cursor else {})})
        pages.append([told["conversation_id"] for told in page.json()["items"]])
        cursor = page.json()["next_cursor"]
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [each for page in pages for each in page] == saved[::-1]


def test_a_page_goes_on_after_what_was_deleted_meanwhile(client: httpx2.Client, user: str) -> None:
    first, second, third = (save(client, user)["conversation_id"] for _ in range(3))
    query = {"agent_id": "assistant", "user_id": user, "limit": 1}
    page = client.get("/v1/conversations", params=query).json()
    assert [told["conversation_id"] for told in page["items"]] == [third]
    assert client.delete(f"/v1/conversations/{third}").status_code == 200
    page = client.get("/v1/conversations", params={**query, "cursor": page["next_cursor"]}).json()
    assert [told["conversation_id"] for told in page["items"]] == [second]
    assert first != second


def test_a_list_can_be_of_one_session(client: httpx2.Client, user: str) -> None:
    save(client, user, session_id="one")
    wanted = save(client, user, session_id="two")["conversation_id"]
    query = {"agent_id": "assistant", "user_id": user, "session_id": "two"}
    items = client.get("/v1/conversations", params=query).json()["items"]
    assert [told["conversation_id"] for told in items] == [wanted]


def test_an_erased_conversation_is_gone_and_leaves_a_receipt_without_anything_personal(
    client: httpx2.Client, user: str, service: Running
) -> None:
    identifier = save(client, user)["conversation_id"]
    service.learn()
    memory = {"agent_id": "assistant", "user_id": user}
    assert "Lisbon" in client.get("/v1/memories/of", params=memory).text
    receipt = client.delete(f"/v1/conversations/{identifier}")
    assert receipt.status_code == 200
    assert receipt.json()["counts"]["conversations"] == 1
    assert user not in receipt.text
    assert client.get(f"/v1/conversations/{identifier}").status_code == 404
    assert client.delete(f"/v1/conversations/{identifier}").json()["code"] == "not_found"
    assert "Lisbon" not in client.get("/v1/memories/of", params=memory).text


def test_search_finds_what_was_said_and_tells_the_parts_of_a_score_only_if_asked(
    client: httpx2.Client, user: str
) -> None:
    identifier = save(client, user)["conversation_id"]
    question = {"query": "Lisbon", "agent_id": "assistant", "user_id": user}
    hit = client.post("/v1/conversations/search", json=question).json()["items"][0]
    assert (hit["conversation_id"], hit["message"]["content"]) == (identifier, "I live in Lisbon.")
    assert "parts" not in hit
    explained = client.post("/v1/conversations/search", json={**question, "explain": True})
    assert explained.json()["items"][0]["parts"]["text"] > 0


def test_search_is_within_one_user(client: httpx2.Client, user: str) -> None:
    save(client, user)
    question = {"query": "Lisbon", "agent_id": "assistant", "user_id": f"{user} other"}
    assert client.post("/v1/conversations/search", json=question).json()["items"] == []


def test_nothing_can_be_added_to_a_closed_conversation(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}"
    closed = client.post(f"{path}/close")
    assert closed.status_code == 200
    assert closed.json()["closed_at"].endswith("Z")
    assert client.post(f"{path}/close").json()["closed_at"] == closed.json()["closed_at"]
    refused = client.post(f"{path}/messages", json={"messages": LISBON})
    assert (refused.status_code, refused.json()["code"]) == (409, "conversation_closed")


def test_what_runs_over_a_conversation_have_done_is_told(
    client: httpx2.Client, user: str, service: Running
) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}"
    service.learn()
    (run,) = client.get(f"{path}/runs").json()["items"]
    assert (run["status"], run["first_index"], run["last_index"]) == ("done", 0, 1)
    assert client.get(path).json()["pipeline_result"]["pipeline_metadata"]["llm_model"] == "offline"


def test_a_memory_that_is_not_theirs_is_a_conflict(client: httpx2.Client, user: str) -> None:
    save(client, user)
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON, "memory_id": "another"}
    answer = client.post("/v1/conversations", json=body)
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_the_outline_is_what_is_told_without_the_messages(client: httpx2.Client, user: str) -> None:
    path = f"/v1/conversations/{save(client, user)['conversation_id']}"
    outline, whole = client.get(f"{path}/outline").json(), client.get(path).json()
    assert outline == {name: whole[name] for name in outline}
    assert set(whole) - set(outline) == {"messages", "conversation_data", "pipeline_result"}
    assert client.get("/v1/conversations/nowhere/outline").json()["code"] == "not_found"


def test_a_message_from_the_future_is_refused(client: httpx2.Client, user: str) -> None:
    message = {"role": "user", "content": "I live in Rome.", "created_at": "2999-01-01T00:00:00Z"}
    body = {"agent_id": "assistant", "user_id": user, "messages": [message]}
    refused = client.post("/v1/conversations", json=body)
    assert refused.status_code == 422
    assert "ahead of the clock" in refused.text
