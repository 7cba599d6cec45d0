"""Runs over HTTP."""

import httpx2

from .running import Running
from .test_conversations import save


def test_runs_are_listed_by_status_and_read(client: httpx2.Client, user: str, service: Running) -> None:
    identifier = save(client, user)["conversation_id"]
    service.learn()
    query = {"conversation_id": str(identifier), "status": "done"}
    (run,) = client.get("/v1/runs", params=query).json()["items"]
    assert [stage["stage"] for stage in run["stages"]] == ["modification", "update", "mind"]
    assert client.get(f"/v1/runs/{run['run_id']}").json() == run
    assert client.get("/v1/runs", params={**query, "status": "failed"}).json()["items"] == []


def test_pages_hold_each_run_once(client: httpx2.Client, user: str, service: Running) -> None:
    save(client, user)
    save(client, user)
    service.learn()
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = client.get("/v1/runs", params={"limit": 1, **cursor}).json()
        seen += [run["run_id"] for run in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert len(seen) == len(set(seen)) >= 2


def test_only_a_failed_run_can_be_tried_again(client: httpx2.Client, user: str, service: Running) -> None:
    identifier = save(client, user)["conversation_id"]
    service.learn()
    (run,) = client.get(f"/v1/conversations/{identifier}/runs").json()["items"]
    refused = client.post(f"/v1/runs/{run['run_id']}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert client.post("/v1/runs/nowhere/retry").status_code == 404


def test_coverage_counts_conversations(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("write", tenant)) as client:
        save(client, "ada")
        save(client, "ben")
        keyed_service.learn()
        told = client.get("/v1/coverage").json()
    assert told == {"remembered": 2, "pending": 0, "failed": 0, "share": 1.0}
