"""Who may use which route, and what the audit log says about it."""

from pathlib import Path

import pytest
from fastapi import Request

from recollect.errors import ConflictError, StorageError
from recollect.server.dependencies import audited_write, make_router
from recollect.sql.scripts import Script, Statement
from recollect.testing.contract import in_event_loop

from .running import Running
from .test_conversations import LISBON, save
from .test_gate import served

NEED_ADMIN = [
    ("GET", "/v1/conversations"),
    ("GET", "/v1/memories"),
    ("GET", "/v1/memories?user_id=ada"),
    ("GET", "/v1/runs"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/users"),
    ("GET", "/v1/users/export?user_id=ada"),
    ("DELETE", "/v1/users?user_id=ada"),
]


def test_what_spans_users_needs_an_admin(keyed_service: Running, tenant: str) -> None:
    key, admin = keyed_service.make_key("write", tenant), keyed_service.make_key("admin", tenant)
    with keyed_service.client(key) as client, keyed_service.client(admin) as allowed:
        for method, path in NEED_ADMIN:
            refused = client.request(method, path)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
            assert allowed.request(method, path).status_code == 200, path


def test_vacuum_needs_an_admin_and_the_receipt_says_what_remains(keyed_service: Running, tenant: str) -> None:
    key, admin = keyed_service.make_key("write", tenant), keyed_service.make_key("admin", tenant)
    with keyed_service.client(key) as client, keyed_service.client(admin) as allowed:
        save(client, "ada")
        receipt = allowed.delete("/v1/users", params={"user_id": "ada"}).json()
        assert "backups" in receipt["remains"]
        assert client.post("/v1/vacuum").status_code == 403
        assert allowed.post("/v1/vacuum").status_code == 204


def test_one_user_can_be_read_without_an_admin(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("write", tenant)) as client:
        identifier = save(client, "ada")["conversation_id"]
    owner = {"agent_id": "assistant", "user_id": "ada"}
    with keyed_service.client(keyed_service.make_key("read", tenant)) as client:
        assert len(client.get("/v1/conversations", params=owner).json()["items"]) == 1
        assert len(client.get("/v1/memories", params=owner).json()["items"]) == 1
        assert client.get("/v1/runs", params={"conversation_id": identifier}).status_code == 200
        assert client.post("/v1/conversations/search", json={"query": "x", **owner}).status_code == 200


def routes_of(service: Running) -> list[tuple[str, str, str]]:
    return [
        (method.upper(), path, operation["operationId"])
        for path, methods in service.document["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/v1/")
    ]


def filled(path: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def test_what_is_another_tenants_is_as_if_it_were_not_there(keyed_service: Running, tenant: str) -> None:
    """Every route with an id in its path, with the ids of another tenant and with ids of nobody."""
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as client:
        conversation = str(save(client, "ada")["conversation_id"])
        keyed_service.learn()
        (run,) = client.get(f"/v1/conversations/{conversation}/runs").json()["items"]
        entries = client.get(f"/v1/memories/{run['memory_id']}/entries").json()["items"]
    theirs = {
        "conversation_id": conversation,
        "memory_id": run["memory_id"],
        "content_id": entries[0]["content_id"],
        "run_id": run["run_id"],
        "message_id": "m",
        "name": "main",
    }
    bodies = {
        operation["operationId"]: operation["requestBody"]["content"]["application/json"]["example"]
        for methods in keyed_service.document["paths"].values()
        for operation in methods.values()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    with keyed_service.client(keyed_service.make_key("admin", f"{tenant}-other")) as client:
        for method, path, name in routes_of(keyed_service):
            # An id in use is a conflict for everybody who wants to open a conversation under it.
            if "{" in path and name != "conversations.open":
                told = []
                for values in (theirs, dict.fromkeys(theirs, "nowhere")):
                    headers = {"If-Match": "*"}
                    body = bodies.get(name)
                    answer = client.request(method, filled(path, values), json=body, headers=headers)
                    told.append({**answer.json(), "request_id": None})
                assert told[0] == told[1], name
                assert told[0]["code"] == "not_found", name


def test_lists_of_another_tenant_are_empty(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as client:
        save(client, "ada")
        keyed_service.learn()
    with keyed_service.client(keyed_service.make_key("admin", f"{tenant}-other")) as client:
        for path in ("/v1/conversations", "/v1/memories", "/v1/runs", "/v1/audit"):
            assert client.get(path).json()["items"] == [], path
        owner = {"agent_id": "assistant", "user_id": "ada"}
        for path in ("/v1/conversations/search", "/v1/memories/search"):
            assert client.post(path, json={"query": "Lisbon", **owner}).json()["items"] == [], path
        exported = client.get("/v1/users/export", params={"user_id": "ada"}).json()
        assert [name for name, found in exported.items() if isinstance(found, list) and found] == []
        assert (
            client.delete("/v1/users", params={"user_id": "ada"}).json()["counts"].get("conversations", 0)
            == 0
        )
    assert keyed_service.do(keyed_service.service.memory.for_tenant(tenant).coverage()).remembered == 1


def test_whoami_tells_tenant_scope_and_key(keyed_service: Running, tenant: str) -> None:
    key = keyed_service.make_key("read", tenant)
    with keyed_service.client(key) as client:
        told = client.get("/v1/whoami").json()
        assert (told["tenant"], told["scope"]) == (tenant, "read")
        assert told["key_id"] in key
        assert told["limits"] == dict.fromkeys(("requests_per_minute", "tokens_per_day", "retention_days"))


def test_changes_are_in_the_audit_log_and_nothing_personal_is(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as client:
        body = {"agent_id": "assistant", "user_id": "ada-the-user", "messages": LISBON}
        saved = client.post("/v1/conversations", json=body)
        identifier = saved.json()["conversation_id"]
        client.get(f"/v1/conversations/{identifier}")
        client.get("/v1/users/export", params={"user_id": "ada-the-user"})
        client.delete("/v1/conversations/nowhere")
        subject = client.delete("/v1/users", params={"user_id": "ada-the-user"}).json()["subject"]
        log = client.get("/v1/audit")
    told = [(each["action"], each["target"], each["status"]) for each in log.json()["items"]]
    assert told == [
        ("users.erase", f"user:{subject}", 200),
        ("conversations.delete", "other", 404),
        ("users.export", f"user:{subject}", 200),
        ("conversations.create", f"conversation:{identifier}", 201),
    ]
    assert "ada-the-user" not in log.text
    assert "Lisbon" not in log.text


@pytest.mark.parametrize(
    ("error", "status"),
    [(ConflictError("x"), 409), (StorageError("x"), 503), (ZeroDivisionError("x"), 500)],
    ids=["conflict", "storage", "unexpected"],
)
@in_event_loop
async def test_whatever_goes_wrong_is_in_the_audit_log_with_its_status(
    tmp_path: Path, error: Exception, status: int
) -> None:
    router = make_router("failing")

    @router.post("/v1/failing", operation_id="failing.run")
    async def fail() -> None:
        raise error

    async with served(tmp_path) as (app, client):
        app.include_router(router)
        assert (await client.post("/v1/failing")).status_code == status
        entries = (await client.get("/v1/audit")).json()["items"]
    assert [(entry["action"], entry["status"]) for entry in entries] == [("failing.run", status)]


@in_event_loop
async def test_an_error_is_told_also_where_it_cannot_be_written_down(tmp_path: Path) -> None:
    router = make_router("failing")

    @router.post("/v1/failing", operation_id="failing.run")
    async def fail(request: Request) -> None:
        audit = request.app.state.service.audit
        await audit._write(drop_log)
        raise ConflictError("it is not as you think")

    async with served(tmp_path) as (app, client):
        app.include_router(router)
        answer = await client.post("/v1/failing")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


@in_event_loop
async def test_a_conversation_in_a_file_is_stored_with_its_entry_or_not_at_all(tmp_path: Path) -> None:
    body = {"agent_id": "assistant", "user_id": "ada", "messages": LISBON}
    async with served(tmp_path) as (app, client):
        assert (await client.post("/v1/conversations", json=body)).status_code == 201
        await app.state.service.audit._write(drop_log)
        assert (await client.post("/v1/conversations", json=body)).status_code == 503
        stored = (await client.get("/v1/conversations")).json()["items"]
    assert len(stored) == 1


@in_event_loop
async def test_a_request_that_fails_after_its_write_has_two_entries(tmp_path: Path) -> None:
    router = make_router("failing")
    identifier = "0d6f5e0a-6f6c-4f6e-9d0e-0f6a9a1b2c3d"

    @router.post("/v1/failing", operation_id="failing.run")
    async def fail(request: Request) -> None:
        store = request.app.state.service.memory.for_tenant("default")
        async with audited_write(request, "conversation", identifier):
            await store.record_conversation("assistant", "ada", LISBON, conversation_id=identifier)
            raise ConflictError("too late")

    async with served(tmp_path) as (app, client):
        app.include_router(router)
        assert (await client.post("/v1/failing")).status_code == 409
        entries = (await client.get("/v1/audit")).json()["items"]
    assert [(entry["status"], entry["target"]) for entry in entries] == [
        (409, f"conversation:{identifier}"),
        (201, f"conversation:{identifier}"),
    ]
    assert len({entry["request_id"] for entry in entries}) == 1


def drop_log() -> Script[None]:
    yield Statement("DROP TABLE audit_log")


def test_the_audit_log_is_read_page_by_page(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("admin", tenant)) as client:
        for _ in range(3):
            save(client, "ada")
        first = client.get("/v1/audit", params={"limit": 2}).json()
        second = client.get("/v1/audit", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    seen = [entry["entry_id"] for entry in first["items"] + second["items"]]
    assert len(set(seen)) == 3
    assert seen == sorted(seen, reverse=True)
    assert second["next_cursor"] is None


def test_a_read_key_changes_nothing(keyed_service: Running, tenant: str) -> None:
    reading = {"conversations.search", "memories.search", "memories.recall", "memories.prompt"}
    with keyed_service.client(keyed_service.make_key("read", tenant)) as client:
        for method, path, name in routes_of(keyed_service):
            if method != "GET" and name not in reading and not name.startswith("chat."):
                operation = keyed_service.document["paths"][path][method.lower()]
                content = operation.get("requestBody", {}).get("content", {})
                body = content.get("application/json", {}).get("example")
                values = dict.fromkeys(
                    ("conversation_id", "memory_id", "content_id", "run_id", "message_id", "name"), "x"
                )
                query = {"user_id": "ada"} if name == "users.erase" else None
                sent = {"json": body}
                if "application/jsonl" in content:
                    kind = {"Content-Type": "application/jsonl"}
                    sent = {"content": content["application/jsonl"]["example"], "headers": kind}
                answer = client.request(method, filled(path, values), params=query, **sent)
                assert answer.status_code == 403, name


def test_without_any_key_everybody_is_the_admin_of_the_default_tenant(service_on_sqlite: Running) -> None:
    with service_on_sqlite.client() as client:
        told = client.get("/v1/whoami").json()
    assert (told["tenant"], told["scope"], told["key_id"]) == ("default", "admin", None)
