"""Memories over HTTP."""

import httpx2
import pytest


def write(client: httpx2.Client, user: str) -> httpx2.Response:
    body = {"agent_id": "assistant", "user_id": user, "profile_content": ["The user is a cellist."]}
    return client.post("/v1/memories", json=body)


def test_a_memory_is_written_and_read_by_id_and_by_owner(client: httpx2.Client, user: str) -> None:
    written = write(client, user)
    assert written.status_code == 201
    by_id = client.get(written.headers["Location"])
    by_owner = client.get("/v1/memories/of", params={"agent_id": "assistant", "user_id": user})
    assert written.json() == by_id.json() == by_owner.json()
    assert by_id.json()["profile_content"] == ["The user is a cellist."]
    assert by_id.json()["event_content"] == by_id.json()["mind_content"] == []
    assert by_id.headers["ETag"] == f'"{by_id.json()["version"]}"' == written.headers["ETag"]


def test_there_is_one_memory_for_an_agent_and_a_user(client: httpx2.Client, user: str) -> None:
    write(client, user)
    again = write(client, user)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_an_edit_changes_the_lists_that_are_given(client: httpx2.Client, user: str) -> None:
    written = write(client, user)
    path, tag = written.headers["Location"], written.headers["ETag"]
    change = {"event_content": ["The user gave a concert."]}
    changed = client.patch(path, json=change, headers={"If-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["profile_content"] == ["The user is a cellist."]
    assert changed.json()["event_content"] == ["The user gave a concert."]
    emptied = client.patch(path, json={"profile_content": []}, headers={"If-Match": changed.headers["ETag"]})
    assert emptied.json()["profile_content"] == []
    assert client.get(path).json() == emptied.json()


def test_an_edit_of_what_another_has_changed_is_refused(client: httpx2.Client, user: str) -> None:
    written = write(client, user)
    path, tag = written.headers["Location"], written.headers["ETag"]
    headers = {"If-Match": tag}
    assert client.patch(path, json={"mind_content": ["They are happy."]}, headers=headers).status_code == 200
    stale = client.patch(path, json={"mind_content": []}, headers=headers)
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    assert client.get(path).json()["mind_content"] == ["They are happy."]


def test_an_edit_needs_to_name_what_it_changes(client: httpx2.Client, user: str) -> None:
    path = write(client, user).headers["Location"]
    refused = client.patch(path, json={"mind_content": []})
    assert (refused.status_code, refused.json()["code"]) == (428, "precondition_required")


@pytest.mark.parametrize(("tag", "status"), [("*", 200), ('"0", "{}"', 200), ('W/"{}"', 412), ("{}", 412)])
def test_if_match_is_read_as_http_says(client: httpx2.Client, user: str, tag: str, status: int) -> None:
    written = write(client, user)
    headers = {"If-Match": tag.format(written.json()["version"])}
    changed = client.patch(written.headers["Location"], json={"mind_content": ["x"]}, headers=headers)
    assert changed.status_code == status


def test_a_memory_is_told_as_it_was_known(client: httpx2.Client, user: str) -> None:
    path = write(client, user).headers["Location"]
    before = client.get(path, params={"as_of": "2020-01-01T00:00:00Z"})
    assert before.json()["profile_content"] == []


def test_memories_are_listed_page_by_page_with_their_counts(client: httpx2.Client, user: str) -> None:
    written = write(client, user).json()
    query = {"agent_id": "assistant", "user_id": user}
    (outline,) = client.get("/v1/memories", params=query).json()["items"]
    assert outline["memory_id"] == written["memory_id"]
    assert outline["counts"] == {"profile": 1, "event": 0, "mind": 0, "instruction": 0}
    write(client, f"{user} other")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get("/v1/memories", params={"limit": 1, **cursor}).json()
        seen += [each["memory_id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen)) >= 2
    assert written["memory_id"] in seen


def test_a_deleted_memory_is_empty_of_what_it_held(client: httpx2.Client, user: str) -> None:
    path = write(client, user).headers["Location"]
    receipt = client.delete(path)
    assert receipt.status_code == 200
    assert receipt.json()["counts"]["entries"] == 1
    assert "cellist" not in client.get(path).text


def test_what_is_known_is_found_and_recalled(client: httpx2.Client, user: str) -> None:
    write(client, user)
    question = {"query": "cellist", "agent_id": "assistant", "user_id": user}
    found = client.post("/v1/memories/search", json={**question, "explain": True}).json()
    assert found["items"][0]["entry"]["content_text"] == "The user is a cellist."
    assert found["items"][0]["parts"]["text"] > 0
    none = client.post("/v1/memories/search", json={**question, "content_type": "event"}).json()
    assert none["items"] == []
    recalled = client.post("/v1/memories/recall", json=question).json()
    assert "The user is a cellist." in recalled["text"]
    assert len(recalled["entries"]) == 1


@pytest.mark.parametrize("path", ["/v1/memories/search", "/v1/memories/recall"])
def test_a_question_cannot_be_read(client: httpx2.Client, path: str) -> None:
    refused = client.get(path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")


def test_a_prompt_gets_a_page_that_stays_and_a_tail_for_its_question(
    client: httpx2.Client, user: str
) -> None:
    owner = {"agent_id": "assistant", "user_id": user}

    def learn(text: str) -> None:
        entry = {**owner, "content_type": "profile", "content_text": text}
        assert client.post("/v1/entries", json=entry).status_code == 201

    def ask(query: str, **more: object) -> dict[str, object]:
        answer = client.post("/v1/memories/prompt", json={**owner, "query": query, **more})
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found

    learn("The user lives in Lisbon.")
    first = ask("Hello", conversation_id="one", is_start=True)
    learn("The user has a dog called Rex.")
    second = ask("What is my dog called?", said=["Hello"], conversation_id="one")
    assert "Lisbon" in str(first["page"])
    assert (second["page"], second["page_fixed_at"]) == (first["page"], first["page_fixed_at"])
    assert "Rex" in str(second["tail"])
    assert len(second["changed"]) == 1  # type: ignore[arg-type]
    assert ask("What is my dog called?", said=["Hello"], conversation_id="one") == second
    assert "Rex" in str(ask("Hello", conversation_id="two")["page"])
    assert ask("Hello", page_budget=0, said=["Hey"])["page"] == ""
