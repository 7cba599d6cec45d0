"""One key sends more bodies at once than the service takes, a byte each: others are served all the same."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest

from recollect.testing.providers import ProviderServer

from .conftest import opened
from .places import Place, record, settings_for
from .waiting import wait_until

SLOW, SHARE = 1010, 500  # half of `server.max_concurrency`
SOON = 60  # seconds


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory, running_server: ProviderServer) -> Iterator[Place]:
    """A service that waits for a body for longer than a test takes."""
    folder = tmp_path_factory.mktemp("patient")
    server = {"receive_seconds": 600, "receive_bytes_per_second": 0}
    settings = settings_for(folder, running_server, server=server)
    with opened(str(folder / "recollect.db"), settings) as place:
        yield place


@contextmanager
def slow_bodies(place: Place, key: str, number: int) -> Iterator[list[socket.socket]]:
    """Connections on which a request has come but for its body, of which there is one byte."""
    address = urlsplit(place.url)
    head = (
        "POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {key}\r\nContent-Length: 1000\r\n\r\n{{"
    )
    with ExitStack() as held:
        connections = []
        for _ in range(number):
            connection = socket.create_connection((address.hostname, address.port), timeout=SOON)
            connections.append(held.enter_context(connection))
            connection.sendall(head.encode())
        yield connections


def answers_of(connections: list[socket.socket], number: int) -> list[bytes]:
    """What the first to be answered hear."""
    waiting, answers = select.poll(), []
    by_number = {connection.fileno(): connection for connection in connections}
    for connection in connections:
        waiting.register(connection, select.POLLIN)
    while len(answers) < number:
        ready = waiting.poll(SOON * 1000)
        assert ready, f"only {len(answers)} were answered"
        for descriptor, _ in ready:
            waiting.unregister(descriptor)
            answers.append(b"".join(iter(lambda: by_number[descriptor].recv(65536), b"")))  # noqa: B023
    return answers


def test_a_key_that_sends_slowly_shuts_nobody_out(patient: Place, user: str) -> None:
    slow = patient.key("write", "slow")
    with slow_bodies(patient, slow, SLOW) as connections:
        refused = answers_of(connections, SLOW - SHARE)
        assert all(answer.startswith(b"HTTP/1.1 429 ") for answer in refused)
        assert all(b'"concurrency_limited"' in answer for answer in refused)
        with patient.client() as other:
            record(other, user)
            assert other.get("/v1/whoami").status_code == 200
        with patient.client(slow) as same:
            assert same.get("/v1/whoami").status_code == 200, (
                "what is arriving takes nothing from what is served"
            )
            again = same.post("/v1/conversations", json={})
            assert (again.status_code, again.headers["Retry-After"]) == (429, "1")
    with patient.client(slow) as same:
        wait_until(lambda: same.post("/v1/conversations", json={}).status_code == 422)


def test_keys_of_one_tenant_together_leave_room_for_others(patient: Place, user: str) -> None:
    keys = [patient.key("write", "many"), patient.key("admin", "many")]
    with slow_bodies(patient, keys[0], SHARE) as one, slow_bodies(patient, keys[1], SHARE) as other:
        refused = answers_of(one + other, 2 * SHARE - 800)
        assert all(b"A tenant may run at most" in answer for answer in refused)
        with patient.client() as client:
            record(client, user)
