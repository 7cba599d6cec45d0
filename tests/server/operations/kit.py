"""A service in this process, and what is said to it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from recollect.memory.database.access import MemoryDatabase
from recollect.server.app import create_app
from recollect.server.service import Service
from recollect.server.settings import Settings
from recollect.sql.scripts import Script, Statement

TALK = [{"role": "user", "content": "My name is Ada."}]


@dataclass(frozen=True)
class Served:
    """A service, and a client of it."""

    service: Service
    client: httpx2.AsyncClient


@asynccontextmanager
async def serving(url: str, given: Mapping[str, Any] | None = None) -> AsyncIterator[Served]:
    """A service with the lifespan that it has when it is served; it learns nothing, unless it is told to."""
    quiet = {"memory": {"workers": 0, "embedder": "none"}, "database": {"url": url}}
    app = create_app(Settings.model_validate(quiet | dict(given or {})))
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://here") as client,
    ):
        yield Served(app.state.service, client)


async def execute(service: Service, statement: str, *parameters: object) -> None:
    """Change the database behind the service's back."""

    def script() -> Script[None]:
        yield Statement(statement, parameters)

    place = service.settings.database
    async with MemoryDatabase(place.url, **place.options()) as database:
        await database.write(script)
