"""A provider, and a service with a proxy in front of it that knows something about each user."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..memory.texts import sentences
from ..service.client import Connection, encode
from ..service.processes import Running, running, serving
from .calls import USERS, user_name

_PROVIDER = ["-m", "benchmarks.service.provider_process"]
_FACTS = 20  # of each user
_OK = range(200, 300)


@dataclass(frozen=True)
class Servers:
    """Both of them."""

    provider: Running
    proxy: Running


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[Servers]:
    """The service as it comes, with its embedder and workers, on a file of its own."""
    async with running(_PROVIDER, folder) as provider:
        url = f"http://127.0.0.1:{provider.port}/v1"
        settings = {"proxy.enabled": "true", "proxy.openai_url": url, "logging.level": "warning"}
        place = str(folder / f"proxy-{provider.port}.db")
        async with serving(place, folder, settings) as proxy:
            await _teach(proxy)
            yield Servers(provider, proxy)


async def _teach(proxy: Running) -> None:
    """Let every user tell something, and wait until it is learned."""
    connection, facts = await Connection.open(proxy.port), sentences(1)
    for number in range(USERS):
        said = [{"role": "user", "content": fact} for fact in islice(facts, _FACTS)]
        owner = {"agent_id": "assistant", "user_id": user_name(number)}
        for path, body in (
            ("/v1/conversations", {**owner, "messages": said}),
            ("/v1/memories/search?wait=30", {**owner, "query": "home"}),
        ):
            answer = await connection.ask(encode("POST", path, body))
            if answer.status not in _OK:
                raise AssertionError(f"teaching failed with {answer.status}: {answer.body[:200]!r}")
    connection.close()
