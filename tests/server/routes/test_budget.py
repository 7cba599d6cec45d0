"""Token budgets over HTTP: parallel turns, and turns one after the other."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from recollect.server.settings import Settings
from recollect.testing.providers import Hold, ProviderServer, Refuse, Reply, Usage

from .running import Running, running
from .test_chat import COMPLETIONS, PATHS, outcome, say, wait_until

LIMIT, PARALLEL = 100, 30
SEVENTY = Reply("Hello.", usage=Usage(60, 10))


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory, running_server: ProviderServer) -> Iterator[Running]:
    """A service whose tenants have 100 tokens a day."""
    given = {
        "database": {"url": str(tmp_path_factory.mktemp("limited") / "recollect.db")},
        "memory": {"embedder": "none", "workers": 0, "own_process": False},
        "chat": {
            "model": "gpt-test",
            "base_url": running_server.base_url,
            "api_key": running_server.api_key,
        },
        "limits": {"tokens_per_day": LIMIT},
    }
    with running(Settings.model_validate(given)) as service:
        service.make_key("read")
        yield service


@pytest.fixture
def client(limited: Running, tenant: str) -> Iterator[httpx2.Client]:
    with limited.client(limited.make_key("admin", tenant)) as client:
        yield client


@pytest.mark.parametrize("path", PATHS)
def test_thirty_turns_at_once_do_not_all_pass(
    limited: Running, client: httpx2.Client, server: ProviderServer, tenant: str, path: str
) -> None:
    let_go = threading.Event()
    server.chat.reply_always(lambda _: SEVENTY)
    server.fail_next(COMPLETIONS, Hold(let_go), times=PARALLEL)
    with ThreadPoolExecutor(PARALLEL) as pool:
        turns = [pool.submit(say, client, path, user_id=f"user-{number}") for number in range(PARALLEL)]
        try:
            wait_until(lambda: sum(turn.done() for turn in turns) == PARALLEL - 1)
        finally:
            let_go.set()
    answers = [turn.result() for turn in turns]
    assert Counter(answer.status_code for answer in answers) == {200: 1, 429: PARALLEL - 1}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["code"] == "token_budget_exceeded"
    assert refused.headers["Retry-After"] == "2"
    assert limited.do(limited.service.ledger.used(tenant)) == 70
    assert len(client.get("/v1/conversations").json()["items"]) == 1, "a refused turn opens no conversation"


@pytest.mark.parametrize("path", PATHS)
def test_turns_one_after_the_other_pass_until_the_limit_is_reached(
    limited: Running, client: httpx2.Client, server: ProviderServer, tenant: str, path: str
) -> None:
    server.chat.reply_always(lambda _: SEVENTY)
    for _ in range(2):
        outcome(path, say(client, path))
    refused = say(client, path)
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 2) == (429, True)
    assert limited.do(limited.service.ledger.used(tenant)) == 140


@pytest.mark.parametrize("path", PATHS)
def test_a_turn_that_fails_keeps_nothing_reserved(
    client: httpx2.Client, server: ProviderServer, path: str
) -> None:
    server.chat.reply_always(lambda _: SEVENTY)
    for _ in range(2):
        server.fail_next(COMPLETIONS, Refuse(400))
        say(client, path)
        assert say(client, path, conversation_id="nowhere").status_code == 404
    outcome(path, say(client, path, "k"))
    outcome(path, say(client, path, "k"))
    outcome(path, say(client, path))
