"""What belongs to a conversation, over HTTP."""

import httpx2
import pytest

from .test_conversations import save

TRIM = {"mode": "trim", "max_user_turns": 2}


@pytest.fixture
def path(client: httpx2.Client, user: str) -> str:
    return f"/v1/conversations/{save(client, user)['conversation_id']}"


def test_only_given_settings_change_and_null_clears_one(client: httpx2.Client, path: str) -> None:
    def settings(answer: httpx2.Response) -> tuple[object, object]:
        assert answer.status_code == 200, answer.text
        return answer.json()["memory_strategy"], answer.json()["memory_injection"]

    assert settings(client.get(f"{path}/memory")) == (None, None)
    both = client.patch(f"{path}/memory", json={"memory_strategy": TRIM, "memory_injection": True})
    assert settings(both) == (TRIM, True)
    assert settings(client.patch(f"{path}/memory", json={"memory_injection": False})) == (TRIM, False)
    assert settings(client.patch(f"{path}/memory", json={"memory_strategy": None})) == (None, False)
    assert settings(client.patch(f"{path}/memory", json={})) == (None, False)
    assert settings(client.get(f"{path}/memory")) == (None, False)


def test_a_mode_is_taken_in_any_case_and_stored_in_lower_case(client: httpx2.Client, path: str) -> None:
    upper = {**TRIM, "mode": "TRIM"}
    answer = client.patch(f"{path}/memory", json={"memory_strategy": upper})
    assert answer.json()["memory_strategy"] == TRIM
    tried = client.get(f"{path}/view", params=upper)
    assert tried.json()["memory_strategy"] == TRIM


def test_settings_that_another_has_changed_are_not_overwritten(client: httpx2.Client, path: str) -> None:
    read = client.get(f"{path}/memory").headers["ETag"]
    first = client.patch(f"{path}/memory", json={"memory_injection": True}, headers={"If-Match": read})
    assert first.status_code == 200
    assert first.headers["ETag"] != read
    second = client.patch(f"{path}/memory", json={"memory_injection": False}, headers={"If-Match": read})
    assert (second.status_code, second.json()["code"]) == (412, "precondition_failed")
    assert client.get(f"{path}/memory").json()["memory_injection"] is True


@pytest.mark.parametrize(
    ("strategy", "named"),
    [
        ({"mode": "forget"}, "memory_strategy"),
        ({"mode": "trim"}, "max_user_turns"),
        ({"mode": "trim", "max_user_turns": -1}, "max_user_turns"),
        ({"mode": "trim", "max_user_turns": "2"}, "max_user_turns"),
        ({"mode": "compact", "max_user_turns": 2}, "max_user_turns"),
        ({"mode": "trim", "max_user_turns": 2, "keep_last_user_turns": 3}, "keep_last_user_turns"),
    ],
)
def test_a_strategy_that_makes_no_sense_is_refused_by_name(
    client: httpx2.Client, path: str, strategy: dict[str, object], named: str
) -> None:
    refused = client.patch(f"{path}/memory", json={"memory_strategy": strategy})
    assert refused.status_code == 422
    assert named in refused.json()["detail"]
    assert client.get(f"{path}/memory").json()["memory_strategy"] is None


def test_the_view_goes_by_the_strategy(client: httpx2.Client, path: str) -> None:
    more = [{"role": role, "content": f"{role} {turn}"} for turn in (2, 3) for role in ("user", "assistant")]
    client.post(f"{path}/messages", json={"messages": more})
    whole = client.get(f"{path}/view").json()
    assert (whole["memory_strategy"], len(whole["items"])) == (None, 6)
    strategy = {"mode": "trim", "max_user_turns": 1}
    client.patch(f"{path}/memory", json={"memory_strategy": strategy})
    cut = client.get(f"{path}/view").json()
    assert cut["memory_strategy"] == strategy
    assert [item["role"] for item in cut["items"]] == ["user", "assistant"]
    assert "user 3" in str(cut["items"])


def test_a_conversation_that_nobody_chatted_in_has_no_usage_and_no_events(
    client: httpx2.Client, path: str
) -> None:
    usage = client.get(f"{path}/usage").json()
    assert set(usage["totals"].values()) == {0}
    assert usage["turns"] == []
    assert client.get(f"{path}/events").json() == {"items": [], "next_cursor": None}


def test_a_chat_leaves_events_and_usage(client: httpx2.Client, path: str, user: str) -> None:
    identifier = path.rpartition("/")[2]
    said = {"conversation_id": identifier, "user_id": user, "message": "Where do I live?"}
    answer = client.post("/v1/chat", json=said)
    assert answer.status_code == 200, answer.text
    usage = client.get(f"{path}/usage").json()
    assert [turn["status"] for turn in usage["turns"]] == ["done"]
    first = client.get(f"{path}/events", params={"limit": 1}).json()
    assert first["items"][0]["sequence_number"] == 0
    rest = client.get(f"{path}/events", params={"limit": 20, "cursor": first["next_cursor"]}).json()
    numbers = [event["sequence_number"] for event in rest["items"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert rest["items"][-1]["text"] == answer.json()["text"]
    later = client.get(f"{path}/events", params={"from_sequence": 2}).json()["items"]
    assert later == rest["items"][1:]
    both = client.get(f"{path}/events", params={"from_sequence": 2, "cursor": first["next_cursor"]})
    assert (both.status_code, both.json()["errors"][0]["field"]) == (422, "query.from_sequence")


def test_a_branch_is_made_chosen_and_deleted(client: httpx2.Client, path: str) -> None:
    made = client.post(f"{path}/branches", json={"from_turn": 1, "name": "b/2"})
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["is_current"]) == ("b/2", True)
    taken = client.post(f"{path}/branches", json={"from_turn": 1, "name": "b/2"})
    assert taken.status_code in (409, 422)
    assert client.delete(f"{path}/branches/b%2F2").json()["code"] == "conflict"
    assert client.put(f"{path}/branches/current", json={"name": "main"}).json()["is_current"] is True
    assert client.delete(f"{path}/branches/b%2F2").status_code == 204
    assert client.delete(f"{path}/branches/b%2F2").json()["code"] == "not_found"
    assert [branch["name"] for branch in client.get(f"{path}/branches").json()["items"]] == ["main"]


def test_a_branch_that_is_not_there_cannot_be_chosen(client: httpx2.Client, path: str) -> None:
    refused = client.put(f"{path}/branches/current", json={"name": "nowhere"})
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


def test_a_turn_that_is_not_there_cannot_be_branched_from(client: httpx2.Client, path: str) -> None:
    refused = client.post(f"{path}/branches", json={"from_turn": 9})
    assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed")


def test_no_branch_can_be_called_current(client: httpx2.Client, path: str) -> None:
    refused = client.post(f"{path}/branches", json={"from_turn": 1, "name": "current"})
    assert refused.status_code == 422
    assert client.delete(f"{path}/branches/current").status_code == 405


@pytest.mark.parametrize("part", ["memory", "view", "usage", "events", "branches", "runs", "messages"])
def test_parts_of_a_conversation_that_is_not_there_are_not_found(client: httpx2.Client, part: str) -> None:
    answer = client.get(f"/v1/conversations/nowhere/{part}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
