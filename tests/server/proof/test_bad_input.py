"""What is wrong with a request, or with whoever sends it, is told, and disturbs nobody."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from recollect.testing.providers import Hold, ProviderServer, RecordedRequest, Reply

from .places import COMPLETIONS, TALKER, Place, record, say, stream, texts_in
from .waiting import wait_until

LIMIT = 4 * 1024 * 1024
JSON = {"Content-Type": "application/json"}
HELLO = {"role": "user", "content": "Hello."}
NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000)


@pytest.fixture
def client(place: Place) -> Iterator[httpx2.Client]:
    with place.client() as client:
        yield client


def good(user: str, **more: Any) -> dict[str, Any]:
    return {"agent_id": TALKER, "user_id": user, "messages": [HELLO], **more}


def code_of(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


# --- bodies ---


def test_a_body_over_the_limit_is_refused_whether_its_length_is_told_or_not(
    client: httpx2.Client, user: str
) -> None:
    too_long = b" " * (LIMIT + 1)
    pieces = (too_long[:65536] for _ in range(80))
    for body in (too_long, pieces):
        answer = client.post("/v1/conversations", content=body, headers=JSON)
        assert code_of(answer) == (413, "body_too_large")
    at_the_limit = json.dumps(good(user)).encode().ljust(LIMIT)
    assert client.post("/v1/conversations", content=at_the_limit, headers=JSON).status_code == 201


def test_a_message_of_a_megabyte_is_kept_exactly(client: httpx2.Client, user: str) -> None:
    text = "語" * (1024 * 1024 - 2) + "\0."
    made = record(client, user, text)
    assert texts_in(client, made["conversation_id"]) == [("user", text)]
    longer = good(user, messages=[{**HELLO, "content": "x" * (1024 * 1024 + 1)}])
    assert code_of(client.post("/v1/conversations", json=longer)) == (422, "validation_failed")


@pytest.mark.parametrize("around", ["[", '{"a":', '[{"a":'])
def test_deep_json_is_refused_wherever_it_stands(client: httpx2.Client, user: str, around: str) -> None:
    deep = around * 100_000
    closed = f"{deep}1{''.join({'[': ']', '{': '}'}.get(each, '') for each in reversed(deep))}"
    inside = json.dumps(good(user))[:-1] + f', "more": {closed}}}'
    for path in ("/v1/conversations", "/v1/chat", "/v1/memories/search"):
        for body in (deep, closed, inside):
            answer = client.post(path, content=body.encode(), headers=JSON)
            assert code_of(answer)[0] in (400, 422)


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_beyond_all_bounds_are_refused(client: httpx2.Client, user: str, number: str) -> None:
    owner = f'"agent_id": "{TALKER}", "user_id": "{user}"'
    for path, body in (
        ("/v1/memories/search", f'{{{owner}, "query": "x", "limit": {number}}}'),
        ("/v1/memories/recall", f'{{{owner}, "query": "x", "budget": {number}}}'),
        ("/v1/conversations", f'{{{owner}, "messages": [{{"role": "user", "content": {number}}}]}}'),
    ):
        answer = client.post(path, content=body, headers=JSON)
        assert code_of(answer)[0] in (400, 422), answer.text


def test_a_name_that_stands_twice_does_not_smuggle_anything_past_a_check(
    client: httpx2.Client, user: str
) -> None:
    """The last one counts, here as in the store: what was checked is what is kept."""
    rest = f'"user_id": "{user}", "messages": [{json.dumps(HELLO)}]'
    body = f'{{"agent_id": "", "agent_id": "{TALKER}", {rest}}}'
    made = client.post("/v1/conversations", content=body, headers=JSON)
    assert made.status_code == 201
    told = client.get(f"/v1/conversations/{made.json()['conversation_id']}").json()
    assert (told["agent_id"], told["user_id"]) == (TALKER, user)
    other = f'{{"agent_id": "{TALKER}", "agent_id": "", {rest}}}'
    assert code_of(client.post("/v1/conversations", content=other, headers=JSON))[0] == 422


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]
)
def test_another_content_type_is_refused(client: httpx2.Client, user: str, kind: str) -> None:
    body = json.dumps(good(user))
    for path in ("/v1/conversations", "/v1/chat", "/v1/chat/stream"):
        answer = client.post(path, content=body, headers={"Content-Type": kind})
        assert code_of(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"message": None}, "body.message"),
        ({"message": ["Hello."]}, "body.message"),
        ({"message": " \n"}, "body.message"),
        ({"message": "\ud800"}, "body.message"),
        ({"unknown": 1}, "body.unknown"),
        ({"memory_injection": "true"}, "body.memory_injection"),
        ({"memory_strategy": {"mode": "forget"}}, "body.memory_strategy"),
        ({"agent": "nobody"}, "body.agent"),
        ({"user_id": "\0"}, "body.user_id"),
        ({"user_id": None}, "body.user_id"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat", "/v1/chat/stream"])
def test_a_chat_that_is_wrong_is_refused_before_anything_is_made(
    client: httpx2.Client, user: str, path: str, changed: dict[str, Any], field: str
) -> None:
    body = json.dumps({"user_id": user, "message": "Hello.", "agent": TALKER, **changed})
    answer = client.post(path, content=body, headers=JSON)
    assert code_of(answer) == (422, "validation_failed")
    assert any(error["field"].startswith(field) for error in answer.json()["errors"]), answer.text
    listed = client.get("/v1/conversations", params={"agent_id": TALKER, "user_id": user}).json()
    assert listed["items"] == []


def test_nul_is_kept_or_refused_and_half_a_character_is_refused(client: httpx2.Client, user: str) -> None:
    made = record(client, user, "a\0b", "\x01\x7f\u200b\u2028")
    assert [text for _, text in texts_in(client, made["conversation_id"])] == ["a\0b", "\x01\x7f\u200b\u2028"]
    half = json.dumps(good(user, messages=[{**HELLO, "content": "\ud800"}]))
    assert code_of(client.post("/v1/conversations", content=half, headers=JSON))[0] == 422
    for query in ("%00", "%ED%A0%80", "%FF"):
        assert client.get(f"/v1/conversations/{query}").status_code in (404, 422)
        owner = f"agent_id={query}&user_id={query}"
        assert client.get(f"/v1/conversations?{owner}").status_code in (200, 422)


# --- Idempotency-Key ---


def test_a_key_with_another_body_is_refused_and_one_in_progress_too(
    client: httpx2.Client, server: ProviderServer, user: str
) -> None:
    let_go = threading.Event()
    server.chat.reply("Hello.")
    server.fail_next(COMPLETIONS, Hold(let_go))
    body = {"user_id": user, "message": "Hello.", "agent": TALKER}
    headers = {"Idempotency-Key": f"key-of-{user}"}
    first: list[httpx2.Response] = []

    def chat() -> None:
        first.append(client.post("/v1/chat", json=body, headers=headers))

    thread = threading.Thread(target=chat)
    thread.start()
    try:
        wait_until(lambda: server.requests(COMPLETIONS))
        again = client.post("/v1/chat", json=body, headers=headers)
        assert code_of(again) == (409, "idempotency_in_progress")
        assert again.headers["Retry-After"] == "1"
        other = client.post("/v1/chat", json={**body, "message": "Bye."}, headers=headers)
        assert code_of(other) == (409, "idempotency_key_reused")
    finally:
        let_go.set()
        thread.join()
    replayed = client.post("/v1/chat", json=body, headers=headers)
    assert replayed.headers["Idempotency-Replayed"] == "true"
    assert replayed.json() == first[0].json()
    assert len(server.requests(COMPLETIONS)) == 1


# --- clients that hang up, or read slowly ---


@contextmanager
def raw(place: Place, head: str, body: bytes) -> Iterator[socket.socket]:
    """A connection on which a request was sent, as it is."""
    port = int(place.url.rpartition(":")[2])
    head += f"\r\nHost: here\r\nAuthorization: Bearer {place.key()}\r\nContent-Type: application/json\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(head.encode() + body)
        yield connection


def test_one_who_hangs_up_before_the_body_is_whole_has_done_nothing(
    place: Place, client: httpx2.Client, user: str
) -> None:
    body = json.dumps(good(user)).encode()
    for head in (f"Content-Length: {len(body) + 10}", "Transfer-Encoding: chunked"):
        sent = body if "Length" in head else f"{len(body):x}\r\n".encode() + body
        with raw(place, f"POST /v1/conversations HTTP/1.1\r\n{head}", sent):
            pass
    record(client, f"{user}-later")
    listed = client.get("/v1/conversations", params={"agent_id": TALKER, "user_id": user}).json()
    assert listed["items"] == []


def test_a_turn_goes_on_and_is_recorded_when_its_reader_hangs_up(
    client: httpx2.Client, server: ProviderServer, user: str
) -> None:
    let_go = threading.Event()
    server.chat.reply("First.", "Second.")
    server.fail_next(COMPLETIONS, Hold(let_go))
    body = {"user_id": user, "message": "Hello.", "agent": TALKER}
    with client.stream("POST", "/v1/chat/stream", json=body) as answer:
        lines = answer.iter_lines()
        told = next(json.loads(line[6:]) for line in lines if line.startswith("data: "))
    let_go.set()
    conversation = told["conversation_id"]
    expected = [("user", "Hello."), ("assistant", "First.")]
    wait_until(lambda: texts_in(client, conversation) == expected)
    wait_until(lambda: [turn["status"] for turn in turns_of(client, conversation)] == ["done"])
    assert say(client, user, "And?", conversation_id=conversation).json()["text"] == "Second."


def turns_of(client: httpx2.Client, conversation: str) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = client.get(f"/v1/conversations/{conversation}/usage").json()["turns"]
    return turns


def test_slow_readers_disturb_nobody(
    place: Place, client: httpx2.Client, server: ProviderServer, user: str
) -> None:
    text = "word " * 60_000

    def answer(request: RecordedRequest) -> Reply:
        is_slow = request.body["messages"][-1]["content"] == "Slowly."
        return Reply(text, piece=100) if is_slow else Reply("Quick.")

    server.chat.reply_always(answer)
    body = json.dumps({"user_id": f"{user}-slow", "message": "Slowly.", "agent": TALKER}).encode()
    head = f"POST /v1/chat/stream HTTP/1.1\r\nContent-Length: {len(body)}\r\nConnection: close"
    with raw(place, head, body) as one, raw(place, head, body) as other:
        assert say(client, user, "Hello.").json()["text"] == "Quick."
        assert stream(client, user, "Hello.")[-1][1]["text"] == "Quick."
        for connection in (one, other):
            received = b"".join(iter(lambda: connection.recv(65536), b""))  # noqa: B023 - used at once
            assert received.count(b"event: text.delta") == len(text) // 100
            assert b"event: turn.completed" in received
