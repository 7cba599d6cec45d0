"""The alert rules and the dashboard for Grafana: every query is valid, and asks for metrics that exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from recollect.server.processes.supervisor import supervisor_metrics
from recollect.testing.contract import in_event_loop

from .kit import TALK, serving

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
OF_PROMETHEUS = {"up"}
OWN = {"Host": "localhost"}  # without keys, only names of this machine are answered
VARIABLES = {"$__rate_interval": "5m", "$job": "recollect", "$instance": ".*"}


def queries() -> dict[str, str]:
    """Every query by its place."""
    rules = {rule["alert"]: rule["expr"] for rule in RULES}
    panels = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in PANELS
        for target in panel["targets"]
    }
    return rules | panels


def parsed(query: str) -> Any:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return promql_parser.parse(query)


def selectors(node: Any) -> Iterator[Any]:
    """All selectors in a query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector", "param"):
        if (part := getattr(node, name, None)) is not None:
            yield from selectors(part)
    for part in getattr(node, "args", None) or ():
        yield from selectors(part)


def names_in(query: str) -> set[str]:
    return {selector.name for selector in selectors(parsed(query))}


@pytest.mark.parametrize("place", queries())
def test_every_query_is_valid_and_names_a_metric(place: str) -> None:
    assert names_in(queries()[place]) - {None}


def test_a_query_that_is_not_valid_would_be_found() -> None:
    with pytest.raises(ValueError, match=r"unexpected|invalid|missing|unclosed"):
        parsed("sum by (rate(recollect_requests_total[5m])")


@in_event_loop
async def test_every_metric_that_they_name_exists(migrated_url: str) -> None:
    async with serving(migrated_url) as served:
        told = {"agent_id": "a", "user_id": "u", "messages": TALK}
        assert (await served.client.post("/v1/conversations", json=told, headers=OWN)).status_code == 201
        text = (await served.client.get("/metrics")).text
    there = set(re.findall(r"^(?:# TYPE )?([a-z_]+)[{ ]", text, re.MULTILINE))  # some have no series yet
    there |= {sample[0] for metric in supervisor_metrics(2, 0) for sample in metric[3]}
    named = set().union(*(names_in(query) for query in queries().values()))
    assert named - there - OF_PROMETHEUS == set()
    ours = {name for name in there if name.startswith("recollect_") and not name.endswith("_created")}
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in ours}
    assert families - {re.sub(r"_bucket$", "", name) for name in named} == set(), "not on the dashboard"


def test_every_alert_says_what_to_do() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES) > 8
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "action"}


def test_no_two_panels_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        squares = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & squares, panel["title"]
        taken |= squares
