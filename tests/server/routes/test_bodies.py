"""Bodies of requests: packed, slow, and too large when unpacked."""

import gzip
import json
import uuid
import zlib

import httpx2
import pytest

from recollect.server.problems import Problem
from recollect.server.settings import ServerSettings
from recollect.server.transport.bodies import decompress, seconds_for

from .running import Running
from .test_conversations import LISBON

JSON = {"Content-Type": "application/json"}
PACKED = {**JSON, "Content-Encoding": "gzip"}
MOST = ServerSettings().max_body_bytes


def body_of(user: str) -> bytes:
    return json.dumps({"agent_id": "a", "user_id": user, "messages": LISBON}).encode()


# --- gzip ---


def test_a_packed_body_is_read(client: httpx2.Client, user: str) -> None:
    answer = client.post("/v1/conversations", content=gzip.compress(body_of(user)), headers=PACKED)
    assert answer.status_code == 201, answer.text
    found = client.get(f"/v1/conversations/{answer.json()['conversation_id']}/messages").json()["items"]
    assert [message["content"] for message in found] == [message["content"] for message in LISBON]


def test_a_body_packed_or_not_is_the_same_request(client: httpx2.Client, user: str) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = client.post("/v1/conversations", content=gzip.compress(body_of(user)), headers={**PACKED, **key})
    again = client.post("/v1/conversations", content=body_of(user), headers={**JSON, **key})
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        pytest.param(gzip.compress(b"x" * (MOST + 1)), 413, "body_too_large", id="bomb"),
        pytest.param(b"not gzip", 400, "invalid_json", id="not gzip"),
        pytest.param(gzip.compress(b"{}")[:-4], 400, "invalid_json", id="cut off"),
        pytest.param(gzip.compress(b"{}") * 2, 400, "invalid_json", id="two members"),
        pytest.param(gzip.compress(b"{"), 400, "invalid_json", id="no JSON inside"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(
    service_on_sqlite: Running, content: bytes, status: int, code: str
) -> None:
    with service_on_sqlite.client() as client:
        answer = client.post("/v1/conversations", content=content, headers=PACKED)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_an_encoding_that_is_not_known_is_named(service_on_sqlite: Running) -> None:
    with service_on_sqlite.client() as client:
        headers = {**JSON, "Content-Encoding": "br"}
        answer = client.post("/v1/conversations", content=b"x", headers=headers)
    assert (answer.status_code, answer.headers["Accept-Encoding"]) == (415, "gzip")
    assert "gzip" in answer.json()["detail"]


def test_no_more_is_unpacked_than_may_be() -> None:
    packer = zlib.compressobj(wbits=31)
    packed = b"".join(packer.compress(bytes(2**20)) for _ in range(64)) + packer.flush()
    assert len(packed) < 2**17
    with pytest.raises(Problem) as raised:
        decompress(packed, 1000)
    assert raised.value.code == "body_too_large"
    assert decompress(gzip.compress(b"x" * 1000), 1000) == b"x" * 1000


# --- time ---


@pytest.mark.parametrize(
    ("received", "pace", "expected"),
    [(0, 500, 10), (1000, 500, 12), (500 * 100, 500, 30), (0, 0, 30)],
)
def test_a_body_must_keep_a_pace_and_end_in_time(received: int, pace: float, expected: float) -> None:
    limits = ServerSettings(receive_bytes_per_second=pace)
    assert seconds_for(received, limits) == expected
