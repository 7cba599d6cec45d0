"""What Prometheus reads: counts and durations, by route and not by user."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNMATCHED = "unmatched"
"""The route of a request that no route was found for, or that was refused before one was looked for."""

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_LOOK = 0.05  # seconds between two looks at the event loop


class Metrics:
    """The metrics of one service, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._requests = Counter(
            "recollect_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "recollect_request_seconds",
            "Seconds until a request was answered whole.",
            ["method", "route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge("recollect_requests_in_flight", "Requests being served.", registry=registry)
        self._streams = Gauge("recollect_chat_streams_open", "Chat streams being read.", registry=registry)
        self._tokens = Counter(
            "recollect_model_tokens", "Model tokens that chats and learning here used.", registry=registry
        )
        self._lag = Gauge(
            "recollect_event_loop_lag_seconds", "How late the event loop was last.", registry=registry
        )
        self._longest_block = Gauge(
            "recollect_event_loop_longest_block_seconds",
            "How late the event loop has been at most since the start.",
            registry=registry,
        )
        self._gathered: dict[str, Gauge] = {}
        self._watched_from = 0.0
        self.longest_block = 0.0
        """Seconds that the event loop has been late at most, while it was watched."""

    # --- counted as it happens ---

    @contextlib.contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request as being served."""
        with self._in_flight.track_inprogress():
            yield

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that has been answered."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    @contextlib.contextmanager
    def open_stream(self) -> Iterator[None]:
        """Count a chat stream as open."""
        with self._streams.track_inprogress():
            yield

    def count_tokens(self, *tokens: int) -> None:
        """Count what was used of a model."""
        self._tokens.inc(sum(tokens))

    # --- looked at now and then ---

    async def watch_loop(self) -> None:
        """Measure how late the running event loop is, until it is cancelled."""
        while True:
            due = time.monotonic() + _LOOK
            await asyncio.sleep(_LOOK)
            if due - _LOOK >= self._watched_from:
                self.saw_lag(max(0.0, time.monotonic() - due))

    def forget_lag(self) -> None:
        """Count from now on: what held up the loop before the first request held up nobody."""
        self.longest_block, self._watched_from = 0.0, time.monotonic()

    def saw_lag(self, seconds: float) -> None:
        """Note how late the event loop was."""
        self.longest_block = max(self.longest_block, seconds)
        self._lag.set(seconds)
        self._longest_block.set(self.longest_block)

    def set_gauges(self, name: str, help_text: str, label: str | None, values: Mapping[str, float]) -> None:
        """Tell values that were gathered; with a label each is one of its values, else there is but one."""
        gauge = self._gathered.get(name)
        if gauge is None:
            gauge = Gauge(name, help_text, [label] if label else [], registry=self.registry)
            self._gathered[name] = gauge
        if label is None:
            gauge.set(sum(values.values()))
            return
        gauge.clear()  # what is not there any more is not told any more
        for value, number in values.items():
            gauge.labels(value).set(number)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self.registry)
