"""Services with a proxy, in front of a provider of our own or of one that sends given bytes."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from recollect.memory.store import MemoryStore
from recollect.server.settings import Settings
from recollect.testing.providers import ProviderServer

from ..routes.running import Running, running
from .raw_provider import RawProvider, raw_provider

_numbers = itertools.count()


def proxy_settings(folder: Path, openai: str, anthropic: str, **proxy: Any) -> Settings:
    """A proxy on a file, without an embedder, that learns at once and is patient with a busy machine."""
    return Settings.model_validate(
        {
            "database": {"url": str(folder / "recollect.db"), "create_tables": True},
            "memory": {"embedder": "none", "workers": 2, "own_process": False, "quiet_seconds": 0},
            "proxy": {
                "enabled": True,
                "openai_url": openai,
                "anthropic_url": anthropic,
                "recall_milliseconds": 20_000,
                **proxy,
            },
        }
    )


@pytest.fixture(scope="session")
def running_proxy(
    running_server: ProviderServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("proxy")
    with running(proxy_settings(folder, running_server.base_url, running_server.root_url)) as service:
        yield service


@pytest.fixture
def proxy(running_proxy: Running, server: ProviderServer) -> Running:  # noqa: ARG001 - it has forgotten all
    """A proxy in front of `server`; other tests have left things there."""
    return running_proxy


@pytest.fixture(scope="session")
def running_raw() -> Iterator[RawProvider]:
    with raw_provider() as provider:
        yield provider


@pytest.fixture(scope="session")
def raw_proxy(running_raw: RawProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A proxy in front of `raw`; other tests have left things there."""
    url, folder = running_raw.url, tmp_path_factory.mktemp("raw")
    with running(proxy_settings(folder, f"{url}/v1", url, timeout_seconds=30)) as service:
        yield service


@pytest.fixture
def raw(running_raw: RawProvider) -> RawProvider:
    """A provider that sends exactly what the test says, and has forgotten all tests before."""
    running_raw.reset()
    return running_raw


@pytest.fixture
def user() -> str:
    """A user whom no other test knows."""
    return f"ada-{next(_numbers)}"


def store_of(proxy: Running, tenant: str = "default") -> MemoryStore:
    """The memory of a tenant."""
    return proxy.service.memory.for_tenant(tenant)


def settle(proxy: Running) -> None:
    """Wait until everything is recorded and learned."""
    assert proxy.service.proxy is not None
    proxy.do(proxy.service.proxy.recorder.wait())
    proxy.learn()


def recorded(
    proxy: Running, user: str, agent: str = "assistant", tenant: str = "default"
) -> list[list[tuple[str, str]]]:
    """The messages of each conversation of a user, the oldest conversation first."""
    settle(proxy)
    store = store_of(proxy, tenant)
    outlines = proxy.do(store.list_conversations(agent, user))
    read = [proxy.do(store.get_conversation(each["conversation_id"])) for each in outlines]
    found = sorted((each for each in read if each is not None), key=lambda each: each.created_at)
    return [[(message.role, message.content) for message in each.messages] for each in found]


def remember(proxy: Running, user: str, *texts: str, tenant: str = "default") -> None:
    """Let the user tell things, and learn from them."""
    messages = [{"role": "user", "content": text} for text in texts]
    proxy.do(store_of(proxy, tenant).record_conversation("assistant", user, messages))
    proxy.learn()


def post(proxy: Running, path: str, **arguments: Any) -> httpx2.Response:
    """A call without a client library, with the key of the provider."""
    headers = {"Authorization": "Bearer test-key", "anthropic-version": "2023-06-01"}
    headers |= arguments.pop("headers", {})
    return httpx2.post(f"{proxy.url}/proxy{path}", headers=headers, timeout=30, **arguments)
