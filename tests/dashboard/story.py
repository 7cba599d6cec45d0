"""What the dashboard shows here: people who talk, what is learned about them, and what goes wrong."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2

from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.store import MemoryStore
from recollect.testing.providers import ProviderServer, Reply, ToolCall, Usage

AGENT = "concierge"
_TOOLS = "tests.dashboard.tools_of_agents"
_AGENTS = f"""
[agents.{AGENT}]
instructions = "Help with journeys."
description = "Plans journeys."
model = "gpt-test"
tools = ["{_TOOLS}:weather", "{_TOOLS}:find_trains"]
"""
SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
OVERRIDE = "invoice\u202egnp.exe"
EMOJI = "👩‍👩‍👧‍👦 🇵🇹 🫠"
LONGEST = "long " * 209_000  # characters: just under 1 MiB

_LIVES: dict[str, Sequence[Sequence[str]]] = {
    "ada": (
        (
            "Hello! My name is Ada and I live in Porto.",
            "I work as a marine biologist at the aquarium.",
            "I am allergic to peanuts.",
        ),
        (
            "I moved to Lisbon in March 2026.",
            "My exam is on 3 May 2026.",
            "My sister Grace is getting married on 12 September 2026.",
        ),
        ("I want to learn Portuguese before the summer.", "I am worried about the exhibition next month."),
        (
            "I went to a concert in Sintra on 20 June 2026.",
            "I prefer trains to planes.",
            "I have a dog named Bit.",
        ),
    ),
    "ben": (("I have a cello.", "I live in Berlin.", "I want to learn to play in an orchestra."),),
    "李雷": (("我叫李雷，住在上海。", "我喜欢打羽毛球。", "我想明年去葡萄牙旅行。"),),
}
_ANSWER = "Noted, thank you for telling me."


def settings(folder: Path, provider: ProviderServer) -> dict[str, dict[str, Any]]:
    """A service that learns by rule, with an agent whose model is the provider."""
    agents = folder / "agents.toml"
    agents.write_text(_AGENTS)
    return {
        "memory": {"embedder": "none", "workers": 2, "own_process": False, "quiet_seconds": 0},
        "chat": {
            "agents_file": str(agents),
            "default_agent": AGENT,
            "base_url": provider.base_url,
            "api_key": provider.api_key,
        },
    }


async def fail_to_learn(database: str, provider: ProviderServer) -> None:
    """Leave a run that failed: its model does not answer in the form that it was asked for."""
    provider.chat.reply_always(Reply("I would rather not say.", usage=Usage(820, 14)))
    options = {"base_url": provider.base_url, "api_key": provider.api_key}
    extractor = OpenAIExtractor("gpt-test", **options)
    async with MemoryStore(
        database, extractor=extractor, embedder=None, options=RunOptions(attempts=1)
    ) as store:
        await store.record_conversation("assistant", "zoe", [{"role": "user", "content": "I live in Oslo."}])
        await store.drain(30)
    provider.reset()


def tell(client: httpx2.Client) -> dict[str, str]:
    """Record what people said and chat with an agent; the ids of what tests look at."""
    for user, lives in _LIVES.items():
        for texts in lives:
            record(client, user, *texts)
    return {
        "hostile": record(client, "mallory", SCRIPT, OVERRIDE, EMOJI, "\x07bell", LONGEST, tags=[SCRIPT[:64]])
    }


def record(client: httpx2.Client, user: str, *texts: str, tags: Sequence[str] = ()) -> str:
    """A conversation in which a user says something, and an agent answers."""
    messages = []
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": _ANSWER}]
    body = {"agent_id": "assistant", "user_id": user, "messages": messages, "tags": list(tags)}
    answer = client.post("/v1/conversations", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["conversation_id"])


def chat(client: httpx2.Client, provider: ProviderServer) -> str:
    """A chat of five turns with calls of tools and two branches; its conversation's id."""
    provider.chat.reply(
        Reply("Of course. Where would you like to go?", usage=Usage(310, 24)),
        Reply(tool_calls=[ToolCall("weather", {"city": "Porto"})], usage=Usage(365, 18)),
        Reply("Porto is mild on Friday: 19 °C and dry.", usage=Usage(430, 41)),
        Reply(
            tool_calls=[ToolCall("find_trains", {"origin": "Lisbon", "destination": "Porto"})],
            usage=Usage(510, 31),
        ),
        Reply("There is a train at 09:39 that arrives at 12:48.", usage=Usage(640, 38)),
        Reply("Booked: the 09:39, by the window.", usage=Usage(702, 22)),
        Reply("Then the bus at 10:15; it takes longer.", usage=Usage(655, 27)),
        Reply("You are welcome!", usage=Usage(730, 9)),
    )
    said = _say(client, "Can you help me plan a weekend?", user_id="ada")
    place = {"conversation_id": said["conversation_id"]}
    for text in (
        "What will the weather be in Porto?",
        "Which train can I take on Friday?",
        "Book the first.",
    ):
        _say(client, text, **place)
    branches = f"/v1/conversations/{place['conversation_id']}/branches"
    assert client.post(branches, json={"from_turn": 4, "name": "by-bus"}).status_code == 201
    _say(client, "Is there a bus instead?", **place)
    _say(client, "Thank you!", **place)
    assert client.post(branches, json={"from_turn": 2, "name": "another city"}).status_code == 201
    assert client.put(f"{branches}/current", json={"name": "by-bus"}).status_code == 200
    return place["conversation_id"]


def _say(client: httpx2.Client, text: str, **place: str) -> dict[str, Any]:
    answer = client.post("/v1/chat", json={"message": text, **place})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = json.loads(answer.text)
    return told


def memory_of(client: httpx2.Client, user: str) -> str:
    """The id of what the agent knows about a user."""
    answer = client.get("/v1/memories/of", params={"agent_id": "assistant", "user_id": user})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["memory_id"])


def wait_until_learned(client: httpx2.Client) -> None:
    """Wait until nothing is left to learn from."""
    deadline = time.monotonic() + 60
    while client.get("/v1/coverage").json()["pending"]:
        assert time.monotonic() < deadline, "there is always something left to learn from"
        time.sleep(0.05)
