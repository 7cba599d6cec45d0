"""What models have cost over time."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx2
import pytest

from recollect.items import ModelUsage
from recollect.memory.database.access import MemoryDatabase
from recollect.providers.openai.database.record import TurnRecord
from recollect.providers.openai.database.turns import ChatTurns, begin_turn
from recollect.sql.columns import time_to_column
from recollect.sql.scripts import Script, Statement

from .running import Running
from .test_conversations import save

LATE = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
DAYS = {"since": "2026-03-01", "until": "2026-03-02"}


async def chat(url: str, tenant: str, conversation: str, *turns: tuple[datetime, str, int]) -> None:
    """Record turns that were answered at a time, by a model, for so many tokens."""
    async with ChatTurns(url, create_tables=True) as store:
        for number, (at, model, tokens) in enumerate(turns):
            record = TurnRecord(
                f"{conversation} {number}",
                *(tenant, conversation, "concierge", "done", None, model, at, at, "question", "answer"),
                usage=ModelUsage(1, tokens, 1),
            )
            assert await store._write(partial(begin_turn, record))


async def learn(url: str, conversation: str, at: datetime, model: str) -> None:
    """Have the run over a conversation be one that asked a model three times, and failed once."""
    async with MemoryDatabase(url) as database:
        await database.write(partial(_have_asked, conversation, time_to_column(at), model))


def _have_asked(conversation: str, at: str, model: str) -> Script[None]:
    rows = yield Statement(
        "SELECT run_id, tenant FROM memory_runs WHERE conversation_id = ?1", (conversation,)
    )
    ((run_id, tenant),) = rows
    yield Statement("UPDATE memory_runs SET model = ?2 WHERE run_id = ?1", (run_id, model))
    yield Statement(
        "UPDATE memory_run_stages SET model = ?2, finished_at = ?3, prompt_tokens = 100,"
        " completion_tokens = 10 WHERE run_id = ?1",
        (run_id, model, at),
    )
    yield Statement(
        "INSERT INTO memory_run_failures (run_id, tenant, attempt, stage, failed_at, error, raw_response,"
        " prompt_tokens, completion_tokens) VALUES (?1, ?2, 1, 'mind', ?3, '', '', 7, 0)",
        (run_id, tenant, at),
    )


def rows(answer: httpx2.Response) -> list[tuple[Any, ...]]:
    names = ("day", "kind", "model", "agent_id", "requests", "input_tokens", "output_tokens", "total_tokens")
    assert answer.status_code == 200, answer.text
    return [tuple(item[name] for name in names) for item in answer.json()["items"]]


@pytest.fixture
def spent(service: Running, client: httpx2.Client, user: str) -> str:
    """A model of the user's name that has cost something on two days."""
    url, conversation = service.service.settings.database.url, str(save(client, user)["conversation_id"])
    service.learn()
    turns = [(LATE, user, 10), (LATE - timedelta(hours=5), user, 20), (LATE + timedelta(minutes=1), user, 40)]
    service.do(chat(url, "default", conversation, *turns))
    service.do(learn(url, conversation, LATE, user))
    return user


def test_tokens_are_told_by_day_and_model(client: httpx2.Client, spent: str) -> None:
    model = spent
    told = [row for row in rows(client.get("/v1/usage", params=DAYS)) if row[2] == model]
    assert told == [
        ("2026-03-01", "chat", model, None, 2, 30, 2, 32),
        ("2026-03-01", "learning", model, None, 4, 307, 30, 337),
        ("2026-03-02", "chat", model, None, 1, 40, 1, 41),
    ]
    last = rows(client.get("/v1/usage", params={**DAYS, "since": "2026-03-02"}))
    assert [row[0] for row in last if row[2] == model] == ["2026-03-02"]


@pytest.mark.usefixtures("spent")
def test_tokens_are_told_by_day_and_the_agent_of_the_conversation(client: httpx2.Client) -> None:
    """Though another answered."""
    told = rows(client.get("/v1/usage", params={**DAYS, "by": "agent"}))
    assert {row[:4] for row in told} == {
        ("2026-03-01", "chat", None, "assistant"),
        ("2026-03-01", "learning", None, "assistant"),
        ("2026-03-02", "chat", None, "assistant"),
    }


@pytest.mark.usefixtures("spent")
def test_the_totals_are_those_of_all_rows(client: httpx2.Client) -> None:
    told = client.get("/v1/usage", params=DAYS).json()
    for name in ("requests", "input_tokens", "output_tokens", "total_tokens"):
        assert told["totals"][name] == sum(item[name] for item in told["items"]) > 0


def test_the_last_thirty_days_are_told_if_none_are_named(client: httpx2.Client) -> None:
    told = client.get("/v1/usage").json()
    today = datetime.now(UTC).date()
    assert (told["since"], told["until"]) == ((today - timedelta(days=29)).isoformat(), today.isoformat())


def test_what_another_tenant_has_spent_is_not_told(keyed_service: Running, tenant: str) -> None:
    url = keyed_service.service.settings.database.url
    with keyed_service.client(keyed_service.make_key("write", tenant)) as client:
        conversation = str(save(client, "ada")["conversation_id"])
        keyed_service.do(chat(url, tenant, conversation, (LATE, "gpt", 10)))
        assert len(rows(client.get("/v1/usage", params=DAYS))) == 1
    with keyed_service.client(keyed_service.make_key("read", f"{tenant} other")) as client:
        assert rows(client.get("/v1/usage", params=DAYS)) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"since": "2026-03-02", "until": "2026-03-01"}, "query.since"),
        ({"since": "2025-02-28", "until": "2026-03-01"}, "query.since"),
        ({"since": "2026-02-30"}, "query.since"),
        ({"since": "2026"}, "query.since"),
        ({"until": "9999-12-31"}, "query.until"),
        ({"until": "٢٠٢٦-٠٣-٠١"}, "query.until"),
        ({"by": "user"}, "query.by"),
    ],
)
def test_days_that_make_no_sense_are_refused_by_name(
    client: httpx2.Client, query: dict[str, str], field: str
) -> None:
    answer = client.get("/v1/usage", params=query)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)


def test_the_first_days_there_are_can_be_asked_about(client: httpx2.Client) -> None:
    assert client.get("/v1/usage", params={"until": "0001-01-01"}).json()["since"] == "0001-01-01"
