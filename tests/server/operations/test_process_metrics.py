"""The metrics of several processes, as one scrape reads them."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from recollect.server.telemetry.metrics import Metrics
from recollect.server.telemetry.processes import Snapshot, render_metrics, snapshot
from recollect.testing.contract import in_event_loop


class Others:
    """The processes that a scrape does not reach."""

    def __init__(self, **metrics: Metrics) -> None:
        self._metrics = metrics

    async def exchange(self, own: Snapshot) -> Mapping[str, Snapshot]:
        return {"own": own, **{name: snapshot(each) for name, each in self._metrics.items()}}


@in_event_loop
async def test_each_process_has_series_of_its_own_and_what_is_common_appears_once() -> None:
    reached, other = Metrics(), Metrics()
    reached.count_request("GET", "/a", 200, 0.1)
    for _ in range(3):
        other.count_request("GET", "/a", 200, 0.1)
    reached.set_gauge("recollect_queue_depth", "Queue.", 7)
    other.set_gauge("recollect_queue_depth", "Queue.", 5)
    text = (await render_metrics(reached, Others(second=other))).decode()
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    found = {
        (sample.name, sample.labels.get("process"), sample.labels.get("le")): sample.value
        for family in families
        for sample in family.samples
    }
    assert found["recollect_requests_total", "own", None] == 1
    assert found["recollect_requests_total", "second", None] == 3
    assert found["recollect_request_seconds_bucket", "second", "0.1"] == 3
    assert found["recollect_queue_depth", None, None] == 7
    assert ("recollect_queue_depth", "second", None) not in found
    assert found["process_resident_memory_bytes", "second", None] > 0


@in_event_loop
async def test_a_service_of_one_process_has_no_such_label() -> None:
    metrics = Metrics()
    metrics.count_request("GET", "/a", 200, 0.1)
    metrics.set_process_gauge("recollect_database_connections", "Connections.", "state", {"used": 2})
    text = (await render_metrics(metrics, None)).decode()
    assert 'recollect_requests_total{method="GET",route="/a",status="200"} 1.0' in text
    assert 'recollect_database_connections{state="used"} 2.0' in text
    assert "process=" not in text
