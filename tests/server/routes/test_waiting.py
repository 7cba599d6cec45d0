"""What is still to be learned, over HTTP: warnings, `wait`, and the coverage of one user."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from .conftest import settings_for
from .running import Running, running
from .test_conversations import LISBON, save

QUESTION = {"query": "Where does she live?", "agent_id": "assistant"}
SEARCHES = ("/v1/memories/search", "/v1/conversations/search", "/v1/memories/recall")


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[httpx2.Client]:
    """A service in which nothing is learned."""
    settings = settings_for(str(tmp_path / "recollect.db"))
    memory = settings.memory.model_copy(update={"workers": 0})
    with running(settings.model_copy(update={"memory": memory})) as service, service.client() as client:
        yield client


def test_a_search_right_after_the_first_post_says_that_it_is_too_early(idle: httpx2.Client) -> None:
    save(idle, "ada")
    told = idle.post("/v1/memories/search", json={**QUESTION, "user_id": "ada"}).json()
    assert told["items"] == []
    assert "1 of the user's conversations are still to be learned from" in told["warnings"][0]
    recalled = idle.post("/v1/memories/recall", json={**QUESTION, "user_id": "ada"}).json()
    assert recalled["warnings"] == told["warnings"]


def test_a_post_that_waits_answers_when_it_is_learned(client: httpx2.Client, user: str) -> None:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    saved = client.post("/v1/conversations", params={"wait": 30}, json=body)
    assert (saved.status_code, saved.json()["learned"]) == (201, True)
    told = client.post("/v1/memories/search", json={**QUESTION, "user_id": user}).json()
    assert told["items"]
    assert told["warnings"] == []


@pytest.mark.parametrize("path", SEARCHES)
def test_a_search_that_waits_finds_what_is_new(client: httpx2.Client, user: str, path: str) -> None:
    save(client, user)
    answer = client.post(path, params={"wait": 30}, json={**QUESTION, "user_id": user})
    assert answer.status_code == 200
    assert answer.json().get("items") or answer.json()["entries"]
    assert answer.json()["warnings"] == []


def test_waiting_ends_with_its_time(idle: httpx2.Client) -> None:
    body = {"agent_id": "assistant", "user_id": "ada", "messages": LISBON}
    saved = idle.post("/v1/conversations", params={"wait": 0.01}, json=body)
    assert (saved.status_code, saved.json()["learned"]) == (201, False)
    found = idle.post(SEARCHES[0], params={"wait": 0.01}, json={**QUESTION, "user_id": "ada"})
    assert found.json()["warnings"]


@pytest.mark.parametrize("wait", ["31", "-1", "nan", "soon"])
def test_waiting_is_bounded(client: httpx2.Client, user: str, wait: str) -> None:
    body = {"agent_id": "assistant", "user_id": user, "messages": LISBON}
    question = {**QUESTION, "user_id": user}
    for path, sent in (("/v1/conversations", body), *((path, question) for path in SEARCHES)):
        refused = client.post(path, params={"wait": wait}, json=sent)
        assert (refused.status_code, refused.json()["code"]) == (422, "validation_failed")
        assert refused.json()["errors"][0]["field"] == "query.wait"


def test_coverage_is_told_of_one_user(client: httpx2.Client, user: str, service: Running) -> None:
    save(client, user)
    save(client, f"{user} junior")
    service.learn()
    told = client.get("/v1/coverage", params={"user_id": user}).json()
    assert told == {
        "remembered": 1,
        "pending": 0,
        "failed": 0,
        "partial": 0,
        "share": 1.0,
        "behind_seconds": 0.0,
    }
    both = client.get("/v1/coverage", params={"user_id": user, "agent_id": "another"}).json()
    assert both["remembered"] == 0
    of_agent = client.get("/v1/coverage", params={"agent_id": "assistant"}).json()
    assert of_agent["remembered"] >= 2
    assert client.get("/v1/coverage", params={"agent_id": "nobody"}).json()["remembered"] == 0
