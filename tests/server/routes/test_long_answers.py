"""Answers that are long are made in a thread, and are the same."""

import json
import threading

import httpx2
import pytest

from recollect.server.routes.shared import encode_long_json
from recollect.testing.contract import in_event_loop

from .running import Running
from .test_conversations import save

SAID = [{"role": "user", "content": f"This is number {number}."} for number in range(50)]


@pytest.mark.parametrize(("size", "is_here"), [(1, True), (200, True), (201, False)])
@in_event_loop
async def test_what_tells_many_things_is_made_in_another_thread(size: int, is_here: bool) -> None:
    maker = json.loads(await encode_long_json(threading.get_ident, size))
    assert (maker == threading.get_ident()) is is_here


def test_a_long_conversation_is_told_whole_everywhere(
    client: httpx2.Client, user: str, service: Running
) -> None:
    path = f"/v1/conversations/{save(client, user, messages=SAID)['conversation_id']}"
    for _ in range(5):
        assert client.post(f"{path}/messages", json={"messages": SAID}).status_code == 201
    texts = [said["content"] for said in SAID] * 6
    told = client.get(path).json()["conversation_data"]["messages"]
    assert [message["content"] for message in told] == texts
    assert [item["content"] for item in client.get(f"{path}/view").json()["items"]] == texts
    service.learn()  # so that nothing changes between two exports
    query = {"user_id": user}
    [whole] = client.get("/v1/users/export", params=query).json()["conversations"]
    assert whole["conversation_data"]["messages"] == told
    lines = client.get("/v1/users/export", params={**query, "format": "jsonl"}).text.splitlines()
    assert {"kind": "conversations", "data": whole} in [json.loads(line) for line in lines]
