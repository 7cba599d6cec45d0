"""Spans, through the real SDK: to its exporter in memory, and once over HTTP."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from recollect.server.settings import TelemetrySettings
from recollect.server.telemetry.spans import chat_span, request_span, start_traces
from recollect.testing.contract import in_event_loop

PLANTED = "planted-contents"
_PARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


@contextmanager
def traced() -> Iterator[list[ReadableSpan]]:
    """The spans that end within, after it."""
    exporter, found = InMemorySpanExporter(), []
    stop = start_traces(TelemetrySettings(traces=True), exporter)
    try:
        yield found
    finally:
        stop()
        found += exporter.get_finished_spans()


def test_a_request_is_a_server_span_in_the_trace_of_its_caller() -> None:
    with traced() as spans, request_span("GET", "http", _PARENT) as span:
        span.set_response("GET", "/v1/runs/{run_id}", 200)
    [found] = spans
    assert found.name == "GET /v1/runs/{run_id}"
    assert found.kind is SpanKind.SERVER
    assert found.context is not None
    assert f"{found.context.trace_id:x}" == "af7651916cd43dd8448eb211c80319c"
    assert dict(found.attributes or {}) == {
        "http.request.method": "GET",
        "url.scheme": "http",
        "http.response.status_code": 200,
        "http.route": "/v1/runs/{run_id}",
    }
    assert found.resource.attributes["service.name"] == "recollect"


@pytest.mark.parametrize(("status", "failed"), [(404, False), (500, True), (503, True)])
def test_a_fault_of_ours_is_an_error_and_one_of_the_caller_is_not(status: int, failed: bool) -> None:
    with traced() as spans, request_span("GET", "http", {}) as span:
        span.set_response("GET", None, status)
    assert (spans[0].status.status_code is StatusCode.ERROR) is failed
    assert spans[0].name == "GET"


def test_a_chat_turn_is_told_without_what_was_said() -> None:
    with (
        traced() as spans,
        request_span("POST", "http", {}),
        chat_span(agent="assistant", conversation_id="c-1", model="gpt-test") as turn,
    ):
        turn.set_usage(7, 3, "gpt-test-1")
    chat, request = spans
    assert chat.name == "invoke_agent assistant"
    assert chat.parent is not None
    assert request.context is not None
    assert chat.parent.span_id == request.context.span_id
    assert dict(chat.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "openai",
        "gen_ai.system": "openai",
        "gen_ai.agent.name": "assistant",
        "gen_ai.conversation.id": "c-1",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.response.model": "gpt-test-1",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
    }


def test_a_turn_that_raises_has_the_type_of_the_error_and_not_its_words() -> None:
    with traced() as spans:
        with pytest.raises(ValueError, match=PLANTED), chat_span(agent="a", conversation_id="c"):
            raise ValueError(PLANTED)
        with chat_span(agent="a", conversation_id="c") as turn:
            turn.set_failure("model_unavailable")
    raised, failed = spans
    assert (raised.attributes or {})["error.type"] == "ValueError"
    assert (failed.attributes or {})["error.type"] == "model_unavailable"
    assert PLANTED not in "".join(span.to_json() for span in spans)


@in_event_loop
async def test_a_stream_may_be_left_in_another_task_than_it_was_entered_in() -> None:
    span = chat_span(agent="a", conversation_id="c")

    async def enter() -> None:
        span.__enter__()

    async def leave() -> None:
        span.__exit__(None, None, None)

    with traced() as spans:
        span = chat_span(agent="a", conversation_id="c")
        await asyncio.create_task(enter())
        await asyncio.create_task(leave())
    assert len(spans) == 1


def test_without_traces_nothing_is_made() -> None:
    exporter = InMemorySpanExporter()
    start_traces(TelemetrySettings(), exporter)()
    with request_span("GET", "http", {}) as span, chat_span(agent="a", conversation_id="c") as turn:
        span.set_response("GET", "/", 500)
        turn.set_usage(1, 1)
        turn.set_failure("x")
    assert exporter.get_finished_spans() == ()


def test_spans_arrive_at_a_receiver_over_http() -> None:
    received: list[bytes] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Tests are quiet."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/traces"
        stop = start_traces(TelemetrySettings(traces=True, endpoint=endpoint, service_name="ours"))
        with request_span("GET", "http", {}) as span:
            span.set_response("GET", "/healthz", 200)
        stop()
        server.shutdown()
        thread.join()
    [sent] = ExportTraceServiceRequest.FromString(received[0]).resource_spans
    assert [each.name for scope in sent.scope_spans for each in scope.spans] == ["GET /healthz"]
    assert "ours" in {attribute.value.string_value for attribute in sent.resource.attributes}
