"""Real servers, started once for a test run on free loopback ports, or named by the environment."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.testing.providers import ProviderServer
from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer
from recollect.testing.servers.service import ServiceServer

TESTS = Path(__file__).parent
# `make proof` runs these, and `make test` leaves them out: long campaigns, and the service as a whole.
PROOF_FOLDERS = ("faults", "server/proof")
# The second driver of a database runs the same logic as the first one: `make proof` tries it.
PROOF_DRIVERS = frozenset({"aiosqlite", "psycopg"})
# `make faults` runs these, the long form of what `make proof` and `make test` try on one adapter or database.
CAMPAIGNS = (
    "tests/integrations/test_mcp1.py::test_long_campaigns",
    "tests/sessions/remote/test_remote.py::TestOnPostgreSQL",
)
ADAPTER_CAMPAIGNS = ("test_killed_processes", "longer_sequences")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that belong to `make proof` because of their folder or their driver."""
    for item in items:
        if _is_in_proof_folder(item) or _has_proof_driver(item):
            item.add_marker(pytest.mark.proof)
        if _is_campaign(item):
            item.add_marker(pytest.mark.campaign)


def _is_campaign(item: pytest.Item) -> bool:
    """Whether it repeats on another adapter or database what `make proof` tries on the shared foundation."""
    of_adapter = "tests/integrations/test_" in item.nodeid and "test_framework.py" not in item.nodeid
    is_long = of_adapter and any(name in item.nodeid for name in ADAPTER_CAMPAIGNS)
    return is_long or item.nodeid.startswith(CAMPAIGNS)


def _is_in_proof_folder(item: pytest.Item) -> bool:
    return any((TESTS / folder) in item.path.parents for folder in PROOF_FOLDERS)


def _has_proof_driver(item: pytest.Item) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    drivers = [*parameters.values(), getattr(getattr(item, "cls", None), "driver", None)]
    return any(isinstance(driver, str) and driver in PROOF_DRIVERS for driver in drivers)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL with pgvector: `RECOLLECT_TEST_POSTGRES_URL`, or one of our own."""
    given = os.environ.get("RECOLLECT_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis server: `RECOLLECT_TEST_REDIS_URL`, or one of our own."""
    given = os.environ.get("RECOLLECT_TEST_REDIS_URL")
    if given:
        yield given
        return
    with RedisServer() as server:
        yield server.url


@pytest.fixture
def page_variables(
    page: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The variables that the examples of a page read, each with the URL of a real server."""
    text = page.read_text("utf-8")
    variables = {}
    with ExitStack() as stack:
        if 'os.environ["DATABASE_URL"]' in text:
            variables["DATABASE_URL"] = stack.enter_context(_new_database(request))
        if 'os.environ["REDIS_URL"]' in text:
            variables["REDIS_URL"] = request.getfixturevalue("redis_url")
        if 'os.environ["SERVICE_URL"]' in text:
            path = tmp_path_factory.mktemp("service") / "recollect.db"
            # A learning process has a low priority: on a busy machine, it might learn too late for the page.
            service = ServiceServer(str(path), {"memory": {"own_process": False}})
            variables["SERVICE_URL"] = stack.enter_context(service).url
        yield variables


@contextmanager
def _new_database(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database that nobody has used."""
    from .sessions.postgres.database import sql

    url, name = request.getfixturevalue("postgres_url"), f"page_{uuid4().hex}"
    sql(url, f"CREATE DATABASE {name}")
    yield f"{url.rpartition('/')[0]}/{name}"
    sql(url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def running_server() -> Iterator[ProviderServer]:
    """A provider of models, of our own."""
    with ProviderServer() as server:
        yield server


@pytest.fixture
def server(running_server: ProviderServer) -> ProviderServer:
    """A provider that has forgotten all tests before."""
    running_server.reset()
    return running_server
