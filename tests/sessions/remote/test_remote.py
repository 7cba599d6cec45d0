"""A session in a service holds the contract of every session, and keeps tenants apart."""

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from recollect import (
    AccessDeniedError,
    ConflictError,
    EncryptedSession,
    RemoteMemoryStore,
    RemoteSession,
    SessionMetadata,
    SQLiteSession,
    open_session,
)
from recollect.sessions.protocol import AppendsOnce
from recollect.sessions.tenants import stored_id
from recollect.testing.contract import SessionContract, in_event_loop, message, texts

from ...memory.remote.test_network import Cutting, listening
from ...server.routes.conftest import keyed_service as keyed_service
from ...server.routes.conftest import service_on_sqlite as service_on_sqlite
from ...server.routes.conftest import settings_for
from ...server.routes.running import Running, running
from ..postgres.database import sql


class RemoteContract(SessionContract):
    """Sessions in a service. Each test is a tenant of its own, as the service outlives it."""

    abilities = (AppendsOnce,)
    url: str
    key: str

    async def open_session(self, session_id: str) -> Any:
        return open_session(self.url, session_id, key=self.key)

    def use(self, service: Running) -> None:
        self.url, self.key = service.url, service.make_key("write", uuid.uuid4().hex)


class TestOnSQLite(RemoteContract):
    @pytest.fixture(autouse=True)
    def _use_service(self, keyed_service: Running) -> None:
        self.use(keyed_service)


@pytest.mark.proof
class TestOnPostgreSQL(RemoteContract):
    @pytest.fixture(autouse=True)
    def _use_service(self, keyed_service_on_postgres: Running) -> None:
        self.use(keyed_service_on_postgres)


@pytest.fixture(scope="session")
def keyed_service_on_postgres(postgres_url: str) -> Iterator[Running]:
    """A service that needs keys."""
    name = f"remote_{os.getpid()}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    with running(settings_for(postgres_url.rpartition("/")[0] + f"/{name}")) as service:
        yield service
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@in_event_loop
async def test_a_batch_whose_answer_is_lost_is_stored_once(service_on_sqlite: Running) -> None:
    session_id = uuid.uuid4().hex
    async with (
        listening(Cutting(service_on_sqlite.url, cuts=2)) as url,
        RemoteSession(session_id, url) as session,
    ):
        await session.add_items([message("a"), message("b")])
        await session.add_items([message("c")])
        assert texts(await session.get_items()) == ["a", "b", "c"]


@in_event_loop
async def test_separators_of_lines_inside_a_text_come_back(service_on_sqlite: Running) -> None:
    text = "one\u2028two\u2029three\x85four\x0bfive\rsix\nseven"
    async with RemoteSession(uuid.uuid4().hex, service_on_sqlite.url) as session:
        await session.add_items([message(text)])
        assert texts(await session.get_items()) == [text]


@in_event_loop
async def test_sessions_of_tenants_are_apart(keyed_service: Running) -> None:
    keys = [keyed_service.make_key("admin", tenant) for tenant in ("acme", "acme/x", "default")]
    # Ids that would meet if the tenant were merely put in front.
    for number, (key, name) in enumerate(zip(keys, ("x/s", "s", "tenant:acme/x/s"), strict=True)):
        async with RemoteSession(name, keyed_service.url, key=key) as session:
            await session.add_items([message(number)])
    for number, (key, name) in enumerate(zip(keys, ("x/s", "s", "tenant:acme/x/s"), strict=True)):
        async with RemoteSession(name, keyed_service.url, key=key) as session:
            assert texts(await session.get_items()) == [str(number)]
    async with RemoteSession("s", keyed_service.url) as session:
        with pytest.raises(AccessDeniedError):
            await session.get_items()
    async with RemoteSession("s", keyed_service.url, key=keyed_service.make_key("read")) as session:
        with pytest.raises(AccessDeniedError):
            await session.add_items([message("x")])


def test_no_two_tenants_share_a_stored_id() -> None:
    pairs = [("a", "b/c"), ("a/b", "c"), ("default", "tenant:a/b/c"), ("default", "b/c"), ("tenant:a", "c")]
    assert len({stored_id(*pair) for pair in pairs}) == len(pairs)


@in_event_loop
async def test_the_default_tenant_reads_what_a_program_stored_in_the_database(
    service_on_sqlite: Running,
) -> None:
    path = service_on_sqlite.service.settings.database.url
    async with SQLiteSession("shared with the service", path) as local:
        await local.add_items([message("from the program")])
    async with RemoteSession("shared with the service", service_on_sqlite.url) as remote:
        assert texts(await remote.get_items()) == ["from the program"]


@in_event_loop
async def test_a_session_that_another_tenant_stored_under_its_bare_id_is_not_found(
    keyed_service: Running,
) -> None:
    path, session_id = keyed_service.service.settings.database.url, uuid.uuid4().hex
    owner = SessionMetadata("ada", "assistant", None, {"tenant": "acme"})
    async with SQLiteSession(session_id, path, metadata=owner) as theirs:  # as adapters of frameworks do
        await theirs.add_items([message("secret")])
        key = keyed_service.make_key("admin", "default")
        async with RemoteSession(session_id, keyed_service.url, key=key) as session:
            for call in (session.get_items(), session.pop_item(), session.clear_session()):
                with pytest.raises(ConflictError):
                    await call
            with pytest.raises(ConflictError):
                await session.add_items([message("mine")])
        assert texts(await theirs.get_items()) == ["secret"]


@in_event_loop
async def test_the_session_of_a_user_is_exported_and_erased(keyed_service: Running) -> None:
    key, user = keyed_service.make_key("admin", "initech"), "ada"
    metadata = SessionMetadata(user_id=user, agent_id="assistant")
    async with RemoteSession("s", keyed_service.url, key=key, metadata=metadata) as session:
        await session.add_items([message("mine")])
        async with RemoteMemoryStore(keyed_service.url, key=key) as store:
            assert len((await store.export_user(user))["sessions"]) == 1
            assert (await store.erase_user(user)).counts["sessions"] == 1
        assert await session.get_items() == []


@in_event_loop
async def test_the_service_never_sees_what_the_client_encrypts(service_on_sqlite: Running) -> None:
    inner = RemoteSession(uuid.uuid4().hex, service_on_sqlite.url)
    async with EncryptedSession(inner.session_id, inner, encryption_key="k" * 32) as session:
        await session.add_items([message("secret words")])
        assert texts(await session.get_items()) == ["secret words"]
        assert "secret words" not in str(await inner.get_items())
