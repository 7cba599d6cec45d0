"""Only values that the caller sent are answered with 422; a fault inside is a 500 with its request id."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ...memory.corrupt.kit import SECRET, run_sql
from ...memory.databases import Place
from .conftest import settings_for
from .running import Running, running
from .test_conversations import save


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recollect.db"


@pytest.fixture
def service(file: Path) -> Iterator[Running]:
    with running(settings_for(str(file))) as service:
        yield service


def _store(file: Path, column: str, value: str, conversation_id: object) -> None:
    change = f"UPDATE conversations SET {column} = ? WHERE conversation_id = ?"
    run_sql(Place(str(file)), change, value, conversation_id)


def test_a_stored_value_that_cannot_be_used_is_not_blamed_on_the_caller(
    client: httpx2.Client, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    conversation_id = save(client, "ada")["conversation_id"]
    _store(file, "memory_strategy", json.dumps({"mode": SECRET}), conversation_id)
    with caplog.at_level(logging.ERROR, "recollect.server"):
        answer = client.get(f"/v1/conversations/{conversation_id}/view", headers={"X-Request-Id": "r-1"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer.json()["request_id"] == answer.headers["X-Request-Id"] == "r-1"
    (record,) = [each for each in caplog.records if each.name == "recollect.server"]
    assert "InvalidValueError at " in record.__dict__["error"]
    assert SECRET not in answer.text + caplog.text + str(vars(record))


def test_a_value_that_the_caller_sent_is_named(client: httpx2.Client) -> None:
    conversation_id = save(client, "ada")["conversation_id"]
    tried = {"mode": "trim", "max_user_turns": 2, "keep_last_user_turns": 3}
    refused = client.get(f"/v1/conversations/{conversation_id}/view", params=tried)
    assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed")
    assert "keep_last_user_turns" in refused.json()["detail"]


def test_a_corrupt_row_is_left_out_over_http(client: httpx2.Client, file: Path, service: Running) -> None:
    bad, good = (save(client, "ada")["conversation_id"] for _ in range(2))
    service.learn()
    _store(file, "pipeline_result", f'{{"{SECRET}', bad)
    listed = client.get("/v1/conversations", params={"agent_id": "assistant", "user_id": "ada"})
    assert listed.status_code == 200, listed.text
    assert {each["conversation_id"] for each in listed.json()["items"]} == {bad, good}
    read = client.get(f"/v1/conversations/{bad}").json()
    assert read["pipeline_result"] is None
    assert read["conversation_data"]["messages"]
