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
    assert told == {
        "remembered": 2,
        "pending": 0,
        "failed": 0,
        "partial": 0,
        "share": 1.0,
        "behind_seconds": 0.0,
    }


def test_the_newest_runs_come_first_if_that_is_asked_for(
    client: httpx2.Client, user: str, service: Running
) -> None:
    saved = [str(save(client, user)["conversation_id"]) for _ in range(3)]
    service.learn()
    newest = client.get("/v1/runs", params={"order": "newest", "limit": 3}).json()["items"]
    assert [run["conversation_id"] for run in newest] == saved[::-1]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while len(seen) < 3:
        query = {"order": "newest", "status": "done", "limit": 1, **cursor}
        page = client.get("/v1/runs", params=query).json()
        seen += [run["conversation_id"] for run in page["items"]]
        cursor = {"cursor": page["next_cursor"]}
    assert seen == saved[::-1]
    assert client.get("/v1/runs", params={"order": "newest", "status": "failed"}).json()["items"] == []
    one = {"order": "newest", "conversation_id": saved[0]}
    (run,) = client.get("/v1/runs", params=one).json()["items"]
    assert run["conversation_id"] == saved[0]


def test_a_cursor_of_one_order_is_refused_in_the_other(
    client: httpx2.Client, user: str, service: Running
) -> None:
    save(client, user)
    save(client, user)
    service.learn()
    cursor = client.get("/v1/runs", params={"order": "newest", "limit": 1}).json()["next_cursor"]
    answer = client.get("/v1/runs", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "query.cursor")
