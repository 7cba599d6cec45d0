"""Searches over many users: who may make them, what they find, and what the audit log says."""

import pytest

from .running import Running

PATHS = ("/v1/search/memories", "/v1/search/conversations")


def fill(service: Running, tenant: str) -> str:
    key = service.make_key("admin", tenant)
    with service.client(key) as client:
        for user, food in (("ada", "nuts"), ("bob", "eggs"), ("eve", "nuts")):
            said = [{"role": "user", "content": f"I am allergic to {food}."}]
            body = {"agent_id": "assistant", "user_id": user, "messages": said}
            assert client.post("/v1/conversations?wait=20", json=body).status_code == 201
    return key


def test_an_admin_finds_the_users(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(fill(keyed_service, tenant)) as client:
        for path in PATHS:
            found = client.post(path, json={"query": "Who is allergic to nuts?", "limit": 2}).json()
            assert {hit["user_id"] for hit in found["items"]} == {"ada", "eve"}, path
            some = client.post(path, json={"query": "allergic to nuts", "user_ids": ["ada", "bob"]}).json()
            assert {hit["user_id"] for hit in some["items"]} <= {"ada", "bob"}, path
            assert some["items"][0]["user_id"] == "ada", path
        entries = client.get("/v1/audit").json()["items"]
    searched = [entry["action"] for entry in entries if "search" in entry["action"]]
    assert searched == ["conversations.search_users"] * 2 + ["memories.search_users"] * 2


@pytest.mark.parametrize("path", PATHS)
def test_other_keys_may_not_and_that_is_audited(keyed_service: Running, tenant: str, path: str) -> None:
    admin = fill(keyed_service, tenant)
    for scope in ("read", "write"):
        with keyed_service.client(keyed_service.make_key(scope, tenant)) as client:
            for more in ({}, {"user_ids": ["ada"]}):
                answer = client.post(path, json={"query": "nuts", **more})
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    with keyed_service.client(admin) as client:
        statuses = [entry["status"] for entry in client.get("/v1/audit").json()["items"]]
    assert statuses.count(403) == 4


@pytest.mark.parametrize("path", PATHS)
def test_another_tenant_finds_nothing(keyed_service: Running, tenant: str, path: str) -> None:
    fill(keyed_service, tenant)
    with keyed_service.client(keyed_service.make_key("admin", f"{tenant}-other")) as client:
        for more in ({}, {"user_ids": ["ada"]}, {"agent_id": "assistant"}):
            assert client.post(path, json={"query": "nuts", **more}).json()["items"] == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "wrong", [{"limit": 1_000_000}, {"user_ids": []}, {"user_ids": "ada"}, {"user_ids": ["a"] * 1001}]
)
def test_arguments_that_make_no_sense_are_refused(
    keyed_service: Running, tenant: str, path: str, wrong: dict[str, object]
) -> None:
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as client:
        answer = client.post(path, json={"query": "nuts", **wrong})
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
