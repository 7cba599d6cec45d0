"""Trying out a strategy on a conversation, without giving it that."""

import httpx2
import pytest

from recollect.strategies.summaries import ConversationSummaryStore

from .running import Running
from .test_conversations import save

SAID = [{"role": role, "content": f"{role} {turn}"} for turn in range(4) for role in ("user", "assistant")]


@pytest.fixture
def path(client: httpx2.Client, user: str) -> str:
    return f"/v1/conversations/{save(client, user, messages=SAID)['conversation_id']}"


def test_a_strategy_is_tried_out_and_the_setting_stays(client: httpx2.Client, path: str) -> None:
    own = {"mode": "trim", "max_user_turns": 3}
    client.patch(f"{path}/memory", json={"memory_strategy": own})
    before = client.get(f"{path}/memory").json()
    tried = {"mode": "trim", "max_user_turns": 2, "keep_last_user_turns": 1}
    told = client.get(f"{path}/view", params=tried).json()
    assert told["memory_strategy"] == tried
    assert [item["content"] for item in told["items"]] == ["user 2", "assistant 2", "user 3", "assistant 3"]
    assert len(client.get(f"{path}/view", params={"mode": "none"}).json()["items"]) == 8
    assert client.get(f"{path}/memory").json() == before
    assert client.get(f"{path}/view").json()["memory_strategy"] == own


def test_a_summary_that_is_tried_out_is_shown_and_not_kept(
    client: httpx2.Client, path: str, user: str, service: Running
) -> None:
    identifier = path.rpartition("/")[2]
    for _ in range(2):  # so that there is a session of its own
        said = {"conversation_id": identifier, "user_id": user, "message": "Where do I live?"}
        assert client.post("/v1/chat", json=said).status_code == 200
    query = {"mode": "summarize", "max_user_turns": 2, "keep_last_user_turns": 1}
    items = client.get(f"{path}/view", params=query).json()["items"]
    assert len(items) == 2 + 4
    assert "user 0" in str(items[1]["content"])

    async def kept() -> object:
        async with ConversationSummaryStore(service.service.settings.database.url) as summaries:
            return await summaries.newest(identifier)

    assert service.do(kept()) is None


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"mode": "forget"}, "query.mode"),
        ({"max_user_turns": "2"}, "query.mode"),
        ({"mode": "trim", "max_user_turns": "-1"}, "query.max_user_turns"),
        ({"mode": "trim", "max_user_turns": "two"}, "query.max_user_turns"),
        ({"mode": "compact", "max_user_turns": "2"}, "query.max_user_turns"),
        ({"mode": "trim", "unknown": "2"}, "query.unknown"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    client: httpx2.Client, path: str, query: dict[str, str], field: str
) -> None:
    refused = client.get(f"{path}/view", params=query)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"mode": "trim"}, "query.max_user_turns"),
        ({"mode": "trim", "max_user_turns": "2", "keep_last_user_turns": "3"}, "query.keep_last_user_turns"),
        ({"mode": "compact", "compact_trigger_turns": "1"}, "query.compact_keep"),
        (
            {"mode": "compact", "compact_exclude_tools": "a", "compact_include_tools": "a"},
            "query.compact_exclude_tools",
        ),
    ],
)
def test_knobs_that_make_no_sense_together_are_refused_by_name(
    client: httpx2.Client, path: str, query: dict[str, str], field: str
) -> None:
    refused = client.get(f"{path}/view", params=query)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


def test_tools_are_named_one_by_one(client: httpx2.Client, path: str) -> None:
    query = {"mode": "compact", "compact_trigger_turns": 8, "compact_exclude_tools": ["a", "b"]}
    told = client.get(f"{path}/view", params=query).json()
    assert told["memory_strategy"] == query
