"""The provider server starts and stops, records what is asked, and fails on demand."""

import asyncio
import subprocess
import sys
import threading
import time

import openai
import pytest

from recollect.testing.contract import in_event_loop
from recollect.testing.providers import (
    CloseAfter,
    CloseBefore,
    Delay,
    Fault,
    Garble,
    Hold,
    ProviderServer,
    Refuse,
    Truncate,
)

from .clients import client_of

# --- running ---


@in_event_loop
async def test_servers_run_beside_each_other_until_their_block_ends() -> None:
    with ProviderServer() as one, ProviderServer(api_key="another") as other:
        assert one.base_url.startswith("http://127.0.0.1:")
        assert one.base_url.endswith("/v1")
        assert one.base_url != other.base_url
        async with client_of(one) as client, client_of(other) as other_client:
            await client.conversations.create()
            await other_client.conversations.create()
            assert (len(one.requests()), len(other.requests())) == (1, 1)
            assert one.open_connections == 1
    with pytest.raises(RuntimeError, match="not running"):
        _ = one.base_url
    one.stop()
    with one:
        assert one.requests("POST **"), "it can be asked afterwards, and started again"


@in_event_loop
async def test_stopping_waits_for_no_answer_that_is_held_back() -> None:
    never = threading.Event()
    with ProviderServer() as server:
        server.fail_next("POST **", Hold(never))
        client = client_of(server)
        asking = asyncio.create_task(client.conversations.create())
        await arrival(server)
    with pytest.raises(openai.APIError):
        await asking
    await client.close()


async def arrival(server: ProviderServer, count: int = 1) -> None:
    while len(server.requests()) < count:  # noqa: ASYNC110 - the server is of another thread
        await asyncio.sleep(0.002)


def test_what_is_missing_is_named_and_the_rest_of_the_testing_package_does_without() -> None:
    script = (
        "import sys; sys.modules['starlette'] = None\n"  # what Python takes for: not to be had
        "import recollect.testing\n"
        "import recollect.testing.providers"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "needs starlette and uvicorn: pip install starlette uvicorn" in ended.stderr
    loaded = "import sys, recollect.testing; sys.exit('starlette' in sys.modules or 'uvicorn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0


# --- recording ---


@in_event_loop
async def test_requests_are_recorded_without_secrets(server: ProviderServer) -> None:
    async with client_of(server, default_headers={"X-Tenant": "t", "X-Api-Key": "secret"}) as client:
        conversation = await client.conversations.create(metadata={"a": "b"})
        await client.conversations.items.list(conversation.id, limit=5)
    created, listed = server.requests()
    assert (created.method, created.path) == ("POST", "/v1/conversations")
    assert created.body == {"metadata": {"a": "b"}}
    assert created.headers["x-tenant"] == "t"
    assert {"authorization", "x-api-key"} & set(created.headers) == set()
    assert (listed.method, listed.query, listed.body) == ("GET", {"limit": "5"}, None)
    assert server.requests("GET /v1/conversations/*/items") == [listed]
    assert server.requests("* /v1/conversations") == [created]
    assert server.requests("GET /v1/*") == []
    assert server.requests("GET /v1/**") == [listed]
    server.reset()
    assert (server.requests(), server.conversations.ids()) == ([], [])


# --- faults ---

ERRORS: dict[str, tuple[Fault, type[Exception]]] = {
    "unauthorised": (Refuse(401), openai.AuthenticationError),
    "forbidden": (Refuse(403), openai.PermissionDeniedError),
    "limited": (Refuse(429, retry_after=3), openai.RateLimitError),
    "broken": (Refuse(500), openai.InternalServerError),
    "unavailable": (Refuse(503), openai.InternalServerError),
    "closed before": (CloseBefore(), openai.APIConnectionError),
}
LATE_ERRORS: dict[str, tuple[Fault, type[Exception]]] = {
    "broken": (Refuse(500, done=True), openai.InternalServerError),
    "closed after": (CloseAfter(), openai.APIConnectionError),
    "truncated": (Truncate(10), openai.APIConnectionError),
    "garbage": (Garble(), ValueError),
}


@pytest.mark.parametrize("name", ERRORS)
@in_event_loop
async def test_a_request_fails_and_nothing_was_done(server: ProviderServer, name: str) -> None:
    fault, error = ERRORS[name]
    server.fail_next("POST /v1/conversations", fault)
    async with client_of(server) as client:
        with pytest.raises(error):
            await client.conversations.create()
        assert server.conversations.ids() == []
        await client.conversations.create()
    assert len(server.conversations.ids()) == 1


@pytest.mark.parametrize("name", LATE_ERRORS)
@in_event_loop
async def test_a_request_fails_and_all_was_done(server: ProviderServer, name: str) -> None:
    fault, error = LATE_ERRORS[name]
    server.fail_next("POST /v1/conversations", fault)
    async with client_of(server) as client:
        with pytest.raises(error):
            await client.conversations.create()
    assert len(server.conversations.ids()) == 1


@in_event_loop
async def test_an_error_is_told_as_the_api_tells_it(server: ProviderServer) -> None:
    server.fail_next("* **", Refuse(429, "Slow down.", "rate_limit_exceeded", retry_after=1.5))
    async with client_of(server) as client:
        with pytest.raises(openai.RateLimitError, match="Slow down") as caught:
            await client.conversations.create()
    assert caught.value.response.headers["retry-after"] == "1.5"
    assert caught.value.body == {
        "message": "Slow down.",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    }


@in_event_loop
async def test_garbage_can_be_what_a_proxy_would_say(server: ProviderServer) -> None:
    server.fail_next("* **", Garble(b"<html>hello</html>", "text/html"))
    async with client_of(server) as client:
        assert str(await client.conversations.create()) == "<html>hello</html>"


@in_event_loop
async def test_faults_come_as_often_as_asked_after_as_many_as_asked(server: ProviderServer) -> None:
    server.fail_next("POST /v1/conversations", Refuse(500), times=2, after=1)
    server.fail_next("POST /v1/conversations", Refuse(429))
    outcomes = []
    async with client_of(server) as client:
        for _ in range(5):
            try:
                await client.conversations.create()
                outcomes.append(200)
            except openai.APIStatusError as error:
                outcomes.append(error.status_code)
    assert outcomes == [429, 500, 500, 200, 200], "a rule that does not strike lets the next one"


@in_event_loop
async def test_faults_compose(server: ProviderServer) -> None:
    server.fail_next("POST **", Delay(0.05), Refuse(500))
    async with client_of(server) as client:
        start = time.monotonic()
        with pytest.raises(openai.InternalServerError):
            await client.conversations.create()
    assert time.monotonic() - start >= 0.05


@in_event_loop
async def test_a_slow_answer_outlasts_the_patience_of_a_client(server: ProviderServer) -> None:
    server.fail_next("POST **", Delay(1))
    async with client_of(server, timeout=openai.Timeout(60, read=0.03)) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.conversations.create()
        while not server.conversations.ids():  # noqa: ASYNC110 - the server is in another thread
            await asyncio.sleep(0.01)
    assert len(server.conversations.ids()) == 1, "the server has not heard that nobody waits"


@in_event_loop
async def test_an_answer_is_held_until_it_is_let_go(server: ProviderServer) -> None:
    let_go = threading.Event()
    server.fail_next("POST **", Hold(let_go))
    async with client_of(server) as client:
        asking = asyncio.create_task(client.conversations.create())
        await arrival(server)
        assert server.conversations.ids() == []
        let_go.set()
        assert (await asking).id in server.conversations.ids()


@in_event_loop
async def test_the_clients_own_retries_come_through(server: ProviderServer) -> None:
    server.fail_next("POST **", Refuse(429, retry_after=0.01), times=2)
    async with client_of(server, max_retries=2) as client:
        await client.conversations.create()
    assert len(server.requests()) == 3
