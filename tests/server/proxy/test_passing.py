"""What passes through the proxy: the same bytes, as they come; and what becomes of broken calls."""

import gzip
import itertools
import json
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..routes.running import Running, running
from .conftest import post, proxy_settings, recorded
from .raw_provider import RawProvider, chunk, http, stream_head

CHAT, MESSAGES = "/openai/v1/chat/completions", "/anthropic/v1/messages"
CALL = b'{"model": "m",  "n":1.0, "messages": [{"role":"user","content":"caf\\u00e9"}]}'
ANSWER = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Nice."}}]}).encode()


@pytest.fixture
def named(user: str) -> dict[str, Any]:
    """A call of a user whom no other test knows."""
    return {"model": "m", "user": user, "messages": [{"role": "user", "content": "I live in Lisbon."}]}


def head_of(request: bytes) -> dict[str, str]:
    lines = request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


def body_of(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("path", [CHAT, "/openai/v1/responses", "/openai/v1/embeddings", MESSAGES])
def test_a_call_of_nobody_passes_byte_for_byte_and_so_does_its_answer(
    raw_proxy: Running, raw: RawProvider, path: str
) -> None:
    answer = b'{ "id":"x", "n": 1.10, "text":"caf\\u00e9 \xe2\x98\x95" }\n'
    raw.answer(
        http(answer, "application/json; charset=utf-8", "200 OK", "X-Request-Id: req_1", "Openai-Version: 7")
    )
    passed = post(
        raw_proxy, f"{path}?beta=true&q=a%20b", content=CALL, headers={"Content-Type": "application/json"}
    )
    assert body_of(raw.requests[0]) == CALL
    target = path.removeprefix("/openai").removeprefix("/anthropic")
    assert raw.requests[0].startswith(f"POST {target}?beta=true&q=a%20b HTTP/1.1\r\n".encode())
    assert (passed.status_code, passed.content) == (200, answer)
    assert passed.headers["content-type"] == "application/json; charset=utf-8"
    assert (passed.headers["x-request-id"], passed.headers["openai-version"]) == ("req_1", "7")
    assert passed.headers["x-recollect-memory"] == "off"


def test_headers_of_the_connection_and_of_ours_are_not_passed_on(
    raw_proxy: Running, raw: RawProvider
) -> None:
    raw.answer(
        http(
            ANSWER,
            "application/json",
            "200 OK",
            "Set-Cookie: a=b",
            "Alt-Svc: h3",
            "X-Hop: 1",
            "Connection: X-Hop",
        )
    )
    given = {"Connection": "X-Own", "X-Own": "1", "Cookie": "c=d", "TE": "trailers", "OpenAI-Beta": "v2"}
    ours = {"X-Recollect-User": "ada", "X-Recollect-Agent": "helper", "X-Recollect-Session": "s1"}
    passed = post(
        raw_proxy, CHAT, content=CALL, headers={"Content-Type": "application/json", **given, **ours}
    )
    sent = head_of(raw.requests[0])
    assert sent["authorization"] == "Bearer test-key"
    assert sent["openai-beta"] == "v2"
    assert not {"x-own", "cookie", "te"} & set(sent)
    assert not [name for name in sent if name.startswith("x-recollect")]
    assert sent["host"] == raw.url.removeprefix("http://")
    assert not {"set-cookie", "alt-svc", "x-hop"} & set(passed.headers)


def test_a_stream_is_passed_on_as_it_comes(raw_proxy: Running, raw: RawProvider) -> None:
    parts = [b"data: {}\n", b"\ndata: \xe2\x98", b"\x95\r\n\r\n", b": ping\n\n"]
    events = [threading.Event() for _ in parts]
    steps = [step for part, event in zip(parts, events, strict=True) for step in (chunk(part), event)]
    raw.answer(stream_head(), *steps, chunk(b""))
    url, headers = f"{raw_proxy.url}/proxy{CHAT}", {"Content-Type": "application/json"}
    with httpx2.stream("POST", url, content=CALL, headers=headers, timeout=30) as passed:
        for number, part in enumerate(passed.iter_raw()):
            assert part == parts[number]  # it came before the provider sent the next one
            events[number].set()
        assert number == len(parts) - 1


def test_a_compressed_answer_stays_compressed_and_is_understood(
    raw_proxy: Running, raw: RawProvider, named: dict[str, Any]
) -> None:
    packed = gzip.compress(ANSWER)
    raw.answer(http(packed, "application/json", "200 OK", "Content-Encoding: gzip"))
    url, headers = f"{raw_proxy.url}/proxy{CHAT}", {"Accept-Encoding": "br, gzip;q=0.5, zstd"}
    with httpx2.stream("POST", url, json=named, headers=headers, timeout=30) as passed:
        assert b"".join(passed.iter_raw()) == packed
    assert head_of(raw.requests[0])["accept-encoding"] == "gzip;q=0.5"
    assert recorded(raw_proxy, named["user"]) == [[("user", "I live in Lisbon."), ("assistant", "Nice.")]]


def test_a_compressed_call_is_passed_on_as_plain_json(raw_proxy: Running, raw: RawProvider) -> None:
    raw.answer(http(ANSWER))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert post(raw_proxy, CHAT, content=gzip.compress(CALL), headers=headers).status_code == 200
    assert body_of(raw.requests[0]) == CALL
    assert "content-encoding" not in head_of(raw.requests[0])


# --- faults of the provider ---


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        ("500 Internal Server Error", "application/json", b'{"error": {"message": "broken"}}'),
        ("429 Too Many Requests", "application/json", b'{"error": {"message": "slow down"}}'),
        ("502 Bad Gateway", "text/html", b"<html><h1>Bad gateway</h1></html>"),
        ("200 OK", "text/html", b"<html>Hello</html>"),
        ("302 Found", "text/plain", b"elsewhere"),
    ],
)
def test_an_error_of_the_provider_passes_as_it_is_and_is_not_recorded(
    raw_proxy: Running, raw: RawProvider, status: str, kind: str, body: bytes, named: dict[str, Any]
) -> None:
    raw.answer(http(body, kind, status, "Retry-After: 7", "Location: http://127.0.0.1:9/"))
    passed = post(raw_proxy, CHAT, json=named)
    assert (str(passed.status_code), passed.content) == (status.split()[0], body)
    assert (passed.headers["content-type"], passed.headers["retry-after"]) == (kind, "7")
    assert recorded(raw_proxy, named["user"]) == []


@pytest.mark.proof
def test_a_provider_that_is_not_there_is_a_502(tmp_path: Path, named: dict[str, Any]) -> None:
    with running(proxy_settings(tmp_path, "http://127.0.0.1:9/v1", "http://127.0.0.1:9")) as proxy:
        refused = post(proxy, CHAT, json=named)
        assert (refused.status_code, refused.json()["code"]) == (502, "model_failed")
        assert refused.headers["x-recollect-memory"] == "none"
        assert recorded(proxy, named["user"]) == []


def test_a_provider_that_hangs_is_a_502_after_the_timeout(
    raw: RawProvider, tmp_path: Path, named: dict[str, Any]
) -> None:
    never = threading.Event()
    raw.answer(never)
    with running(proxy_settings(tmp_path, raw.url, raw.url, timeout_seconds=0.2)) as proxy:
        refused = post(proxy, CHAT, json=named)
    assert (refused.status_code, refused.json()["detail"]) == (
        502,
        "The model provider did not answer in time.",
    )
    assert raw.hung_up.wait(60)


def test_a_provider_that_hangs_in_the_middle_ends_the_answer_after_the_timeout(
    raw: RawProvider, tmp_path: Path, named: dict[str, Any]
) -> None:
    never = threading.Event()
    raw.answer(stream_head(), chunk(b'data: {"choices":[{"index":0,"delta":{"content":"Ni"}}]}\n\n'), never)
    with running(proxy_settings(tmp_path, raw.url, raw.url, timeout_seconds=0.2)) as proxy:
        with pytest.raises(httpx2.RemoteProtocolError):
            post(proxy, CHAT, json=named)
        assert raw.hung_up.wait(60)
        assert recorded(proxy, named["user"]) == []


@pytest.mark.parametrize("streams", [True, False])
def test_an_answer_that_is_cut_is_cut_for_the_caller_too(
    raw_proxy: Running, raw: RawProvider, streams: bool, named: dict[str, Any]
) -> None:
    if streams:
        raw.answer(stream_head(), chunk(b'data: {"choices":[{"index":0,"delta":{"content":"Ni"}}]}\n\n'))
    else:
        raw.answer(http(ANSWER)[:-5])
    with pytest.raises(httpx2.HTTPError):
        post(raw_proxy, CHAT, json=named)
    assert recorded(raw_proxy, named["user"]) == []


# --- callers ---


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_caller_that_hangs_up_ends_the_call_to_the_provider(
    raw_proxy: Running, raw: RawProvider, has_begun: bool, named: dict[str, Any]
) -> None:
    never = threading.Event()
    raw.answer(*([stream_head(), chunk(b"data: {}\n\n")] if has_begun else []), never)
    url = f"{raw_proxy.url}/proxy{CHAT}"
    if has_begun:
        with httpx2.stream("POST", url, json=named, timeout=30) as passed:
            assert next(passed.iter_raw()) == b"data: {}\n\n"
    else:
        raw.hang_up_on(url, named)
    assert raw.hung_up.wait(60)
    assert recorded(raw_proxy, named["user"]) == []


def test_a_caller_that_hangs_up_after_the_last_event_has_an_answer(
    raw_proxy: Running, raw: RawProvider, named: dict[str, Any]
) -> None:
    never = threading.Event()
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": "Nice."}, "finish_reason": "stop"}]}
    raw.answer(stream_head(), chunk(b"data: " + json.dumps(end).encode() + b"\n\n"), never)
    with httpx2.stream("POST", f"{raw_proxy.url}/proxy{CHAT}", json=named, timeout=30) as passed:
        next(passed.iter_raw())
    assert raw.hung_up.wait(60)
    assert recorded(raw_proxy, named["user"]) == [[("user", "I live in Lisbon."), ("assistant", "Nice.")]]


def send_raw(proxy: Running, *lines: bytes, body: Iterable[bytes] = ()) -> bytes:
    """The first bytes of the answer to a call that no client library would send."""
    host = proxy.url.removeprefix("http://")
    start = [f"POST /proxy{CHAT} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
    head = b"\r\n".join([*(line.encode() for line in start), *lines]) + b"\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(host.partition(":")[2])), 30) as connection:
        try:
            for part in (head, *body):
                connection.sendall(part)
        except ConnectionError:  # it has answered already
            pass
        return connection.recv(65536)


def test_a_body_of_fifty_megabytes_is_refused(raw_proxy: Running, raw: RawProvider) -> None:
    size = 50 * 1024 * 1024
    named = send_raw(raw_proxy, f"Content-Length: {size}".encode())
    assert named.startswith(b"HTTP/1.1 413 ")
    megabyte = chunk(b" " * 1024 * 1024)
    unnamed = send_raw(raw_proxy, b"Transfer-Encoding: chunked", body=itertools.repeat(megabyte, 50))
    assert unnamed.startswith(b"HTTP/1.1 413 ")
    packed = gzip.compress(b" " * size, 1)
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert post(raw_proxy, CHAT, content=packed, headers=headers).status_code == 413
    assert raw.requests == []


def test_a_body_of_ten_megabytes_passes_with_its_memories(
    raw_proxy: Running, raw: RawProvider, named: dict[str, Any]
) -> None:
    raw.answer(http(ANSWER))
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 10_000_000}}
    parts = [{"type": "text", "text": "I live in Lisbon."}, image]
    passed = post(raw_proxy, CHAT, json={**named, "messages": [{"role": "user", "content": parts}]})
    assert passed.status_code == 200
    assert json.loads(body_of(raw.requests[0]))["messages"][-1]["content"] == parts
    assert recorded(raw_proxy, named["user"]) == [[("user", "I live in Lisbon."), ("assistant", "Nice.")]]


@pytest.mark.parametrize(
    "path",
    ["/openai/v1/files", "/openai/v1/responses/resp_1", "/anthropic/v1/models", "/openai/v2/responses", ""],
)
def test_a_path_that_is_no_part_of_the_proxy_is_refused(
    raw_proxy: Running, raw: RawProvider, path: str
) -> None:
    with raw_proxy.client() as client:
        for answer in (client.get(f"/proxy{path}"), client.post(f"/proxy{path}", json={})):
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert raw.requests == []


@pytest.mark.parametrize("name", ["%2e", "%2E%2E", "...", "a%2Fb", "a" * 201, "a%0A"])
def test_a_model_that_is_another_path_is_refused(raw_proxy: Running, raw: RawProvider, name: str) -> None:
    with raw_proxy.client() as client:
        assert client.get(f"/proxy/openai/v1/models/{name}").status_code in (404, 422)
    assert raw.requests == []


@pytest.mark.parametrize("name", ["gpt-5.1-mini", "ft:gpt-4o:acme::1", ".hidden"])
def test_a_model_is_passed_on(raw_proxy: Running, raw: RawProvider, name: str) -> None:
    raw.answer(http(b"{}", "application/json"))
    with raw_proxy.client() as client:
        assert client.get(f"/proxy/openai/v1/models/{name}").status_code == 200
    assert raw.requests[0].startswith(f"GET /v1/models/{name} HTTP".encode())


@pytest.mark.proof
def test_a_proxy_that_is_off_is_not_there(tmp_path: Path, named: dict[str, Any]) -> None:
    with running(
        proxy_settings(tmp_path, "http://127.0.0.1:9", "http://127.0.0.1:9", enabled=False)
    ) as service:
        assert post(service, CHAT, json=named).status_code == 404


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"messages": 1, "user": "ada"}'])
def test_a_call_that_makes_no_sense_is_the_business_of_the_provider(
    raw_proxy: Running, raw: RawProvider, content: bytes
) -> None:
    raw.answer(http(b'{"error": {}}', "application/json", "400 Bad Request"))
    passed = post(raw_proxy, CHAT, content=content, headers={"Content-Type": "application/json"})
    assert (passed.status_code, passed.content) == (400, b'{"error": {}}')
    assert body_of(raw.requests[0]) == content


@pytest.mark.parametrize("value", [b"a\x07b", b"\xff\xfe", b"", b"a" * 2000, b"a\tb"])
@pytest.mark.parametrize("name", ["X-Recollect-User", "X-Recollect-Agent", "X-Recollect-Session"])
def test_a_header_that_is_no_id_is_refused(
    raw_proxy: Running, raw: RawProvider, name: str, value: bytes
) -> None:
    headers: Any = [(b"Content-Type", b"application/json"), (name.encode(), value)]
    refused = httpx2.post(f"{raw_proxy.url}/proxy{CHAT}", content=CALL, headers=headers, timeout=30)
    assert refused.status_code in (400, 422)
    assert raw.requests == []


@pytest.mark.parametrize("value", [b"a\x00b", b"a\rb", b"a\nb", b"a\r\n b", b"a\x01b", b"a\x7fb"])
@pytest.mark.parametrize("name", [b"X-Recollect-User", b"OpenAI-Beta"])
def test_a_header_with_control_characters_reaches_nobody(
    raw_proxy: Running, raw: RawProvider, name: bytes, value: bytes
) -> None:
    length = f"Content-Length: {len(CALL)}".encode()
    refused = send_raw(raw_proxy, name + b": " + value, length, b"Connection: close", body=[CALL])
    assert refused.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 422 "))
    assert raw.requests == []


def test_two_users_in_one_call_are_refused(raw_proxy: Running, raw: RawProvider) -> None:
    headers: Any = [
        ("Content-Type", "application/json"),
        *[("X-Recollect-User", name) for name in ("ada", "bob")],
    ]
    refused = httpx2.post(f"{raw_proxy.url}/proxy{CHAT}", content=CALL, headers=headers, timeout=30)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "header.X-Recollect-User")
    assert raw.requests == []


def test_a_page_of_another_site_cannot_use_an_open_proxy(
    raw_proxy: Running, raw: RawProvider, named: dict[str, Any]
) -> None:
    refused = post(raw_proxy, CHAT, json=named, headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403
    rebound = post(raw_proxy, CHAT, json=named, headers={"Host": "evil.example"})
    assert rebound.status_code == 421
    assert raw.requests == []
