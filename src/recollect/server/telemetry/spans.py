"""OpenTelemetry spans for requests and chat turns. Without `telemetry.traces` nothing is recorded.

Names follow OpenTelemetry's conventions for HTTP and for generative AI. No span contains message contents.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...extras import require_extra
from ..settings import TelemetrySettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

_tracer: "Tracer | None" = None
_SERVER_ERROR = 500


def start_traces(settings: TelemetrySettings, exporter: "SpanExporter | None" = None) -> Callable[[], None]:
    """Start recording spans if `settings.traces` is set. Call the returned function to flush and stop.

    Spans go to `exporter`, or by OTLP over HTTP to the endpoint of the settings.
    """
    global _tracer
    if not settings.traces:
        return lambda: None
    require_extra("otel", "opentelemetry.sdk.trace", "telemetry.traces")
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(
        resource=Resource.create({"service.name": settings.service_name}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter or _otlp(settings)))
    _tracer = provider.get_tracer("recollect")

    def stop() -> None:
        global _tracer
        _tracer = None
        provider.shutdown()

    return stop


def _otlp(settings: TelemetrySettings) -> "SpanExporter":
    require_extra("otel", "opentelemetry.exporter.otlp.proto.http", "telemetry.traces")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=settings.endpoint)


class RequestSpan:
    """The span of a request. Without tracing it does nothing."""

    def __init__(self, span: "Span | None" = None) -> None:
        self._span = span

    def set_response(self, method: str, route: str | None, status: int) -> None:
        """Record the route and the status of the response."""
        if self._span is None:
            return
        self._span.update_name(f"{method} {route}" if route else method)
        self._span.set_attribute("http.response.status_code", status)
        if route:
            self._span.set_attribute("http.route", route)
        if status >= _SERVER_ERROR:
            _fail(self._span, str(status))


@contextmanager
def request_span(method: str, scheme: str, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
    """Open a span around a request, as a child of the caller's trace if the headers name one."""
    tracer = _tracer
    if tracer is None:
        yield RequestSpan()
        return
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    span = tracer.start_span(
        method,
        context=TraceContextTextMapPropagator().extract(dict(headers)),
        kind=trace.SpanKind.SERVER,
        attributes={"http.request.method": method, "url.scheme": scheme},
    )
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        yield RequestSpan(span)


class ChatSpan:
    """The span of a chat turn. Without tracing it does nothing."""

    def __init__(self, span: "Span | None" = None) -> None:
        self._span = span

    def set_usage(self, input_tokens: int, output_tokens: int, model: str | None = None) -> None:
        """Record the tokens of the turn and the model that answered."""
        if self._span is None:
            return
        self._span.set_attribute("gen_ai.usage.input_tokens", input_tokens)
        self._span.set_attribute("gen_ai.usage.output_tokens", output_tokens)
        if model is not None:
            self._span.set_attribute("gen_ai.response.model", model)

    def set_failure(self, code: str) -> None:
        """Record that the turn failed, with its code."""
        if self._span is not None:
            _fail(self._span, code)


@contextmanager
def chat_span(
    *,
    agent: str,
    conversation_id: str,
    model: str | None = None,
    system: str = "openai",
    operation: str = "invoke_agent",
) -> Iterator[ChatSpan]:
    """Open a span around a chat turn. For a streamed turn it may end in another task than it began in."""
    tracer = _tracer
    if tracer is None:
        yield ChatSpan()
        return
    span = _start_chat(tracer, agent, conversation_id, model, system, operation)
    try:
        yield ChatSpan(span)
    except BaseException as error:
        _fail(span, type(error).__name__)
        raise
    finally:
        span.end()


def _start_chat(
    tracer: "Tracer", agent: str, conversation_id: str, model: str | None, system: str, operation: str
) -> "Span":
    from opentelemetry.trace import SpanKind

    attributes: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": system,
        "gen_ai.system": system,  # the older name of `gen_ai.provider.name`
        "gen_ai.agent.name": agent,
        "gen_ai.conversation.id": conversation_id,
    }
    if model is not None:
        attributes["gen_ai.request.model"] = model
    return tracer.start_span(f"{operation} {agent}", kind=SpanKind.CLIENT, attributes=attributes)


def _fail(span: "Span", kind: str) -> None:
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", kind)
