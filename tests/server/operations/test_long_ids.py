"""Ids of users and agents as long as the service takes them, on tables that were migrated and on files."""

from typing import Any

import httpx2

from recollect.testing.contract import in_event_loop

from .kit import TALK, Served, serving

# No two characters alike, for a database would make repetitions short.
LONG = "".join(map(chr, range(0x4E00, 0x4E00 + 4096)))


def here(served: Served) -> httpx2.AsyncClient:
    """A client on this machine: without keys nobody else is served."""
    served.client.base_url = httpx2.URL("http://localhost")
    return served.client


def made(answer: httpx2.Response) -> dict[str, Any]:
    assert answer.is_success, answer.text
    told: dict[str, Any] = answer.json()
    return told


@in_event_loop
async def test_somebody_with_a_long_id_can_chat_branch_off_take_their_data_and_leave(url: str) -> None:
    async with serving(url) as served:
        client = here(served)
        chatted = made(await client.post("/v1/chat", json={"user_id": LONG, "message": "Hello."}))
        path = f"/v1/conversations/{chatted['conversation_id']}"
        made(await client.post(f"{path}/branches", json={"from_turn": 1}))
        exported = made(await client.get("/v1/users/export", params={"user_id": LONG}))
        assert [session["user_id"] for session in exported["sessions"]] == [LONG]
        erased = made(await client.delete("/v1/users", params={"user_id": LONG}))
        assert (erased["counts"]["conversations"], erased["counts"]["sessions"]) == (1, 1)


@in_event_loop
async def test_an_agent_with_a_long_id_can_be_recorded_and_branched_off_from(url: str) -> None:
    async with serving(url) as served:
        client, owner = here(served), {"agent_id": LONG, "user_id": LONG}
        saved = made(await client.post("/v1/conversations", json={**owner, "messages": TALK}))
        path = f"/v1/conversations/{saved['conversation_id']}"
        made(await client.post(f"{path}/branches", json={"from_turn": 1}))
        found = made(await client.post("/v1/conversations/search", json={**owner, "query": "Ada"}))
        assert len(found["items"]) == 1
