"""What is told of each request, over a real application and its answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from recollect.server.telemetry.logs import current_request_id
from recollect.server.telemetry.metrics import Metrics
from recollect.server.telemetry.middleware import TelemetryMiddleware
from recollect.testing.contract import in_event_loop

from .test_metrics import values
from .test_spans import traced

PLANTED = "planted-contents"


def _application(metrics: Metrics) -> FastAPI:
    app = FastAPI()

    @app.get("/things/{thing_id}")
    async def thing(thing_id: str, request: Request) -> dict[str, str | None]:
        request.state.caller = SimpleNamespace(tenant="acme", key_id="k1")
        return {"request_id": current_request_id(), "thing": thing_id}

    @app.get("/fails")
    async def fails() -> None:
        raise ZeroDivisionError(PLANTED)

    @app.get("/fails-late")
    async def fails_late() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"begun"
            raise ZeroDivisionError(PLANTED)

        return StreamingResponse(parts())

    @app.get("/streams")
    async def streams() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield str(values(metrics)["recollect_requests_in_flight",]).encode()

        return StreamingResponse(parts())

    app.add_middleware(TelemetryMiddleware, metrics=metrics)
    return app


async def _get(path: str, metrics: Metrics | None = None, **options: Any) -> httpx2.Response:
    # The error handler of Starlette goes around ours, and finds nothing to raise any more.
    transport = httpx2.ASGITransport(_application(metrics or Metrics()), raise_app_exceptions=True)
    async with httpx2.AsyncClient(transport=transport, base_url="http://here") as client:
        return await client.get(path, **options)


@in_event_loop
async def test_the_id_of_the_caller_is_returned_and_known_within() -> None:
    answer = await _get("/things/1", headers={"X-Request-Id": "mine-1"})
    assert answer.headers["X-Request-Id"] == "mine-1"
    assert answer.json()["request_id"] == "mine-1"


@in_event_loop
async def test_one_is_made_where_there_is_none_that_is_sane() -> None:
    for headers in ({}, {"X-Request-Id": "not sane"}):
        answer = await _get("/things/1", headers=headers)
        assert answer.headers["X-Request-Id"] == answer.json()["request_id"]
        assert len(answer.headers["X-Request-Id"]) == 32


@in_event_loop
async def test_a_line_says_who_asked_for_what_and_not_what_was_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "recollect.access"):
        await _get(f"/things/{PLANTED}?q={PLANTED}", headers={"X-Request-Id": "r1"})
    [line] = caplog.records
    told = vars(line)
    expected = {
        "method": "GET",
        "route": "/things/{thing_id}",
        "status": 200,
        "tenant": "acme",
        "key_id": "k1",
        "request_id": "r1",
    }
    assert {name: told[name] for name in expected} == expected
    assert told["duration_ms"] > 0
    assert PLANTED not in str(told)


@in_event_loop
async def test_requests_are_counted_by_the_template_of_their_route() -> None:
    metrics = Metrics()
    await _get("/things/1", metrics)
    await _get("/nowhere/at/all", metrics)
    found = values(metrics)
    assert found["recollect_requests_total", "GET", "/things/{thing_id}", "200"] == 1
    assert found["recollect_requests_total", "GET", "unmatched", "404"] == 1


@in_event_loop
async def test_a_stream_is_in_flight_until_it_ends() -> None:
    metrics = Metrics()
    assert (await _get("/streams", metrics)).text == "1.0"
    assert values(metrics)["recollect_requests_in_flight",] == 0


@in_event_loop
async def test_what_nobody_expected_is_a_problem_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    answer = await _get("/fails", headers={"X-Request-Id": "r1"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["code"], answer.json()["request_id"]) == ("internal_error", "r1")
    assert answer.headers["X-Request-Id"] == "r1"
    assert PLANTED not in answer.text + caplog.text + str([vars(record) for record in caplog.records])
    assert "ZeroDivisionError at" in str([vars(record) for record in caplog.records])


@in_event_loop
async def test_an_answer_that_had_begun_is_left_unfinished(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()  # the caller stays, and has no more to say
        return {}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/fails-late",
        "raw_path": b"/fails-late",
        "query_string": b"",
        "headers": [],
        "scheme": "http",
        "http_version": "1.1",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    await _application(Metrics())(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[1]["more_body"] is True, "it has no end, so the server closes the connection"
    assert PLANTED not in str([vars(record) for record in caplog.records])


@in_event_loop
async def test_a_request_is_a_span_with_its_route() -> None:
    with traced() as spans:
        await _get(f"/things/{PLANTED}")
    assert [span.name for span in spans] == ["GET /things/{thing_id}"]
    assert PLANTED not in spans[0].to_json()
