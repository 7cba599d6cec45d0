"""Pages of other origins: what browsers send for them changes nothing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.server.access.origins import is_foreign
from recollect.testing.contract import in_event_loop

from .running import Running
from .test_conversations import LISBON
from .test_gate import served

FOREIGN = (
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
)


def changing_routes(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, methods in document["paths"].items():
        for method in methods:
            if method not in ("get", "head"):
                yield method.upper(), path.replace("{", "").replace("}", "")


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_no_route_that_changes_something_answers_a_foreign_page(
    service_on_sqlite: Running, headers: dict[str, str]
) -> None:
    routes = list(changing_routes(service_on_sqlite.document))
    assert len(routes) > 20
    with service_on_sqlite.client() as client:
        for method, path in routes:
            answer = client.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin_request"), path
        assert client.get("/v1/whoami", headers=headers).status_code == 200, "the browser keeps the answer"


def test_every_route_that_changes_something_says_so(service_on_sqlite: Running) -> None:
    for path, methods in service_on_sqlite.document["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/v1/"):
                told = operation["responses"]["403"]["content"]["application/problem+json"]["examples"]
                assert ("cross_origin_request" in told) is (method != "get"), path


def test_a_foreign_page_cannot_close_a_conversation(service_on_sqlite: Running, user: str) -> None:
    with service_on_sqlite.client() as client:
        body = {"agent_id": "a", "user_id": user, "messages": LISBON}
        made = client.post("/v1/conversations", json=body).json()["conversation_id"]
        close = f"/v1/conversations/{made}/close"
        assert client.post(close, headers=FOREIGN[0]).status_code == 403
        assert client.get(f"/v1/conversations/{made}").json()["closed_at"] is None
        own = {"Origin": service_on_sqlite.url, "Sec-Fetch-Site": "same-origin"}
        assert client.post(close, headers=own).status_code == 200


def test_with_a_key_a_page_of_the_same_site_may_call(keyed_service: Running, tenant: str) -> None:
    with keyed_service.client(keyed_service.make_key("write", tenant)) as client:
        asked = {"agent_id": "a", "user_id": "u", "query": "x"}
        for headers, status in (
            ({"Sec-Fetch-Site": "same-site", "Origin": "https://app.example"}, 200),
            ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, 403),
            ({"Origin": "https://evil.example"}, 403),
            ({}, 200),
        ):
            answer = client.post("/v1/memories/search", json=asked, headers=headers)
            assert answer.status_code == status, headers


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"host": "here:1"}, False),
        ({"host": "here:1", "origin": "http://here:1"}, False),
        ({"host": "here", "origin": "https://HERE"}, False),
        ({"host": "here:1", "origin": "http://here:2"}, True),
        ({"host": "here", "origin": "https://here.evil.example"}, True),
        ({"host": "here", "origin": "http://[broken"}, True),
        ({"host": "", "origin": "null"}, True),
        ({"host": "inside", "origin": "https://outside", "sec-fetch-site": "same-origin"}, False),
        ({"host": "here", "sec-fetch-site": "none"}, False),
        ({"host": "here", "sec-fetch-site": "new-word"}, True),
    ],
)
def test_which_requests_are_of_foreign_pages(headers: dict[str, str], expected: bool) -> None:
    assert is_foreign(headers, is_open=True) is expected


@in_event_loop
async def test_an_origin_of_the_settings_may_call(tmp_path: Path) -> None:
    body = {"agent_id": "a", "user_id": "u", "messages": LISBON}
    page = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}
    other = {"Origin": "https://other.example", "Sec-Fetch-Site": "cross-site"}
    async with served(tmp_path, cors_origins=["https://page.example"]) as (_, client):
        assert (await client.post("/v1/conversations", json=body, headers=page)).status_code == 201
        assert (await client.post("/v1/conversations", json=body, headers=other)).status_code == 403
