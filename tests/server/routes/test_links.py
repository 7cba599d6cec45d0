"""The links of the OpenAPI document: they name what exists, and following them leads to it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest

from .running import Running

SAID = [{"role": "user", "content": "I live in Lisbon."}, {"role": "assistant", "content": "Noted!"}]
ORDER = ("get", "put", "patch", "post", "delete")
# What their example names is not there: a branch, a message to begin a branch at.
NAMES_SOMETHING_ELSE = {"branches.switch", "branches.create"}


class Link(NamedTuple):
    source: str
    target: str
    parameters: dict[str, str]


class Target(NamedTuple):
    method: str
    path: str
    operation: dict[str, Any]


def targets_in(document: dict[str, Any]) -> dict[str, Target]:
    return {
        operation["operationId"]: Target(method, path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def links_in(document: dict[str, Any]) -> Iterator[Link]:
    for name, target in targets_in(document).items():
        for response in target.operation["responses"].values():
            for link in response.get("links", {}).values():
                yield Link(name, link["operationId"], link["parameters"])


def test_every_link_names_an_operation_and_its_parameters(service_on_sqlite: Running) -> None:
    document = service_on_sqlite.document
    targets, links = targets_in(document), list(links_in(document))
    for link in links:
        given = {
            each["name"] for each in targets[link.target].operation["parameters"] if each["in"] == "path"
        }
        assert set(link.parameters) == given, link
    pairs = {(link.source, link.target) for link in links}
    assert {
        ("conversations.create", "conversations.get"),
        ("conversations.create", "messages.list"),
        ("conversations.create", "conversations.runs"),
        ("conversations.create", "conversations.delete"),
        ("chat.run", "messages.list"),
        ("memories.of", "entries.list"),
        ("entries.add", "entries.why"),
        ("entries.add", "memories.get"),
        ("runs.get", "conversations.get"),
    } <= pairs


def make(client: httpx2.Client, source: str, user: str) -> httpx2.Response:
    """A response of the operation that links start from."""
    owner = {"agent_id": "assistant", "user_id": user}
    if source == "chat.run":
        return client.post("/v1/chat", json={"message": "Hello", "user_id": user})
    if source == "conversations.create":
        return client.post("/v1/conversations", json={**owner, "messages": SAID})
    if source == "runs.get":
        made = client.post("/v1/conversations", json={**owner, "messages": SAID}).json()
        (run,) = client.get(f"/v1/conversations/{made['conversation_id']}/runs").json()["items"]
        return client.get(f"/v1/runs/{run['run_id']}")
    if source == "memories.create":
        return client.post("/v1/memories", json=owner)
    fact = {"content_type": "profile", "content_text": "The user lives in Lisbon."}
    added = client.post("/v1/entries", json={**owner, **fact})
    if source == "memories.of":
        return client.get("/v1/memories/of", params=owner)
    if source == "entries.create":
        memory_id = added.json()["entry"]["memory_id"]
        return client.post(f"/v1/memories/{memory_id}/entries", json={**fact, "content_text": "Likes tea."})
    return added


def follow(client: httpx2.Client, target: Target, link: Link, found: Any) -> httpx2.Response:
    path = target.path
    for name, expression in link.parameters.items():
        value = found
        for step in expression.removeprefix("$response.body#/").split("/"):
            value = value[step]
        path = path.replace(f"{{{name}}}", value)
    body = target.operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    arguments = {"json": body["example"]} if body else {}
    return client.request(target.method.upper(), path, **arguments)


SOURCES = (
    *("conversations.create", "chat.run", "runs.get", "memories.create", "memories.of"),
    *("entries.create", "entries.add"),
)


@pytest.mark.parametrize("source", SOURCES)
def test_following_a_link_leads_to_what_was_made(service_on_sqlite: Running, source: str) -> None:
    targets = targets_in(service_on_sqlite.document)
    links = [link for link in links_in(service_on_sqlite.document) if link.source == source]
    assert links
    with service_on_sqlite.client() as client:
        made = make(client, source, f"linked {source}")
        for link in sorted(links, key=lambda link: ORDER.index(targets[link.target].method)):
            if targets[link.target].method != "get":  # which may leave nothing for the next one
                made = make(client, source, f"linked {source} {link.target}")
            assert made.is_success, made.text
            followed = follow(client, targets[link.target], link, made.json())
            if targets[link.target].method in ("get", "delete"):
                assert followed.is_success, (link, followed.text)
            elif link.target not in NAMES_SOMETHING_ELSE:
                assert followed.status_code not in (404, 405), (link, followed.text)
            assert followed.status_code < 500
