"""Every route of the OpenAPI document, tried by everybody who may not use it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from recollect.testing.providers import ProviderServer

from .places import TALKER, Place, make_key, record, revoke_key, say
from .waiting import wait_until

NEED_ADMIN = {
    "audit.list",
    "users.list",
    "users.export",
    "users.erase",
    "database.vacuum",
    "conversations.search_users",
    "memories.search_users",
}
ADMIN_BEYOND_ONE_USER = {"conversations.list", "memories.list", "runs.list", "threads.list"}
READING_POSTS = {"conversations.search", "memories.search", "memories.recall", "memories.prompt"}
# The threads of LangGraph are the default tenant's, so the tenants here have none.
OF_A_THREAD = dict.fromkeys(("threads.branches", "threads.steps"), (404,))
EXPECTED = {
    # One's own user of the same name has a memory by then, or has none yet.
    "memories.of": (200, 404),
    "memories.create": (201, 409),
    "sessions.clear": (204,),
    "database.vacuum": (204,),
    **OF_A_THREAD,
}
OPEN = "conversations.open"
PLANTED = "planted-in-lisbon"
SOMEWHERE = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class Route:
    """A route as the document tells it."""

    name: str
    method: str
    path: str
    body: Any
    media_type: str
    query: dict[str, str]

    def ask(self, client: httpx2.Client, ids: dict[str, str], user: str = "ada") -> httpx2.Response:
        """Ask it about ids, with the body that the document gives as an example."""
        body = self.body
        if isinstance(body, dict):
            body = {**body, **({"user_id": user} if "user_id" in body else {})}
        query = {**self.query, **({"user_id": user} if "user_id" in self.query else {})}
        path, headers = self.path.format_map(ids), {"If-Match": "*"}
        content = {"content": body} if isinstance(body, str) else {"json": body}
        if isinstance(body, str):
            headers["Content-Type"] = self.media_type
        answer = client.request(self.method, path, params=query, headers=headers, **content)
        answer.read()
        return answer


def routes_of(document: dict[str, Any]) -> list[Route]:
    """All routes that need a key; those that take the most away come last."""
    found = [
        _route(path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation.get("security")
    ]
    return sorted(found, key=lambda route: (route.method == "DELETE", route.path.count("/") * -1))


def _route(path: str, method: str, operation: dict[str, Any]) -> Route:
    contents = operation.get("requestBody", {}).get("content", {})
    media_type, media = next(iter(contents.items()), ("", {}))
    needed = [each for each in operation.get("parameters", []) if each["in"] == "query" and each["required"]]
    owner = {"agent_id": TALKER, "user_id": "ada"}
    query = {each["name"]: owner.get(each["name"]) or each["example"] for each in needed}
    return Route(operation["operationId"], method.upper(), path, media.get("example"), media_type, query)


@dataclass(frozen=True)
class Theirs:
    """What a tenant has."""

    client: httpx2.Client
    tenant: str
    user: str
    ids: dict[str, str]

    def everything(self) -> tuple[Any, ...]:
        """All that they can see of their own."""
        asked = {
            "conversation": f"/v1/conversations/{self.ids['conversation_id']}",
            "messages": f"/v1/conversations/{self.ids['conversation_id']}/messages",
            "memory": f"/v1/memories/{self.ids['memory_id']}",
            "branches": f"/v1/conversations/{self.ids['conversation_id']}/branches",
            "settings": f"/v1/conversations/{self.ids['conversation_id']}/memory",
            "list": "/v1/conversations",
            "runs": "/v1/runs",
        }
        exported = self.client.get("/v1/users/export", params={"user_id": self.user}).json()
        exported.pop("exported_at", None)
        return exported, *(self.client.get(path).json() for path in asked.values())


@pytest.fixture
def theirs(place: Place, server: ProviderServer, tenant: str, user: str) -> Iterator[Theirs]:
    """A tenant with something of everything that has an id."""
    server.chat.reply_always(f"Noted: {PLANTED}.")
    with place.client(place.key("admin", tenant)) as client:
        made = record(client, user, f"I live in Lisbon, {PLANTED}.", f"My name is {PLANTED}.")
        conversation = made["conversation_id"]
        assert say(client, user, "Hello.", conversation_id=conversation).status_code == 200
        branch = client.post(f"/v1/conversations/{conversation}/branches", json={"from_turn": 1, "name": "b"})
        assert branch.status_code == 201, branch.text
        runs = wait_until(lambda: _learned(client, conversation))
        memory = runs[0]["memory_id"]
        entries = client.get(f"/v1/memories/{memory}/entries").json()["items"]
        messages = client.get(f"/v1/conversations/{conversation}/messages").json()["items"]
        ids = {
            "conversation_id": conversation,
            "memory_id": memory,
            "content_id": entries[0]["content_id"],
            "run_id": runs[0]["run_id"],
            "message_id": messages[0]["message_id"],
            "name": "main",
        }
        yield Theirs(client, tenant, user, ids)


def _learned(client: httpx2.Client, conversation: str) -> Any:
    runs = client.get(f"/v1/conversations/{conversation}/runs").json()["items"]
    return runs if runs and all(run["status"] == "done" for run in runs) else None


@pytest.fixture
def routes(place: Place) -> list[Route]:
    """All routes of the service that need a key."""
    found = routes_of(httpx2.get(f"{place.url}/openapi.json", timeout=None).json())
    assert len(found) > 40
    return found


def test_no_route_opens_to_a_key_that_is_none(place: Place, theirs: Theirs, routes: list[Route]) -> None:
    expired = make_key(place.database, theirs.tenant, "admin", timedelta(milliseconds=1))
    revoked = make_key(place.database, theirs.tenant, "admin")
    revoke_key(place.database, revoked)
    good = place.key("admin", theirs.tenant)
    wrong = f"{good[:-1]}{'0' if good[-1] != '0' else '1'}"
    strange = f"Basic {good}", "Bearer", f"Bearer {good} {good}", f"Bearer {good.upper()}", "Bearer \xe9"
    before = theirs.everything()
    headers = [{}, *({"Authorization": value} for value in strange)]
    headers += [{"Authorization": f"Bearer {key}"} for key in (expired, revoked, wrong)]
    with httpx2.Client(base_url=place.url, timeout=60) as client:
        for shown in headers:
            client.headers = httpx2.Headers(shown, encoding="latin-1")
            for route in routes:
                answer = route.ask(client, theirs.ids, theirs.user)
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), route.name
                assert answer.headers["WWW-Authenticate"].startswith("Bearer"), route.name
                assert PLANTED not in answer.text
    assert theirs.everything() == before


def test_a_key_does_what_its_scope_allows_and_no_more(
    place: Place, theirs: Theirs, routes: list[Route]
) -> None:
    before = theirs.everything()
    for scope in ("read", "write"):
        with place.client(place.key(scope, theirs.tenant)) as client:
            for route in routes:
                if not _is_allowed(route, scope):
                    answer = route.ask(client, theirs.ids, theirs.user)
                    told = (answer.status_code, answer.json()["code"])
                    assert told == (403, "forbidden"), (scope, route.name, answer.text)
                    assert PLANTED not in answer.text
    assert theirs.everything() == before
    with place.client(place.key("read", theirs.tenant)) as client:
        for route in routes:
            if _is_allowed(route, "read"):
                answer = route.ask(client, theirs.ids, theirs.user)
                assert answer.status_code in OF_A_THREAD.get(route.name, (200,)), route.name


def _is_allowed(route: Route, scope: str) -> bool:
    if route.name in NEED_ADMIN | ADMIN_BEYOND_ONE_USER:
        return False
    return scope == "write" or route.method == "GET" or route.name in READING_POSTS


def test_what_is_anothers_is_not_there(place: Place, theirs: Theirs, routes: list[Route]) -> None:
    before = theirs.everything()
    with place.client(place.key("admin", f"{theirs.tenant}-other")) as client:
        for route in routes:
            if "{" in route.path and route.name != OPEN:
                told = [route.ask(client, ids, theirs.user) for ids in (theirs.ids, _nobodys(theirs.ids))]
                answers = [(each.status_code, {**each.json(), "request_id": None}) for each in told]
                assert answers[0] == answers[1], route.name
                assert answers[0][0] == 404, (route.name, answers[0])
                assert answers[0][1]["code"] == "not_found", route.name
                assert _headers(told[0]) == _headers(told[1]), route.name
    assert theirs.everything() == before


def test_an_id_that_another_has_cannot_be_opened_and_tells_nothing(
    place: Place, theirs: Theirs, routes: list[Route]
) -> None:
    """Ids are the same for all tenants, so one of another's is taken. That is all that the answer says."""
    before = theirs.everything()
    (route,) = (route for route in routes if route.name == OPEN)
    with place.client(place.key("admin", f"{theirs.tenant}-other")) as client:
        answer = route.ask(client, theirs.ids, theirs.user)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        told = answer.text.replace(theirs.ids["conversation_id"], "")
        assert not [each for each in (*_ids_of(theirs), theirs.tenant, theirs.user, PLANTED) if each in told]
        assert client.get(f"/v1/conversations/{theirs.ids['conversation_id']}").status_code == 404
    assert theirs.everything() == before


def _nobodys(ids: dict[str, str]) -> dict[str, str]:
    return {name: value if name == "name" else SOMEWHERE for name, value in ids.items()}


def _headers(answer: httpx2.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id")}


def test_routes_without_an_id_show_nothing_of_anothers(
    place: Place, theirs: Theirs, routes: list[Route]
) -> None:
    before = theirs.everything()
    with place.client(place.key("admin", f"{theirs.tenant}-other")) as client:
        for route in routes:
            if "{" not in route.path:
                answer = route.ask(client, theirs.ids, theirs.user)
                assert answer.status_code in EXPECTED.get(route.name, (200, 201)), (route.name, answer.text)
                assert PLANTED not in answer.text, route.name
                assert not [each for each in _ids_of(theirs) if each in answer.text], route.name
        chat = {"message": "Hello.", "conversation_id": theirs.ids["conversation_id"]}
        for path in ("/v1/chat", "/v1/chat/stream"):
            assert client.post(path, json=chat).status_code == 404
        runs = client.get("/v1/runs", params={"conversation_id": theirs.ids["conversation_id"]}).json()
        assert runs["items"] == []
    with place.client(place.key("admin", f"{theirs.tenant}-third")) as client:
        for path in ("/v1/conversations", "/v1/memories", "/v1/runs", "/v1/audit"):
            assert client.get(path).json()["items"] == [], path
    assert theirs.everything() == before


def _ids_of(theirs: Theirs) -> list[str]:
    return [value for name, value in theirs.ids.items() if name != "name"]


def test_a_cursor_of_anothers_list_leads_to_nothing_of_theirs(place: Place, theirs: Theirs) -> None:
    record(theirs.client, theirs.user, PLANTED)
    with place.client(place.key("admin", f"{theirs.tenant}-other")) as client:
        for path in ("/v1/conversations", "/v1/memories", "/v1/runs", "/v1/audit"):
            cursor = theirs.client.get(path, params={"limit": 1}).json()["next_cursor"]
            if cursor is not None:
                answer = client.get(path, params={"cursor": cursor})
                assert answer.status_code in (200, 422), path
                assert answer.json().get("items", []) == [], path


def test_an_idempotency_key_of_anothers_gives_nothing_of_theirs(place: Place, theirs: Theirs) -> None:
    body = {"agent_id": TALKER, "user_id": theirs.user, "messages": [{"role": "user", "content": PLANTED}]}
    headers = {"Idempotency-Key": "shared"}
    first = theirs.client.post("/v1/conversations", json=body, headers=headers).json()
    with place.client(place.key("admin", f"{theirs.tenant}-other")) as client:
        other = client.post("/v1/conversations", json=body, headers=headers)
        assert other.status_code == 201
        assert "Idempotency-Replayed" not in other.headers
        assert other.json()["conversation_id"] != first["conversation_id"]
