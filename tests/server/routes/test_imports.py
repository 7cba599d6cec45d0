"""The import of lines over HTTP."""

import json
from collections.abc import Iterator

import httpx2

from .running import Running

LINES = {"Content-Type": "application/x-ndjson"}


def lines(user: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        said = [
            {"role": "user", "content": f"message {n}", "created_at": f"2022-02-03T04:05:{n:02}Z"}
            for n in range(20)
        ]
        data = {"conversation_id": f"{user} {number}", "user_id": user, "created_at": "2022-02-03T04:05:00Z"}
        yield json.dumps({"kind": "conversations", "data": {**data, "messages": said}}).encode() + b"\n"


def test_lines_of_any_number_are_imported_once_with_their_times(client: httpx2.Client, user: str) -> None:
    for added in (250, 0):
        answer = client.post(
            "/v1/import", params={"agent_id": "a", "learn": False}, content=lines(user, 250), headers=LINES
        )
        assert answer.status_code == 200, answer.text
        assert (answer.json()["added"].get("conversations", 0), answer.json()["lost"]) == (added, 0)
    found = client.get("/v1/conversations", params={"user_id": user, "agent_id": "a"}).json()["items"]
    assert found[0]["created_at"] == "2022-02-03T04:05:00Z"


def test_a_wrong_line_is_named_and_the_others_are_imported(client: httpx2.Client, user: str) -> None:
    session = json.dumps({"kind": "sessions", "data": {"session_id": "s"}}).encode()
    body = b"\n".join([*lines(user, 1), b"nonsense", session, b"x" * 5_000_000, *lines(user + "2", 1)])
    answer = client.post("/v1/import", params={"agent_id": "a"}, content=body, headers=LINES).json()
    assert (answer["added"]["conversations"], answer["lost"]) == (2, 3)
    told = " ".join(each["reason"] for each in answer["problems"])
    assert "not valid JSON" in told
    assert "cannot be imported over HTTP" in told
    assert "longer than" in told


def test_an_export_as_one_document_is_imported(
    client: httpx2.Client, user: str, keyed_service: Running
) -> None:
    client.post("/v1/import", params={"agent_id": "a"}, content=lines(user, 2), headers=LINES)
    document = client.get("/v1/users/export", params={"user_id": user})
    assert document.headers["Content-Type"] == "application/json"
    with keyed_service.client(keyed_service.make_key("write")) as other:
        answer = other.post("/v1/import", content=document.content, headers=LINES)
        assert answer.status_code == 200, answer.text
        added = answer.json()["added"]
        assert (added["memories"], added["conversations"], added["messages"]) == (1, 2, 40)


def test_a_body_that_is_no_json_lines_is_refused_as_a_whole(client: httpx2.Client, user: str) -> None:
    document = client.get("/v1/users/export", params={"user_id": user}).json()
    for body in (json.dumps(document, indent=2), json.dumps([document]), '{"user_id": "ada"}'):
        answer = client.post("/v1/import", content=body, headers=LINES)
        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), answer.text
        assert "line 1" in answer.json()["detail"]


def test_another_type_is_refused(client: httpx2.Client) -> None:
    answer = client.post("/v1/import", json={"kind": "entries"})
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    gzip = client.post("/v1/import", content=b"x", headers={**LINES, "Content-Encoding": "gzip"})
    assert gzip.status_code == 415
