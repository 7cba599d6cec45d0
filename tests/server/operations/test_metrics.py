"""Metrics, as Prometheus would read them."""

import asyncio
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from recollect.server.telemetry.metrics import Metrics
from recollect.testing.contract import in_event_loop


def values(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every value by its name and its labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_requests_are_counted_by_method_route_and_status() -> None:
    metrics = Metrics()
    metrics.count_request("GET", "/v1/runs/{run_id}", 200, 0.02)
    metrics.count_request("GET", "/v1/runs/{run_id}", 200, 3)
    metrics.count_request("GET", "/v1/runs/{run_id}", 404, 0.02)
    found = values(metrics)
    assert found["recollect_requests_total", "GET", "/v1/runs/{run_id}", "200"] == 2
    assert found["recollect_requests_total", "GET", "/v1/runs/{run_id}", "404"] == 1
    assert found["recollect_request_seconds_count", "GET", "/v1/runs/{run_id}"] == 3
    assert found["recollect_request_seconds_bucket", "0.025", "GET", "/v1/runs/{run_id}"] == 2


def test_invented_methods_do_not_make_metrics_grow() -> None:
    metrics = Metrics()
    for number in range(100):
        metrics.count_request(f"M{number}", "unmatched", 405, 0)
    assert values(metrics)["recollect_requests_total", "other", "unmatched", "405"] == 100


def test_what_is_open_is_counted_until_it_ends() -> None:
    metrics = Metrics()
    with metrics.in_flight(), metrics.open_stream():
        found = values(metrics)
    assert found["recollect_requests_in_flight",] == 1
    assert found["recollect_chat_streams_open",] == 1
    found = values(metrics)
    assert found["recollect_requests_in_flight",] == 0
    assert found["recollect_chat_streams_open",] == 0


def test_what_fails_is_not_counted_as_open_for_ever() -> None:
    metrics = Metrics()
    with pytest.raises(RuntimeError), metrics.in_flight():
        raise RuntimeError
    assert values(metrics)["recollect_requests_in_flight",] == 0


def test_tokens_are_counted() -> None:
    metrics = Metrics()
    metrics.count_tokens(7)
    metrics.count_tokens(1, 3)
    assert values(metrics)["recollect_model_tokens_total",] == 11


def test_the_longest_block_stays() -> None:
    metrics = Metrics()
    for seconds in (0.01, 0.3, 0.02):
        metrics.note_lag(seconds)
    found = values(metrics)
    assert found["recollect_event_loop_lag_seconds",] == 0.02
    assert found["recollect_event_loop_longest_block_seconds",] == 0.3


@in_event_loop
async def test_a_blocked_loop_is_seen() -> None:
    metrics = Metrics()
    watching = asyncio.create_task(metrics.watch_loop())
    await asyncio.sleep(0)  # it has begun to wait
    time.sleep(0.3)  # noqa: ASYNC251 - this is what must not be done
    await asyncio.sleep(0.01)  # it was due long before this
    watching.cancel()
    assert metrics.longest_block >= 0.1


def test_gathered_values_replace_those_before() -> None:
    metrics = Metrics()
    metrics.set_labelled_gauge("recollect_runs", "Runs.", "status", {"done": 3, "failed": 1})
    metrics.set_labelled_gauge("recollect_runs", "Runs.", "status", {"done": 4})
    metrics.set_gauge("recollect_queue_depth", "Queue.", 2)
    found = values(metrics)
    assert found["recollect_runs", "done"] == 4
    assert ("recollect_runs", "failed") not in found
    assert found["recollect_queue_depth",] == 2


def test_two_services_in_a_process_have_metrics_of_their_own() -> None:
    one, other = Metrics(), Metrics()
    one.count_tokens(5)
    assert values(other)["recollect_model_tokens_total",] == 0


def test_the_process_is_measured_too() -> None:
    assert values(Metrics())["process_resident_memory_bytes",] > 1_000_000


@in_event_loop
async def test_what_held_up_the_loop_before_it_served_is_forgotten() -> None:
    metrics = Metrics()
    watching = asyncio.create_task(metrics.watch_loop())
    await asyncio.sleep(0)  # it has begun to wait
    time.sleep(3)  # noqa: ASYNC251 - a block is what this is about
    metrics.reset_lag()
    await asyncio.sleep(0.05)
    assert metrics.longest_block < 2
    watching.cancel()
