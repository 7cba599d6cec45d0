"""The unmodified clients of OpenAI and Anthropic for Node, against the proxy. `make test` installs them."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recollect.testing.providers import ProviderServer, Refuse, Reply, ToolCall, Truncate

from ..routes.running import Running
from .conftest import recorded, remember

FOLDER = Path(__file__).parent / "node"
CALL = ToolCall("weather", {"city": "Lisbon ☀"})
COMPLETIONS, MESSAGES = "POST /v1/chat/completions", "POST /v1/messages"


def run_node(proxy: Running, server: ProviderServer, user: str, *calls: str) -> list[Any]:
    command = ["node", "client.mjs", proxy.url, server.api_key, user, *calls]
    ran = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    results: list[Any] = json.loads(ran.stdout)
    return results


def test_every_call_of_the_node_clients_passes(proxy: Running, server: ProviderServer, user: str) -> None:
    remember(proxy, user, "My dog is called Rex.")
    text = "Rex — レックス 🐶"
    server.chat.reply(text, text, CALL, Reply(text, piece=2), CALL, text)
    server.responses.reply(text, Reply(text, piece=2))
    server.messages.reply(text, Reply(text, reasoning="Hm.", piece=2), CALL)
    expected = {
        "chat": text,
        "chat choices": [text, text],
        "chat tool": {"name": "weather", "arguments": CALL.arguments_text()},
        "chat stream": text,
        "chat stream tool": CALL.arguments_text(),
        "memory": "added",
        "response": text,
        "response stream": text,
        "embeddings": 4,
        "models": ["gpt-4o-mini", "text-embedding-3-small"],
        "message": text,
        "message stream": text,
        "message tool": {"city": "Lisbon ☀"},
        "count": True,
    }
    assert run_node(proxy, server, user, *expected) == list(expected.values())
    sent = [json.dumps(request.body) for request in server.requests() if user in json.dumps(request.body)]
    assert len(sent) == 11
    assert all("The user has a dog called Rex." in body for body in sent)
    said = {message for talk in recorded(proxy, user) for message in talk}
    assert {("user", "What is my dog called?"), ("assistant", text)} <= said


@pytest.mark.proof
def test_the_node_clients_see_the_errors_of_the_provider(
    proxy: Running, server: ProviderServer, user: str
) -> None:
    server.chat.reply_always("Rex")
    server.messages.reply_always("Rex")
    server.fail_next(COMPLETIONS, Refuse(429, retry_after=1))
    server.fail_next(COMPLETIONS, Refuse(500))
    server.fail_next(COMPLETIONS, Truncate(50))
    server.fail_next(MESSAGES, Refuse(529))
    server.fail_next(MESSAGES, Truncate(50))
    calls = ("chat", "chat stream", "chat stream", "message", "message stream")
    found = [(each["error"], each["status"]) for each in run_node(proxy, server, user, *calls)]
    assert found[:2] == [("RateLimitError", 429), ("InternalServerError", 500)]
    assert found[3] == ("OverloadedError", 529)
    assert [status for _, status in found] == [429, 500, None, 529, None]
    assert recorded(proxy, user) == []
