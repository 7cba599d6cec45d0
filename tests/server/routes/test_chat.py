"""Chats over HTTP: sent again, failed, counted and written down."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, get_args

import httpx2
import jsonschema_rs
import pytest

from recollect.providers.errors import DETAILS, ChatFailedError
from recollect.server.error_handlers import problem_from, turn_code
from recollect.server.schemas.chat import EVENTS, FailedCode
from recollect.server.settings import Settings
from recollect.testing.providers import Hold, ProviderServer, Refuse, Reply

from ..operations.kit import execute
from ..operations.test_metrics import values
from .running import Running, running
from .test_examples import strict

COMPLETIONS = "POST /v1/chat/completions"
ENOUGH = 1_000_000  # tokens a day
PATHS = ("/v1/chat", "/v1/chat/stream")


@pytest.fixture(scope="module")
def talking(tmp_path_factory: pytest.TempPathFactory, running_server: ProviderServer) -> Iterator[Running]:
    """A service that needs keys, whose agent has a model."""
    given = {
        "database": {"url": str(tmp_path_factory.mktemp("talking") / "recollect.db")},
        "memory": {"embedder": "none", "workers": 0, "own_process": False},
        "chat": {
            "model": "gpt-test",
            "base_url": running_server.base_url,
            "api_key": running_server.api_key,
            "lock_seconds": 0.2,
        },
        "limits": {"tokens_per_day": ENOUGH},
    }
    with running(Settings.model_validate(given)) as service:
        service.make_key("read")
        yield service


@pytest.fixture
def client(talking: Running, tenant: str) -> Iterator[httpx2.Client]:
    with talking.client(talking.make_key("admin", tenant)) as client:
        yield client


def say(client: httpx2.Client, path: str, key: str | None = None, **more: Any) -> httpx2.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"user_id": "ada", "message": "Hello.", **more}
    return client.post(path, json=body, headers=headers)


def events_of(answer: httpx2.Response) -> list[tuple[str, dict[str, Any]]]:
    assert answer.headers["Content-Type"].startswith("text/event-stream"), answer.text
    fields = [line.partition(": ")[::2] for line in answer.text.splitlines()]
    kinds = [value for name, value in fields if name == "event"]
    told = [json.loads(value) for name, value in fields if name == "data"]
    return list(zip(kinds, told, strict=True))


def outcome(path: str, answer: httpx2.Response) -> dict[str, Any]:
    """The whole answer of a turn, however it was told."""
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json() if path == PATHS[0] else events_of(answer)[-1][1]
    return told


def wait_until(look: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def audited(client: httpx2.Client) -> list[tuple[str, str | None, int]]:
    found = client.get("/v1/audit").json()["items"]
    return [(entry["action"], entry["target"], entry["status"]) for entry in found]


# --- sent again ---


@pytest.mark.parametrize("path", PATHS)
def test_the_first_answer_is_given_again_when_it_could_not_be_made_any_more(
    talking: Running, client: httpx2.Client, server: ProviderServer, tenant: str, path: str
) -> None:
    server.chat.reply("Hello, Ada.")
    first = outcome(path, say(client, path, "k"))
    client.post(f"/v1/conversations/{first['conversation_id']}/close")
    talking.do(talking.service.budget.spent(tenant, ENOUGH))
    again = say(client, path, "k")
    assert outcome(path, again) == first
    assert again.headers["Idempotency-Replayed"] == "true"
    refused = say(client, path, "other")
    assert refused.json()["code"] == "token_budget_exceeded"
    assert len(server.requests(COMPLETIONS)) == 1


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_that_a_dead_process_had_not_noted_is_given_too(
    talking: Running, client: httpx2.Client, server: ProviderServer, path: str
) -> None:
    server.chat.reply("Hello, Ada.")
    first = outcome(path, say(client, path, "k"))
    client.post(f"/v1/conversations/{first['conversation_id']}/close")
    talking.do(execute(talking.service, "UPDATE idempotency_keys SET made = NULL, leased_until = 0"))
    assert outcome(path, say(client, path, "k")) == first
    assert len(server.requests(COMPLETIONS)) == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_turn_that_failed_is_not_run_again_where_no_new_one_could_be(
    talking: Running, client: httpx2.Client, server: ProviderServer, tenant: str, path: str
) -> None:
    server.chat.reply("Let us begin.", "Never said.")
    conversation = say(client, PATHS[0]).json()["conversation_id"]
    server.fail_next(COMPLETIONS, Refuse(400))
    say(client, path, "k", conversation_id=conversation)
    client.post(f"/v1/conversations/{conversation}/close")
    closed = say(client, path, "k", conversation_id=conversation)
    assert (closed.status_code, closed.json()["code"]) == (409, "conversation_closed")
    talking.do(talking.service.budget.spent(tenant, ENOUGH))
    spent = say(client, path, "k", conversation_id=conversation)
    assert (spent.status_code, spent.json()["code"]) == (429, "token_budget_exceeded")


def test_a_stream_whose_turn_is_running_is_refused_before_it_begins(
    client: httpx2.Client, server: ProviderServer
) -> None:
    let_go = threading.Event()
    server.chat.reply("Hello, Ada.")
    server.fail_next(COMPLETIONS, Hold(let_go))
    first: list[httpx2.Response] = []
    thread = threading.Thread(target=lambda: first.append(say(client, PATHS[1], "k")))
    thread.start()
    try:
        wait_until(lambda: server.requests(COMPLETIONS))
        again = say(client, PATHS[1], "k")
        assert (again.status_code, again.json()["code"]) == (409, "idempotency_in_progress")
        assert again.headers["Retry-After"] == "1"
    finally:
        let_go.set()
        thread.join()
    assert outcome(PATHS[1], say(client, PATHS[1], "k")) == outcome(PATHS[1], first[0])


# --- what failed ---


def test_a_failure_has_one_code_in_a_stream_and_in_a_problem() -> None:
    for code in DETAILS:
        assert turn_code(code) == problem_from(ChatFailedError(code)).code
        assert turn_code(code) in get_args(FailedCode)
    for code in ("conversation_busy", "conflict", "validation_failed"):
        assert turn_code(code) == code


@pytest.mark.parametrize("fault", [Refuse(400), Reply("")], ids=["refused", "empty"])
def test_a_model_that_fails_is_told_alike_by_both(
    client: httpx2.Client, server: ProviderServer, fault: Any
) -> None:
    told = []
    for path in PATHS:
        server.chat.reply(fault if isinstance(fault, Reply) else "Never said.")
        if isinstance(fault, Refuse):
            server.fail_next(COMPLETIONS, fault)
        answer = say(client, path)
        failed = answer.json() if path == PATHS[0] else events_of(answer)[-1][1]
        told.append((failed["code"], failed["detail"]))
        server.reset()
    assert told[0] == told[1]
    assert told[0][0] == "model_failed"


def test_events_are_as_the_document_says(
    talking: Running, client: httpx2.Client, server: ProviderServer
) -> None:
    content = talking.document["paths"][PATHS[1]]["post"]["responses"]["200"]["content"]
    choices = content["text/event-stream"]["itemSchema"]["oneOf"]
    schemas = {
        each["properties"]["event"]["const"]: each["properties"]["data"]["contentSchema"] for each in choices
    }
    assert set(schemas) == set(EVENTS)
    server.chat.reply("Hello, Ada.", "Never said.")
    told = events_of(say(client, PATHS[1]))
    server.fail_next(COMPLETIONS, Refuse(400))
    told += events_of(say(client, PATHS[1]))
    assert {kind for kind, _ in told} == {"turn.started", "text.delta", "turn.completed", "turn.failed"}
    components = {"components": strict(talking.document["components"])}
    for kind, data in told:
        jsonschema_rs.validate({**schemas[kind], **components}, data)


# --- what is counted ---


def test_tokens_are_counted_once_also_of_turns_that_fail_or_nobody_waits_for(
    talking: Running, client: httpx2.Client, server: ProviderServer, tenant: str
) -> None:
    counted, spent = spending(talking, tenant)
    assert spent == 0
    server.chat.reply("Hello, Ada.", Reply(""))
    first = outcome(PATHS[0], say(client, PATHS[0], "k"))
    say(client, PATHS[0], "k")
    say(client, PATHS[1])
    now, spent = spending(talking, tenant)
    assert now - counted == spent
    assert spent > first["usage"]["total_tokens"] > 0, "the one that failed has cost something, too"


def spending(talking: Running, tenant: str) -> tuple[float, int]:
    """What the metrics have counted for all, and the ledger for a tenant."""
    counted = values(talking.service.metrics)["recollect_model_tokens_total",]
    return counted, talking.do(talking.service.ledger.used(tenant))


# --- what is written down ---


def test_what_failed_is_in_the_audit_log(client: httpx2.Client, server: ProviderServer) -> None:
    server.chat.reply("Never said.")
    server.fail_next(COMPLETIONS, Refuse(400))
    assert say(client, PATHS[0]).status_code == 502
    assert say(client, PATHS[0], message=1).status_code == 422
    assert client.post("/v1/runs/nowhere/retry").status_code == 404
    found = audited(client)
    assert [(action, status) for action, _, status in found] == [
        ("runs.retry", 404),
        ("chat.run", 422),
        ("chat.run", 502),
    ]
    assert (found[2][1] or "").startswith("turn:")


def test_a_chat_that_is_sent_again_is_written_down_with_its_turn(
    client: httpx2.Client, server: ProviderServer
) -> None:
    server.chat.reply("Hello, Ada.")
    turn = say(client, PATHS[0], "k").json()["turn_id"]
    say(client, PATHS[0], "k")
    assert audited(client) == [("chat.run", f"turn:{turn}", 200)] * 2


def test_what_is_no_action_is_not_written_down(client: httpx2.Client) -> None:
    assert client.delete("/v1/conversations/search").status_code == 405
    assert audited(client) == []
