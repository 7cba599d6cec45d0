"""Stores to hold to one contract: a local one, and remote ones on each kind of database."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect import MemoryStore, RemoteMemoryStore

from ...server.routes.conftest import service_on_postgres as service_on_postgres
from ...server.routes.conftest import service_on_sqlite as service_on_sqlite
from ...server.routes.running import Running

OpenStore = Callable[[], MemoryStore]
_numbers = itertools.count()


@pytest.fixture(params=["local", "remote on SQLite", "remote on PostgreSQL"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> OpenStore:
    """Opens a store that learns by rules and searches by words; other tests have left data there."""
    if request.param == "local":
        return lambda: MemoryStore(tmp_path / "memory.db", embedder=None, workers=2)
    name = "service_on_sqlite" if "SQLite" in request.param else "service_on_postgres"
    service: Running = request.getfixturevalue(name)
    return lambda: RemoteMemoryStore(service.url)


@pytest.fixture
def user() -> str:
    """A user whom no other test knows, with characters that a URL must quote."""
    return f"用户 {next(_numbers)}/& co?"
