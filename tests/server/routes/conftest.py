"""Services for these tests, each on a database of its own."""

import itertools
import os
from collections.abc import Iterator

import httpx2
import pytest

from recollect.server.settings import Settings

from ...sessions.postgres.database import sql
from .running import Running, running

_numbers = itertools.count()
_FIXED = {
    "memory": {"embedder": "none", "workers": 2, "own_process": False},
    "server": {"max_messages": 50, "max_page_size": 20},
}


def settings_for(url: str) -> Settings:
    """Small limits, no embedder, and tables that are made when they are needed."""
    return Settings.model_validate({**_FIXED, "database": {"url": url, "create_tables": True}})


@pytest.fixture(scope="session")
def service_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(settings_for(str(tmp_path_factory.mktemp("service") / "recollect.db"))) as service:
        yield service


@pytest.fixture(scope="session")
def service_on_postgres(postgres_url: str) -> Iterator[Running]:
    name = f"routes_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    with running(settings_for(postgres_url.rpartition("/")[0] + f"/{name}")) as service:
        yield service
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_postgres(postgres_url: str) -> Iterator[str]:
    """A database of its own on the server, without tables."""
    name = f"routes_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    yield postgres_url.rpartition("/")[0] + f"/{name}"
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgres"])
def service(request: pytest.FixtureRequest) -> Running:
    """A service on each kind of database; other tests have left things there."""
    found: Running = request.getfixturevalue(f"service_on_{request.param}")
    return found


@pytest.fixture
def client(service: Running) -> Iterator[httpx2.Client]:
    """Somebody who may do everything."""
    with service.client() as client:
        yield client


@pytest.fixture
def user() -> str:
    """A user whom no other test knows."""
    return f"用户/{next(_numbers)} & co"


@pytest.fixture(scope="session")
def keyed_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that needs keys, as some have been made."""
    with running(settings_for(str(tmp_path_factory.mktemp("keyed") / "recollect.db"))) as service:
        service.make_key("read")
        yield service


@pytest.fixture
def tenant() -> str:
    """A tenant whom no other test knows."""
    return f"tenant-{next(_numbers)}"
