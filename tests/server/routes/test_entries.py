"""Entries over HTTP."""

import httpx2
import pytest

from .running import Running
from .test_chat import wait_until
from .test_conversations import save
from .test_memories import write

PEANUTS = {"content_type": "profile", "content_text": "The user is allergic to peanuts."}


@pytest.fixture
def path(client: httpx2.Client, user: str) -> str:
    return f"{write(client, user).headers['Location']}/entries"


def test_an_entry_is_written_and_read(client: httpx2.Client, path: str) -> None:
    given = {**PEANUTS, "valid_from": "2024-05", "confidence": 0.5}
    written = client.post(path, json=given)
    assert written.status_code == 201
    read = client.get(written.headers["Location"]).json()
    assert read == written.json()
    assert {name: read[name] for name in given} == given


def test_a_list_of_entries_is_filtered_and_paged(client: httpx2.Client, path: str) -> None:
    for number in range(3):
        client.post(path, json={"content_type": "event", "content_text": f"Event {number}."})
    first = client.get(path, params={"type": "event", "limit": 2}).json()
    second = client.get(path, params={"type": "event", "limit": 2, "cursor": first["next_cursor"]}).json()
    texts = [entry["content_text"] for entry in first["items"] + second["items"]]
    assert texts == ["Event 0.", "Event 1.", "Event 2."]
    assert second["next_cursor"] is None
    assert client.get(path, params={"as_of": "2020-01-01"}).json()["items"] == []


def test_entries_of_old_messages_are_known_from_the_time_they_were_said(client: httpx2.Client) -> None:
    said = {"role": "user", "content": "I am allergic to peanuts.", "created_at": "2026-05-03T12:00:00Z"}
    owner = {"agent_id": "as-of", "user_id": "ada"}
    conversation = client.post("/v1/conversations", json={**owner, "messages": [said]}).headers["Location"]
    wait_until(lambda: client.get(f"{conversation}/runs").json()["items"][0]["status"] == "done")
    path = f"/v1/memories/{client.get('/v1/memories/of', params=owner).json()['memory_id']}/entries"
    (known,) = client.get(path, params={"as_of": "2026-07-01"}).json()["items"]
    assert (known["learned_at"], known["said_at"]) == (said["created_at"], said["created_at"])
    assert client.get(path, params={"as_of": "2026-05-01"}).json()["items"] == []


def test_an_edited_entry_keeps_its_history(client: httpx2.Client, path: str) -> None:
    old = client.post(path, json=PEANUTS).json()["content_id"]
    edited = client.patch(f"/v1/entries/{old}", json={"content_text": "The user is allergic to nuts."})
    assert edited.status_code == 200
    new = edited.json()["content_id"]
    assert edited.json()["supersedes"] == [old]
    history = client.get(f"/v1/entries/{new}/history").json()["items"]
    assert [entry["content_id"] for entry in history] == [old, new]
    assert client.get(f"/v1/entries/{old}").json()["superseded_by"] == new
    told = [entry["content_id"] for entry in client.get(path).json()["items"]]
    assert (old in told, new in told) == (False, True)
    everything = client.get(path, params={"include_retired": True}).json()["items"]
    assert old in [entry["content_id"] for entry in everything]
    again = client.patch(f"/v1/entries/{old}", json={"content_text": "Something else."})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_a_deleted_entry_is_gone_with_what_it_superseded(client: httpx2.Client, path: str) -> None:
    old = client.post(path, json=PEANUTS).json()["content_id"]
    new = client.patch(f"/v1/entries/{old}", json={"content_text": "Nuts."}).json()["content_id"]
    assert client.delete(f"/v1/entries/{new}").json() == {"deleted": 2}
    for gone in (old, new):
        assert client.get(f"/v1/entries/{gone}").status_code == 404
        assert client.delete(f"/v1/entries/{gone}").status_code == 404


def test_why_quotes_what_was_said(client: httpx2.Client, user: str, service: Running) -> None:
    identifier = save(client, user)["conversation_id"]
    service.learn()
    query = {"agent_id": "assistant", "user_id": user}
    memory = client.get("/v1/memories/of", params=query).json()["memory_id"]
    entry = client.get(f"/v1/memories/{memory}/entries").json()["items"][0]["content_id"]
    why = client.get(f"/v1/entries/{entry}/why").json()
    assert [quote["content"] for quote in why["evidence"]] == ["I live in Lisbon."]
    assert why["origin"]["conversation_id"] == identifier


def test_why_of_an_edited_entry_names_the_edit_and_quotes_nothing_for_it(
    client: httpx2.Client, user: str, service: Running
) -> None:
    save(client, user)
    service.learn()
    query = {"agent_id": "assistant", "user_id": user}
    memory = client.get("/v1/memories/of", params=query).json()["memory_id"]
    old = client.get(f"/v1/memories/{memory}/entries").json()["items"][0]["content_id"]
    edited = client.patch(f"/v1/entries/{old}", json={"content_text": "The user lives in Porto."}).json()
    why = client.get(f"/v1/entries/{edited['content_id']}/why").json()
    assert (why["evidence"], why["origin"], why["entry"]["evidence"]) == ([], None, [])
    assert (why["edit"]["content_id"], why["edit"]["edited_at"]) == (old, edited["learned_at"])
    before = client.get(f"/v1/entries/{old}/why").json()
    assert [quote["content"] for quote in before["evidence"]] == ["I live in Lisbon."]
    assert before["edit"] is None


@pytest.mark.parametrize("path", ["", "/history", "/why"])
def test_an_entry_that_is_not_there_is_not_found(client: httpx2.Client, path: str) -> None:
    answer = client.get(f"/v1/entries/nowhere{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_entries_of_a_memory_that_is_not_there_are_not_found(client: httpx2.Client) -> None:
    assert client.get("/v1/memories/nowhere/entries").status_code == 404
    assert client.post("/v1/memories/nowhere/entries", json=PEANUTS).status_code == 404


def test_an_entry_is_confirmed_and_rejected(client: httpx2.Client, path: str) -> None:
    entry = client.post(path, json={**PEANUTS, "confidence": 0.2}).json()
    place = f"/v1/entries/{entry['content_id']}"
    assert (entry["state"], entry["trust"], entry["last_confirmed_at"]) == ("doubtful", 0.2, None)
    confirmed = client.post(f"{place}/confirm")
    assert confirmed.status_code == 200
    assert (confirmed.json()["state"], confirmed.json()["confidence"]) == ("current", 1)
    assert confirmed.json()["last_confirmed_at"] is not None
    rejected = client.post(f"{place}/reject").json()
    assert rejected["state"] == "rejected"
    assert rejected["rejected_at"] is not None
    assert client.get(f"{place}/why").json()["entry"]["state"] == "rejected"
    again = client.post(f"{place}/reject")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert client.post(f"{place}/confirm").json()["state"] == "current"
    for verb in ("confirm", "reject"):
        assert client.post(f"/v1/entries/no-such-entry/{verb}").status_code == 404


def test_an_entry_expires_and_an_edit_can_change_that(client: httpx2.Client, path: str) -> None:
    past = client.post(path, json={**PEANUTS, "expires_at": "2020-05-31"}).json()
    assert (past["state"], past["expires_at"]) == ("expired", "2020-05-31T23:59:59.999999Z")
    ids = [entry["content_id"] for entry in client.get(path).json()["items"]]
    everything = client.get(path, params={"include_retired": True}).json()["items"]
    assert past["content_id"] not in ids
    assert past["content_id"] in [entry["content_id"] for entry in everything]
    text = {"content_text": "The user is allergic to nuts."}
    kept = client.patch(f"/v1/entries/{past['content_id']}", json=text).json()
    assert kept["expires_at"] == past["expires_at"]
    cleared = client.patch(f"/v1/entries/{kept['content_id']}", json={**text, "expires_at": None}).json()
    assert (cleared["expires_at"], cleared["state"]) == (None, "current")
    assert client.post(path, json={**PEANUTS, "expires_at": "soon"}).status_code == 422


def test_instructions_are_recalled_whatever_is_asked(client: httpx2.Client, path: str, user: str) -> None:
    wish = {"content_type": "instruction", "content_text": "Answer in German."}
    memory = client.get(f"/v1/entries/{client.post(path, json=wish).json()['content_id']}").json()[
        "memory_id"
    ]
    owner = client.get(f"/v1/memories/{memory}").json()
    assert owner["instruction_content"] == ["Answer in German."]
    asked = {"query": "quantum", "agent_id": owner["agent_id"], "user_id": user}
    recalled = client.post("/v1/memories/recall", json=asked).json()
    assert [entry["content_text"] for entry in recalled["instructions"]] == ["Answer in German."]
    assert "Answer in German." in recalled["text"]
