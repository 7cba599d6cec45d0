"""A service in a process of its own, and those who use it."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from recollect.server.access.keys import KeyStore, Scope
from recollect.testing.providers import ProviderServer
from recollect.testing.servers.service import ServiceServer

COMPLETIONS = "POST /v1/chat/completions"
TALKER = "talker"
_AGENTS = f"""
[agents.{TALKER}]
instructions = "Talk."
model = "gpt-test"
"""


@dataclass
class Place:
    """A service and its database."""

    server: ServiceServer
    database: str
    _keys: dict[tuple[str, Scope], str] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """Where the service answers."""
        return self.server.url

    def key(self, scope: Scope = "admin", tenant: str = "acme") -> str:
        """The key of a tenant with a scope; made when it is first asked for."""
        if (tenant, scope) not in self._keys:
            self._keys[tenant, scope] = make_key(self.database, tenant, scope)
        return self._keys[tenant, scope]

    def client(self, key: str | None = None, **headers: str) -> httpx2.Client:
        """A client with a key: that of an admin, unless another is given."""
        headers["Authorization"] = f"Bearer {key or self.key()}"
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60)


def make_key(database: str, tenant: str, scope: Scope, ttl: timedelta | None = None) -> str:
    """A new key, as `recollect keys create` makes it."""

    async def make() -> str:
        async with KeyStore(database) as keys:
            return (await keys.create(tenant, scope, ttl=ttl))[1]

    return asyncio.run(make())


def revoke_key(database: str, key: str) -> None:
    """Revoke a key, as `recollect keys revoke` does."""

    async def revoke() -> None:
        async with KeyStore(database) as keys:
            assert await keys.revoke(key.split("_")[1]) is not None

    asyncio.run(revoke())


def settings_for(
    folder: Path, provider: ProviderServer, **more: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """A service that learns by rule, with an agent that needs no model, and one whose model is the server."""
    agents = folder / "agents.toml"
    agents.write_text(_AGENTS)
    settings: dict[str, dict[str, Any]] = {
        "server": {"grace_seconds": 10},
        "database": {},
        "memory": {"embedder": "none", "workers": 2, "own_process": False},
        "chat": {
            "agents_file": str(agents),
            "base_url": provider.base_url,
            "api_key": provider.api_key,
            "lock_seconds": 0.5,
            "timeout_seconds": 20,
        },
    }
    for section, values in more.items():
        settings[section] = {**settings.get(section, {}), **values}
    return settings


# --- talking ---


def record(client: httpx2.Client, user: str, *texts: str, agent: str = TALKER) -> dict[str, Any]:
    """Record a conversation in which a user says something."""
    messages = [{"role": "user", "content": text} for text in texts or ("I live in Lisbon.",)]
    body = {"agent_id": agent, "user_id": user, "messages": messages}
    answer = client.post("/v1/conversations", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def say(client: httpx2.Client, user: str, text: str, **more: Any) -> httpx2.Response:
    """Say something to the agent with a model."""
    body = {"user_id": user, "message": text, "agent": TALKER, **more}
    return client.post("/v1/chat", json=body)


def texts_in(client: httpx2.Client, conversation_id: str) -> list[tuple[str, str]]:
    """Who said what in a conversation."""
    found = client.get(f"/v1/conversations/{conversation_id}/messages")
    assert found.status_code == 200, found.text
    return [(message["role"], message["content"]) for message in found.json()["items"]]


Event = tuple[str, dict[str, Any]]


def read_events(lines: Iterable[str]) -> list[Event]:
    """The events of a stream."""
    events: list[Event] = []
    kind, data = "", ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            data = value
        elif not line and data:
            events.append((kind, json.loads(data)))
            kind, data = "", ""
    return events


def stream(client: httpx2.Client, user: str, text: str, **more: Any) -> list[Event]:
    """Say something to the agent with a model, and read the stream to its end."""
    body = {"user_id": user, "message": text, "agent": TALKER, **more}
    with client.stream("POST", "/v1/chat/stream", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        return read_events(answer.iter_lines())
