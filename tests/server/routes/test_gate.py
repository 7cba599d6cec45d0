"""What a request passes before it is read."""

import asyncio
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import FastAPI

from recollect.server.app import create_app
from recollect.server.settings import Settings
from recollect.server.transport.gate import Gate, is_own_host
from recollect.testing.contract import in_event_loop

from ..operations.test_metrics import values
from .running import Running, running
from .test_conversations import LISBON

BODY = b'{"query": "x", "agent_id": "a", "user_id": "u"}'


@asynccontextmanager
async def served(folder: Path, **server: Any) -> AsyncIterator[tuple[FastAPI, httpx2.AsyncClient]]:
    """A service in this process, and a client of it."""
    given = {
        "server": server,
        "database": {"url": str(folder / "recollect.db")},
        "memory": {"workers": 0, "embedder": "none"},
    }
    app = create_app(Settings.model_validate(given))
    transport = httpx2.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield app, client


# --- the host ---


@pytest.mark.parametrize(
    ("given", "is_own"),
    [
        ("localhost", True),
        ("LOCALHOST:8765", True),
        ("127.0.0.1:1", True),
        ("127.9.9.9", True),
        ("[::1]", True),
        ("[::1]:8765", True),
        ("memory.home:8765", True),
        ("memory.home", True),
        ("evil.example", False),
        ("evil.example:8765", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:80", False),
        ("192.0.2.1", False),
        ("0.0.0.0:8765", False),
        ("[2001:db8::1]:8765", False),
        ("", False),
    ],
)
def test_only_this_machine_and_the_configured_host_are_own(given: str, is_own: bool) -> None:
    assert is_own_host(given, "Memory.home") is is_own


def test_without_keys_a_name_that_was_made_to_lead_here_is_refused(service_on_sqlite: Running) -> None:
    with service_on_sqlite.client() as client:
        for method, path in (("GET", "/v1/whoami"), ("POST", "/v1/conversations"), ("DELETE", "/v1/users")):
            answer = client.request(method, path, headers={"Host": "evil.example"})
            assert (answer.status_code, answer.json()["code"]) == (421, "misdirected_request"), path
        port = client.base_url.port
        assert client.get("/v1/whoami", headers={"Host": f"localhost:{port}"}).status_code == 200
        assert client.get("/healthz", headers={"Host": "probe"}).status_code == 200


def test_who_has_a_key_may_come_by_any_name(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("read", tenant)) as client:
        assert client.get("/v1/whoami", headers={"Host": "memory.example"}).status_code == 200


def test_every_route_says_so(service_on_sqlite: Running) -> None:
    for path, methods in service_on_sqlite.document["paths"].items():
        for operation in methods.values():
            if path.startswith("/v1/"):
                told = operation["responses"]["421"]["content"]["application/problem+json"]["examples"]
                assert list(told) == ["misdirected_request"], path
                assert "overloaded" in operation["responses"]["503"]["description"], path


# --- the form ---


def test_a_body_without_a_content_type_is_refused_and_none_needs_none(service_on_sqlite: Running) -> None:
    with service_on_sqlite.client() as client:
        refused = client.post("/v1/memories/search", content=BODY)
        assert "content-type" not in refused.request.headers
        assert (refused.status_code, refused.json()["code"]) == (415, "unsupported_media_type")
        kind = {"Content-Type": "application/json"}
        assert client.post("/v1/memories/search", content=BODY, headers=kind).status_code == 200
        body = {"agent_id": "a", "user_id": "u", "messages": LISBON}
        saved = client.post("/v1/conversations", json=body).json()["conversation_id"]
        assert client.post(f"/v1/conversations/{saved}/close").status_code == 200


# --- how many at once ---


@in_event_loop
async def test_more_requests_than_can_be_served_hear_so_and_probes_are_answered(tmp_path: Path) -> None:
    async with served(tmp_path, max_concurrency=1) as (app, client):
        body = {"agent_id": "a", "user_id": "u", "messages": LISBON}
        assert (await client.post("/v1/conversations", json=body)).status_code == 201
        with locked(tmp_path / "recollect.db"):  # who writes now is served until this ends
            first = asyncio.create_task(client.post("/v1/conversations", json=body))
            while not gate_of(app).serving:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            refused = await client.get("/v1/whoami")
            assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
            assert refused.headers["Retry-After"] == "1"
            assert refused.headers["Content-Type"] == "application/problem+json"
            for probe in ("/healthz", "/metrics"):
                assert (await client.get(probe)).status_code == 200
        assert (await first).status_code == 201
        assert (await client.get("/v1/whoami")).status_code == 200, "the place is free again"
        assert values(app.state.service.metrics)["recollect_requests_total", "GET", "unmatched", "503"] == 1


@in_event_loop
async def test_bodies_that_arrive_are_counted_by_themselves(tmp_path: Path) -> None:
    is_sent = asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        await is_sent.wait()
        yield BODY

    async with served(tmp_path, max_concurrency=1) as (app, client):
        kind = {"Content-Type": "application/json"}
        assert (await client.get("/v1/whoami")).status_code == 200
        first = asyncio.create_task(client.post("/v1/memories/search", content=slow_body(), headers=kind))
        while not gate_of(app).receiving:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert (await client.get("/v1/whoami")).status_code == 200, "nothing is being served"
        refused = await client.post("/v1/memories/search", content=BODY, headers=kind)
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert refused.headers["Connection"] == "close", "its body is not read"
        is_sent.set()
        assert (await first).status_code == 200


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_requests_that_come_together_are_refused_beyond_the_limit(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All requests are there before the service reads the first one."""
    place: dict[str, Any] = {"url": str(tmp_path / "recollect.db")}
    if kind == "postgres":
        place = {"url": request.getfixturevalue("empty_postgres"), "create_tables": True}
    given = {
        "server": {"max_concurrency": 20, "max_wait_seconds": 60},
        "database": place,
        "memory": {"workers": 0, "embedder": "none"},
    }
    go_on = threading.Event()
    with running(Settings.model_validate(given)) as service, ExitStack() as opened:
        with service.client() as client:
            assert client.get("/v1/whoami").status_code == 200
        address = urlsplit(service.url)
        connections = [
            opened.enter_context(socket.create_connection((address.hostname, address.port), 60))
            for _ in range(300)
        ]
        service.loop.call_soon_threadsafe(go_on.wait, 60)  # the service does nothing until then
        for connection in connections:
            connection.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        go_on.set()
        answers = [read_all(connection) for connection in connections]
    served = [answer for answer in answers if answer.startswith(b"HTTP/1.1 200 ")]
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 503 ")]
    assert len(served) + len(refused) == 300
    assert len(served) >= 20
    assert refused
    assert all(b"retry-after: 1\r\n" in answer.lower() for answer in refused)
    assert all(b'"code": "overloaded"' in answer for answer in refused)


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(65536), b""))


@in_event_loop
async def test_probes_do_not_wait_for_the_requests_before_them(tmp_path: Path) -> None:
    async with served(tmp_path, max_wait_seconds=60) as (app, client):
        assert (await client.get("/v1/whoami")).status_code == 200
        passing = gate_of(app)._turnstile._passing
        async with AsyncExitStack() as busy:
            while not passing.locked():
                await busy.enter_async_context(passing)
            waiting = asyncio.create_task(client.get("/v1/whoami"))
            while not gate_of(app).serving:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            for probe in ("/healthz", "/readyz", "/metrics"):
                assert (await client.get(probe)).status_code == 200
            assert not waiting.done()
        assert (await waiting).status_code == 200


@in_event_loop
async def test_a_request_that_waits_too_long_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, max_wait_seconds=0.05) as (app, client):
        assert (await client.get("/v1/whoami")).status_code == 200
        gate = gate_of(app)
        for turnstile in (gate._arrivals, gate._turnstile):
            async with AsyncExitStack() as busy:
                while not turnstile._passing.locked():
                    await busy.enter_async_context(turnstile._passing)
                refused = await client.get("/v1/whoami")
            assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
            assert refused.headers["Retry-After"] == "1"
            assert not gate.serving, "its place is free again"
            assert (await client.get("/v1/whoami")).status_code == 200


def gate_of(app: FastAPI) -> Gate:
    """The gate among what is around the routes."""
    part: Any = app.middleware_stack
    while not isinstance(part, Gate):
        part = getattr(part, "app", None) or part._app
    return part


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Keep everybody else from writing."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


# --- the Host header ---


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /v1/whoami HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200),
        (b"GET /v1/whoami HTTP/1.0\r\n\r\n", 200),
    ],
)
def test_a_request_of_http_1_1_has_one_host(service_on_sqlite: Running, head: bytes, status: int) -> None:
    address = urlsplit(service_on_sqlite.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(head)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split(b" ", 2)[1] == str(status).encode()
    assert (b"invalid_request" in answer) is (status == 400)


# --- pages from elsewhere ---


@in_event_loop
async def test_a_page_that_may_call_may_read_the_headers_that_it_needs(tmp_path: Path) -> None:
    origin = {"Origin": "https://page.example"}
    async with served(tmp_path, cors_origins=["https://page.example"]) as (_, client):
        answer = await client.get("/v1/whoami", headers=origin)
    exposed = answer.headers["Access-Control-Expose-Headers"].lower().split(", ")
    needed = {"etag", "location", "retry-after", "idempotency-replayed", "x-request-id"}
    needed |= {"x-recollect-memory", "x-recollect-request-id"}
    assert set(exposed) == needed
