"""Threads of LangGraph over HTTP: listed, with their branches and steps, and of the default tenant alone."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from recollect.integrations.langgraph import Checkpointer

from ...integrations.langgraph.graphs import approval_graph, ask, chat_graph, config_of
from ...integrations.langgraph.test_storage import Cipher
from .running import Running


def run_thread(url: str | Path, thread_id: str, user_id: str, *texts: str, **options: Any) -> None:
    """A thread of so many turns."""
    with Checkpointer(url, create_tables=True, **options) as checkpointer:
        graph = chat_graph(checkpointer)
        for text in texts:
            graph.invoke(ask(text), config_of(thread_id, user_id=user_id))


def url_of(service: Running) -> str:
    return service.service.settings.database.url


def steps_of(client: httpx2.Client, thread_id: str, **more: Any) -> list[dict[str, Any]]:
    answer = client.get("/v1/threads/steps", params={"thread_id": thread_id, **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def test_threads_are_listed_page_by_page(client: httpx2.Client, service: Running, user: str) -> None:
    names = [f"{user} {number}/…" for number in range(5)]
    for name in names:
        run_thread(url_of(service), name, user, "hi")
    found, cursor = [], None
    while True:
        params = {"user_id": user, "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/threads", params=params).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [each["thread_id"] for each in found] == names[::-1]
    assert {(each["user_id"], each["checkpoint_count"]) for each in found} == {(user, 3)}
    assert client.get("/v1/threads", params={"cursor": "x"}).status_code == 422
    assert names[-1] in [each["thread_id"] for each in client.get("/v1/threads").json()["items"]]


def test_steps_have_what_they_added_and_forks_are_branches(
    client: httpx2.Client, service: Running, user: str
) -> None:
    thread_id = uuid4().hex
    with Checkpointer(url_of(service), create_tables=True) as checkpointer:
        graph = approval_graph(checkpointer)
        config = config_of(thread_id, user_id=user)
        graph.invoke(ask("a"), config)
        waiting = steps_of(client, thread_id)
        assert waiting[0]["interrupts"] == ['{"approve": "a"}']
        begin = graph.get_state(config)
        message_id = begin.values["messages"][0].id
        change = {"messages": [RemoveMessage(message_id), HumanMessage("b")]}
        graph.invoke(None, graph.update_state(begin.config, change, as_node="approve"))
        graph.update_state(begin.config, {"log": ["another way"]}, as_node="approve")
    outline = client.get("/v1/threads/branches", params={"thread_id": thread_id}).json()
    assert (outline["user_id"], outline["namespaces"]) == (user, [""])
    assert [(each["name"], each["from_branch"], each["from_step"]) for each in outline["items"]] == [
        ("main", None, None),
        ("fork-1", "main", 3),
    ]
    assert [each["is_current"] for each in outline["items"]] == [False, True]
    steps = steps_of(client, thread_id, branch="main")
    assert [each["position"] for each in steps] == [4, 3, 2, 1]
    assert [[item["content"] for item in each["items"]] for each in steps] == [["re: b"], ["b"], ["a"], []]
    assert (steps[0]["nodes"], steps[1]["removed"]) == (["answer"], 1)
    assert steps[0]["changes"] == [{"channel": "log", "text": '["answered b"]'}]
    (newest, *_) = steps_of(client, thread_id)
    assert newest["changes"] == [{"channel": "log", "text": '["another way"]'}]
    first = client.get("/v1/threads/steps", params={"thread_id": thread_id, "branch": "main", "limit": 3})
    rest = steps_of(client, thread_id, branch="main", cursor=first.json()["next_cursor"])
    assert [*first.json()["items"], *rest] == steps


@pytest.mark.parametrize("path", ["/v1/threads/branches", "/v1/threads/steps"])
def test_what_is_not_there_is_not_found(
    client: httpx2.Client, service: Running, user: str, path: str
) -> None:
    run_thread(url_of(service), user, user, "hi")
    assert client.get(path, params={"thread_id": uuid4().hex}).status_code == 404
    assert client.get(path, params={"thread_id": "x" * 2000}).status_code == 422
    assert client.get(path).status_code == 422
    if path.endswith("steps"):
        assert client.get(path, params={"thread_id": user, "branch": "none"}).status_code == 404
        assert client.get(path, params={"thread_id": user, "namespace": "none"}).status_code == 404
        assert client.get(path, params={"thread_id": user, "cursor": "x"}).status_code == 422


def test_an_encrypted_thread_is_listed_and_its_steps_say_so(
    client: httpx2.Client, service: Running, user: str
) -> None:
    serde = EncryptedSerializer(Cipher(), JsonPlusSerializer(allowed_msgpack_modules=None))
    run_thread(url_of(service), user, user, "a secret", serde=serde)
    steps = steps_of(client, user)
    assert [each["is_readable"] for each in steps] == [False] * 3
    assert "a secret" not in str(steps)


def test_only_the_default_tenant_sees_threads_and_only_admins_all(keyed_service: Running, user: str) -> None:
    run_thread(url_of(keyed_service), user, user, "hi")
    asked = {"thread_id": user}
    reader, other, admin = (
        keyed_service.client(keyed_service.make_key(scope, tenant))
        for scope, tenant in (("read", "default"), ("admin", "acme"), ("admin", "default"))
    )
    with reader, other, admin:
        assert reader.get("/v1/threads").status_code == 403
        assert len(reader.get("/v1/threads", params={"user_id": user}).json()["items"]) == 1
        assert reader.get("/v1/threads/steps", params=asked).status_code == 200
        assert admin.get("/v1/threads").status_code == 200
        assert other.get("/v1/threads").json() == {"items": [], "next_cursor": None}
        for path in ("/v1/threads/branches", "/v1/threads/steps"):
            assert other.get(path, params=asked).status_code == 404
    with keyed_service.client() as stranger:
        assert stranger.get("/v1/threads", params={"user_id": user}).status_code == 401
