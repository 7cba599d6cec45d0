"""Tokens and the audit log of proxied calls: written afterwards, at no call's cost."""

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from recollect.errors import ConnectionLostError, UnreachableError
from recollect.server.proxy.backlog import Backlog
from recollect.server.proxy.usage import tokens_of
from recollect.server.settings import Settings
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import Hold, ProviderServer, Refuse, Reply, Usage

from ...sessions.postgres.database import sql
from ..routes.conftest import tenant as tenant
from ..routes.running import Running, running
from .conftest import post, proxy_settings
from .raw_provider import RawProvider, http
from .test_memory import CHAT, COUNT, MESSAGES, RESPONSES, answer_with, call_to

EMBEDDINGS = "/openai/v1/embeddings"
MODELS = [CHAT, RESPONSES, MESSAGES]
SEVENTY = Reply("Rex, of course.", usage=Usage(60, 10))
TOO_LONG = "u" * 2000
WHOLE = {"stream": False}
STREAM: dict[str, Any] = {"stream": True}
USAGE = {"stream_options": {"include_usage": True}}


def limited_settings(settings: Settings, **limits: int) -> Settings:
    return settings.model_validate({**settings.model_dump(), "limits": limits})


@pytest.fixture(scope="module")
def limited(running_server: ProviderServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A proxy whose tenants have 100 tokens a day."""
    urls = running_server.base_url, running_server.root_url
    settings = proxy_settings(tmp_path_factory.mktemp("books"), *urls)
    with running(limited_settings(settings, tokens_per_day=100)) as service:
        service.make_key("admin")
        yield service


@pytest.fixture
def headers(limited: Running, tenant: str, user: str) -> dict[str, str]:
    return {"X-Recollect-Key": limited.make_key("write", tenant), "X-Recollect-User": user}


def keep_books(proxy: Running) -> None:
    assert proxy.service.proxy is not None
    proxy.do(proxy.service.proxy.accounting.wait())


def used(proxy: Running, tenant: str) -> int:
    keep_books(proxy)
    return proxy.do(proxy.service.ledger.used(tenant))


def audited(proxy: Running, tenant: str) -> list[tuple[str, int]]:
    keep_books(proxy)
    return [(entry.action, entry.status) for entry in proxy.do(proxy.service.audit.list(tenant))][::-1]


# --- tokens ---


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("path", MODELS)
@pytest.mark.parametrize("more", [WHOLE, {**STREAM, **USAGE}])
def test_the_tokens_of_an_answer_count(
    limited: Running,
    server: ProviderServer,
    tenant: str,
    headers: dict[str, str],
    path: str,
    more: dict[str, Any],
    named: bool,
) -> None:
    answer_with(server, SEVENTY)
    if not named:
        del headers["X-Recollect-User"]
    given = more if path == CHAT else {"stream": more["stream"]}
    assert post(limited, path, json=call_to(path, **given), headers=headers).status_code == 200
    assert used(limited, tenant) == 70


def test_embeddings_count_and_questions_about_size_do_not(
    limited: Running, server: ProviderServer, tenant: str, headers: dict[str, str]
) -> None:
    assert post(limited, COUNT, json=call_to(MESSAGES), headers=headers).status_code == 200
    assert used(limited, tenant) == 0
    body = {"model": "text-embedding-3-small", "input": "a dog"}
    answer = post(limited, EMBEDDINGS, json=body, headers=headers)
    assert used(limited, tenant) == answer.json()["usage"]["total_tokens"] > 0
    assert [request.path for request in server.requests()][-1] == "/v1/embeddings"


def test_a_stream_without_usage_counts_as_an_estimate(
    limited: Running, server: ProviderServer, tenant: str, headers: dict[str, str]
) -> None:
    server.chat.reply(Reply("x" * 100))
    body = call_to(CHAT, "y" * 60, stream=True)
    assert "usage" not in post(limited, CHAT, json=body, headers=headers).text
    assert used(limited, tenant) == 40


@pytest.mark.parametrize("path", [*MODELS, EMBEDDINGS])
def test_a_budget_that_is_used_up_refuses_calls_until_the_day_ends(
    limited: Running, server: ProviderServer, tenant: str, headers: dict[str, str], path: str
) -> None:
    limited.do(limited.service.ledger.add(tenant, 100))
    refused = post(limited, path, json=call_to(path), headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (429, "token_budget_exceeded")
    assert int(refused.headers["Retry-After"]) >= 1
    assert server.requests() == []
    assert post(limited, COUNT, json=call_to(MESSAGES), headers=headers).status_code == 200


def test_calls_at_once_do_not_all_pass(
    limited: Running, server: ProviderServer, tenant: str, headers: dict[str, str]
) -> None:
    let_go, calls = threading.Event(), 8
    server.chat.reply_always(lambda _: SEVENTY)
    server.fail_next("POST /v1/chat/completions", Hold(let_go), times=calls)

    def call() -> httpx2.Response:
        return post(limited, CHAT, json=call_to(CHAT), headers=headers)

    with ThreadPoolExecutor(calls) as pool:
        called = [pool.submit(call) for _ in range(calls)]
        while sum(each.done() for each in called) < calls - 1:
            threading.Event().wait(0.01)
        let_go.set()
    answers = [each.result() for each in called]
    assert Counter(answer.status_code for answer in answers) == {200: 1, 429: calls - 1}
    assert used(limited, tenant) == 70


@pytest.mark.parametrize("failure", ["provider", "header"])
def test_a_call_that_fails_keeps_nothing_reserved(
    limited: Running, server: ProviderServer, tenant: str, headers: dict[str, str], failure: str
) -> None:
    server.chat.reply_always(lambda _: SEVENTY)
    if failure == "provider":
        server.fail_next("POST /v1/chat/completions", Refuse(500))
        assert post(limited, CHAT, json=call_to(CHAT), headers=headers).status_code == 500
    else:
        wrong = {**headers, "X-Recollect-User": TOO_LONG}
        assert post(limited, CHAT, json=call_to(CHAT), headers=wrong).status_code == 422
    assert used(limited, tenant) == 0
    assert post(limited, CHAT, json=call_to(CHAT), headers=headers).status_code == 200
    assert used(limited, tenant) == 70


def test_a_caller_that_hangs_up_keeps_nothing_reserved(raw: RawProvider, tmp_path: Path, user: str) -> None:
    never = threading.Event()
    raw.answer(never)
    raw.answer(http(json.dumps({"choices": [], "usage": {"total_tokens": 7}}).encode()))
    settings = limited_settings(proxy_settings(tmp_path, f"{raw.url}/v1", raw.url), tokens_per_day=100)
    with running(settings) as proxy:
        raw.hang_up_on(f"{proxy.url}/proxy{CHAT}", call_to(CHAT, user=user))
        assert raw.hung_up.wait(60)
        while audited(proxy, "default") != [("proxy.chat_completions", 499)]:
            pass
        assert post(proxy, CHAT, json=call_to(CHAT, user=user)).status_code == 200
        assert used(proxy, "default") == 7


# --- the audit log ---


def test_every_call_is_in_the_audit_log_by_ids(
    limited: Running, server: ProviderServer, tenant: str, user: str, headers: dict[str, str]
) -> None:
    planted = "planted-9f3e"
    answer_with(server, Reply(planted, usage=Usage(1, 1)))
    for path in (*MODELS, EMBEDDINGS, COUNT):
        answer = post(limited, path, json=call_to(path, planted, input=planted), headers=headers)
        assert answer.status_code == 200, answer.text
        keep_books(limited)
    post(limited, CHAT, json=call_to(CHAT), headers={**headers, "X-Recollect-User": TOO_LONG})
    keep_books(limited)
    limited.do(limited.service.ledger.add(tenant, 100))
    post(limited, CHAT, json=call_to(CHAT, planted), headers=headers)
    reader = {"X-Recollect-Key": limited.make_key("read", tenant)}
    post(limited, CHAT, json=call_to(CHAT), headers={**reader, "X-Recollect-User": user})
    post(limited, CHAT, json=call_to(CHAT, user=user), headers=reader)
    post(limited, CHAT, json=call_to(CHAT), headers=reader)
    keep_books(limited)
    with limited.client(limited.make_key("admin", tenant)) as client:
        entries = client.get("/v1/audit").json()["items"]
    subject = limited.do(limited.service.memory.for_tenant(tenant).receipt_subject(user))
    assert [(each["action"], each["status"], each["target"]) for each in entries[::-1]] == [
        ("proxy.chat_completions", 200, f"user:{subject}"),
        ("proxy.responses", 200, f"user:{subject}"),
        ("proxy.messages", 200, f"user:{subject}"),
        ("proxy.embeddings", 200, None),
        ("proxy.count_tokens", 200, f"user:{subject}"),
        ("proxy.chat_completions", 422, None),
        ("proxy.chat_completions", 429, f"user:{subject}"),
        ("proxy.chat_completions", 403, f"user:{subject}"),
        ("proxy.chat_completions", 403, f"user:{subject}"),
        ("proxy.chat_completions", 403, None),
    ]
    assert all(each["key_id"] and each["request_id"] for each in entries)
    assert not [secret for secret in (planted, user, headers["X-Recollect-Key"]) if secret in str(entries)]


def test_calls_go_on_without_the_database_and_are_accounted_for_when_it_is_back(
    server: ProviderServer, postgres_url: str, tmp_path: Path
) -> None:
    name = f"books_{os.getpid()}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    place = {"url": postgres_url.rpartition("/")[0] + f"/{name}", "create_tables": True}
    settings = proxy_settings(tmp_path, server.base_url, server.root_url)
    settings = settings.model_validate({**settings.model_dump(), "database": place})
    server.chat.reply_always(lambda _: SEVENTY)
    with running(limited_settings(settings, tokens_per_day=10_000)) as proxy:
        headers = {"X-Recollect-Key": proxy.make_key("write"), "X-Recollect-User": "ada"}
        assert post(proxy, CHAT, json=call_to(CHAT), headers=headers).status_code == 200
        assert used(proxy, "default") == 70
        sql(postgres_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        sql(postgres_url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", name)
        for _ in range(3):
            assert post(proxy, CHAT, json=call_to(CHAT), headers=headers).status_code == 200
        sql(postgres_url, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert used(proxy, "default") == 280
        assert audited(proxy, "default") == [("proxy.chat_completions", 200)] * 4
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


# --- parts ---


def _sse(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (b'{"usage": {"prompt_tokens": 3, "completion_tokens": 4}}', 7),
        (b'{"usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 9}}', 9),
        (b'{"usage": {"input_tokens": 1, "cache_read_input_tokens": 20, "output_tokens": 300}}', 321),
        (_sse({"usage": None}, {"choices": [], "usage": {"total_tokens": 12}}) + b"data: [DONE]\n\n", 12),
        (
            _sse(
                {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}},
                {"type": "message_delta", "usage": {"output_tokens": 30}},
            ),
            35,
        ),
        (_sse({"type": "message_start", "message": {"usage": {"input_tokens": 5}}})[:-1] + b"data: {", 5),
        (_sse({"type": "response.completed", "response": {"usage": {"total_tokens": 8}}}), 8),
        (b'{"usage": {"total_tokens": -5}}', 0),
        (b'{"usage": {"total_tokens": 1e99, "input_tokens": true, "output_tokens": "7"}}', 0),
        (b'{"usage": [7], "message": "usage", "response": null}', 0),
        (b"<html>usage</html>", 0),
        (b"", 0),
    ],
)
def test_tokens_are_read_from_answers_of_any_shape(content: bytes, tokens: int) -> None:
    assert tokens_of("", content, None, ()) == tokens


@in_event_loop
async def test_many_values_are_one_write_and_survive_failures() -> None:
    written: list[Sequence[int]] = []
    failures = [UnreachableError("no connection")]

    async def write(values: Sequence[int]) -> None:
        if failures:
            raise failures.pop()
        written.append(list(values))

    backlog = Backlog("numbers", write, collect_seconds=0.01, may_write_twice=False)
    for number in range(300):
        backlog.add(number)
    await backlog.wait()
    assert written == [list(range(300))]


@in_event_loop
async def test_what_cannot_be_written_is_dropped_and_said(caplog: pytest.LogCaptureFixture) -> None:
    async def write(_: Sequence[int]) -> None:
        raise UnreachableError("no connection")

    backlog = Backlog("numbers", write, collect_seconds=60, may_write_twice=False)
    for number in range(3):
        backlog.add(number)
    await asyncio.sleep(0)
    await backlog.aclose(10)
    (dropped,) = [record for record in caplog.records if record.message == "proxied calls not accounted for"]
    assert (vars(dropped)["count"], vars(dropped)["error"]) == (3, "UnreachableError")


@pytest.mark.parametrize("may_write_twice", [True, False])
@in_event_loop
async def test_a_batch_whose_answer_was_lost_is_written_again_only_if_it_may(may_write_twice: bool) -> None:
    tried: list[int] = []

    async def write(batch: Sequence[int]) -> None:
        tried.extend(batch)
        if len(tried) == 1:
            raise ConnectionLostError("the connection was lost")

    backlog = Backlog("numbers", write, collect_seconds=0.01, may_write_twice=may_write_twice)
    backlog.add(1)
    await backlog.wait()
    assert tried == ([1, 1] if may_write_twice else [1])


@in_event_loop
async def test_a_batch_that_cannot_be_written_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written: list[int] = []

    async def write(batch: Sequence[int]) -> None:
        if 1 in batch:
            raise KeyError("a defect")
        written.extend(batch)

    backlog = Backlog("numbers", write, collect_seconds=0.01, may_write_twice=False)
    backlog.add(1)
    await backlog.wait()
    backlog.add(2)
    await backlog.wait()
    assert written == [2]
    assert "proxied calls not accounted for" in caplog.text
