"""Metrics for Prometheus: counts and durations by route. No label names a tenant or a user."""

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
"""The route label of a request that matched no route, or was refused before routing."""

_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
_LAG_INTERVAL = 0.05  # seconds between two measurements of the event loop's lag


class Metrics:
    """The metrics of one service, in their own registries."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        """The metrics of this process."""
        self.shared = CollectorRegistry()
        """The metrics that are the same in every process of a service, such as the length of the queue."""
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._requests = Counter(
            "recollect_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "recollect_request_seconds",
            "Seconds until the whole response was sent.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._in_flight = Gauge("recollect_requests_in_flight", "Requests being served.", registry=registry)
        self._streams = Gauge("recollect_chat_streams_open", "Open chat streams.", registry=registry)
        self._tokens = Counter(
            "recollect_model_tokens",
            "Model tokens used by chat and learning in this process.",
            registry=registry,
        )
        self._proxied_calls = Counter(
            "recollect_proxy_calls",
            "Calls to model providers by what became of their memories.",
            ["memory"],
            registry=registry,
        )
        self._proxied_turns = Counter(
            "recollect_proxy_turns",
            "Proxied turns by how they were recorded.",
            ["outcome"],
            registry=registry,
        )
        self._lag = Gauge(
            "recollect_event_loop_lag_seconds", "Lag of the event loop, last measurement.", registry=registry
        )
        self._longest_block = Gauge(
            "recollect_event_loop_longest_block_seconds",
            "Longest lag of the event loop since the start.",
            registry=registry,
        )
        self._gauges: dict[str, Gauge] = {}
        self._watched_from = 0.0
        self.longest_block = 0.0
        """The longest measured lag of the event loop, in seconds."""

    # --- counted per request ---

    @contextlib.contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request as being served while the block runs."""
        with self._in_flight.track_inprogress():
            yield

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    @contextlib.contextmanager
    def open_stream(self) -> Iterator[None]:
        """Count a chat stream as open while the block runs."""
        with self._streams.track_inprogress():
            yield

    def count_tokens(self, *tokens: int) -> None:
        """Count model tokens."""
        self._tokens.inc(sum(tokens))

    def count_proxied_call(self, memory: str) -> None:
        """Count a call to a model provider: its memories were added, none, slow, failed or off."""
        self._proxied_calls.labels(memory).inc()

    def count_proxied_turn(self, outcome: str) -> None:
        """Count a proxied turn: it was recorded, known already, refused, failed or dropped."""
        self._proxied_turns.labels(outcome).inc()

    # --- measured at intervals ---

    async def watch_loop(self) -> None:
        """Measure the lag of the running event loop until cancelled."""
        while True:
            due = time.monotonic() + _LAG_INTERVAL
            await asyncio.sleep(_LAG_INTERVAL)
            if due - _LAG_INTERVAL >= self._watched_from:
                self.note_lag(max(0.0, time.monotonic() - due))

    def reset_lag(self) -> None:
        """Start measuring anew: lag during startup delays no request and does not count."""
        self.longest_block, self._watched_from = 0.0, time.monotonic()

    def note_lag(self, seconds: float) -> None:
        """Record one measurement of the event loop's lag."""
        self.longest_block = max(self.longest_block, seconds)
        self._lag.set(seconds)
        self._longest_block.set(self.longest_block)

    def set_gauge(self, name: str, help_text: str, value: float) -> None:
        """Set a shared gauge without labels; the first call registers it."""
        self._gauge(self.shared, name, help_text).set(value)

    def set_labelled_gauge(self, name: str, help_text: str, label: str, values: Mapping[str, float]) -> None:
        """Set a shared gauge for each value of its label; values that are no longer given disappear."""
        _set_values(self._gauge(self.shared, name, help_text, label), values)

    def set_process_gauge(self, name: str, help_text: str, label: str, values: Mapping[str, float]) -> None:
        """Set a gauge of this process for each value of its label."""
        _set_values(self._gauge(self.registry, name, help_text, label), values)

    def _gauge(self, registry: CollectorRegistry, name: str, help_text: str, *labels: str) -> Gauge:
        if name not in self._gauges:
            self._gauges[name] = Gauge(name, help_text, labels, registry=registry)
        return self._gauges[name]

    def render(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry) + generate_latest(self.shared)


def _set_values(gauge: Gauge, values: Mapping[str, float]) -> None:
    gauge.clear()
    for value, number in values.items():
        gauge.labels(value).set(number)
