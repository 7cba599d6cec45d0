"""What `recollect doctor` finds out about models, servers, schemas and learning, on real ones."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from recollect import SQLiteSession
from recollect.cli.doctor.checks import _installable
from recollect.cli.doctor.database import schema_finding
from recollect.cli.doctor.memory import check_memory, learning_finding, vectors_finding
from recollect.cli.doctor.servers import clocks_finding, persistence_finding
from recollect.memory.database.schema import MemorySchema
from recollect.memory.store import MemoryStore
from recollect.sql.schema import VERSIONS, Step
from recollect.testing.providers import ProviderServer, Refuse
from recollect.testing.servers.redis import RedisServer

from .conftest import TALK, Run, learn
from .test_doctor import configuration, found

LEARNS = '[memory]\nextractor = "{}"\nembedder = "none"\n'


@pytest.fixture
def provider(server: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> ProviderServer:
    """A provider whose address and key are in the environment, for OpenAI's clients and for Anthropic's."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, server.api_key)
    return server


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """A server that answers everything with the same JSON; gives its address."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Nobody wants to know."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


# --- models ---


@pytest.mark.parametrize("name", ["openai:gpt", "anthropic:claude"])
def test_a_model_is_reached_and_not_asked(
    run: Run, folder: Path, provider: ProviderServer, name: str
) -> None:
    checks = found(run, "--config", configuration(folder, LEARNS.format(name)))
    model = name.partition(":")[2]
    assert [request.path for request in provider.requests()] == [f"/v1/models/{model}"]
    assert provider.root_url in checks["model"]["found"]


@pytest.mark.usefixtures("provider")
@pytest.mark.parametrize("name", ["openai:gpt", "anthropic:claude-3-7-sonnet-latest"])
def test_a_model_for_which_the_provider_answers_404_is_a_warning(run: Run, folder: Path, name: str) -> None:
    model = found(run, "--config", configuration(folder, LEARNS.format(name)))["model"]
    assert (model["state"], model["fix"]) == ("warning", "choose a model that the provider offers")
    assert "404" in model["found"]


@pytest.mark.parametrize(
    ("status", "state", "fix"),
    [
        (401, "wrong", "set OPENAI_API_KEY to a valid key"),
        (403, "wrong", "set OPENAI_API_KEY to a valid key"),
        (500, "warning", "try again later"),
    ],
)
def test_what_a_provider_refuses_is_told_with_what_mends_it(
    run: Run, folder: Path, provider: ProviderServer, status: int, state: str, fix: str
) -> None:
    provider.fail_next("GET /v1/models/*", Refuse(status))
    model = found(run, "--config", configuration(folder, LEARNS.format("openai:gpt")))["model"]
    assert (model["state"], model["fix"]) == (state, fix)


@pytest.mark.usefixtures("provider")
def test_a_key_that_is_refused_is_never_told(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-a-wrong-key")
    ended = run("doctor", "--config", configuration(folder, LEARNS.format("openai:gpt")))
    assert (ended.code, "rejects the key" in ended.out) == (1, True)
    assert "wrong-key" not in ended.out + ended.told


@pytest.mark.parametrize(
    ("body", "state", "words"),
    [
        (b'{"id": "gpt"}', "ok", "key accepted"),
        (b'{"hello": 1}', "wrong", "is not a model API"),
    ],
)
def test_a_provider_that_tells_of_the_model_is_well(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, state: str, words: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with answering(body) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        model = found(run, "--config", configuration(folder, LEARNS.format("openai:gpt")))["model"]
    assert (model["state"], words in model["found"]) == (state, True)


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/v1", "nowhere", "http://["])
def test_a_provider_that_cannot_be_reached_is_wrong(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    model = found(run, "--config", configuration(folder, LEARNS.format("openai:gpt")))["model"]
    assert model["state"] == "wrong"


def test_the_endpoint_of_chats_is_reached_with_its_own_key(
    run: Run, folder: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_CHAT__API_KEY", server.api_key)
    text = f'[chat]\nmodel = "gpt"\nbase_url = "{server.base_url}"\n'
    chat = found(run, "--config", configuration(folder, text))["chat"]
    assert (chat["state"], server.base_url in chat["found"]) == ("warning", True)
    monkeypatch.delenv("RECOLLECT_CHAT__API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat = found(run, "--config", configuration(folder, text))["chat"]
    assert chat["fix"] == "set RECOLLECT_CHAT__API_KEY to a valid key"


def test_agents_are_read_from_their_file(run: Run, folder: Path) -> None:
    (folder / "agents.toml").write_text('[agents.cook]\ninstructions = "Cook."\n', "utf-8")
    config = configuration(folder, '[chat]\nagents_file = "agents.toml"\ndefault_agent = "cook"\n')
    checks = found(run, "--config", config)
    assert checks["agents"]["found"] == "2 agents: assistant, cook"
    assert checks["chat"]["found"] == "offline: answers by rules, without a key"
    (folder / "agents.toml").write_text("[agents.cook]\ninstruction = 1\n", "utf-8")
    assert found(run, "--config", config)["agents"]["state"] == "wrong"


def test_a_default_agent_that_nobody_is_is_wrong(run: Run, folder: Path) -> None:
    agents = found(run, "--config", configuration(folder, '[chat]\ndefault_agent = "cook"\n'))["agents"]
    assert (agents["state"], "there is no agent 'cook'" in agents["found"]) == ("wrong", True)


def test_a_file_with_a_secret_that_everybody_may_read_is_told(run: Run, folder: Path) -> None:
    config = configuration(folder, '[chat]\napi_key = "sk-secret"\n')
    Path(config).chmod(0o644)
    ended = run("doctor", "--config", config)
    assert "which holds a key or a password" in ended.out
    assert "sk-secret" not in ended.out
    Path(config).chmod(0o600)
    assert "secrets" not in found(run, "--config", config)


# --- servers ---


def test_a_redis_that_may_lose_what_it_acknowledged_is_a_warning(run: Run, redis_url: str) -> None:
    checks = found(run, "--url", redis_url)
    assert checks["database"]["found"].endswith("is reachable, for sessions")
    assert (checks["persistence"]["state"], "appendonly" in checks["persistence"]["fix"]) == ("warning", True)


def test_a_redis_with_an_append_only_file_is_well(run: Run) -> None:
    with RedisServer(durable=True) as server:
        assert found(run, "--url", server.url)["persistence"]["state"] == "ok"


def test_a_redis_that_makes_room_by_deleting_is_a_warning() -> None:
    told = {"aof_enabled": 1, "maxmemory": 1000, "maxmemory_policy": "allkeys-lru"}
    assert persistence_finding(told).fix == "set maxmemory-policy to noeviction"


def test_a_server_that_a_newer_version_has_migrated_is_not_to_be_migrated(
    run: Run, empty_database: str
) -> None:
    assert run("migrate", "--url", empty_database).code == 0
    assert found(run, "--url", empty_database)["clocks"]["state"] == "ok"
    with closing(psycopg.connect(empty_database, autocommit=True)) as connection:
        connection.execute("UPDATE recollect_schema_version SET version_num = 'from tomorrow'")
    database = found(run, "--url", empty_database)["database"]
    assert database["state"] == "wrong"
    assert database["fix"] == "use the version of recollect that migrated it or a newer one"


@pytest.mark.parametrize(("seconds", "state"), [(0, "ok"), (4, "ok"), (-90, "warning"), (90, "warning")])
def test_clocks_that_are_apart_are_a_warning(seconds: int, state: str) -> None:
    now = datetime.now(UTC)
    assert clocks_finding(now, now + timedelta(seconds=seconds), now).state == state


# --- files, learning and vectors ---


def test_looking_at_a_file_adds_nothing_to_it(run: Run, folder: Path) -> None:
    """The sessions of somebody who uses no memory, for instance."""

    def tables() -> set[str]:
        with closing(sqlite3.connect(folder / "recollect.db")) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}

    async def fill() -> None:
        async with SQLiteSession("ada", folder / "recollect.db") as session:
            await session.add_items([{"role": "user", "content": "hi"}])

    asyncio.run(fill())
    before = tables()
    checks = found(run)
    assert tables() == before
    assert (checks["schema"]["found"], checks["learning"]["state"]) == ("no memory tables yet", "off")


def test_a_file_that_a_newer_version_has_written_is_wrong(run: Run, folder: Path) -> None:
    learn()
    count = len(MemorySchema().steps())
    assert found(run)["schema"]["found"] == f"memory {count} of {count} steps"
    with closing(sqlite3.connect(folder / "recollect.db")) as connection, connection:
        connection.execute("INSERT INTO recollect_migrations (scope, step) VALUES ('memory', '9.0.0')")
    schema = found(run)["schema"]
    assert (schema["state"], "9.0.0" in schema["found"]) == ("wrong", True)


def test_a_file_of_before_is_migrated_when_it_is_next_opened() -> None:
    step = VERSIONS[0]
    finding = schema_finding({"memory": {step}}, {"memory": [step, "two"], "chat": [step]})
    assert (finding.state, finding.found) == (
        "ok",
        "memory 1 of 2 steps; the next open applies the rest",
    )


def test_looking_at_a_file_of_before_takes_no_step(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn()

    def steps() -> list[tuple[str, str]]:
        with closing(sqlite3.connect(folder / "recollect.db")) as connection:
            return connection.execute(
                "SELECT scope, step FROM recollect_migrations ORDER BY rowid"
            ).fetchall()

    recorded = steps()
    monkeypatch.setattr(MemorySchema, "steps", lambda _: [Step(VERSIONS[0], list), Step("two", list)])
    checks = found(run)
    assert steps() == recorded
    assert (checks["learning"]["state"], "older version" in checks["learning"]["found"]) == ("off", True)
    assert "vectors" not in checks


def test_steps_that_cannot_be_read_are_wrong(run: Run, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "recollect.db")) as connection, connection:
        connection.execute("CREATE TABLE recollect_migrations (something)")
    checks = found(run)
    assert (checks["schema"]["state"], "no such column" in checks["schema"]["found"]) == ("wrong", True)
    (told,) = asyncio.run(check_memory("recollect.db", None, None))
    assert told.state == "wrong"


def test_what_waits_too_long_for_a_worker_is_a_warning(run: Run, folder: Path) -> None:
    async def record() -> None:
        async with MemoryStore("recollect.db", workers=0, embedder=None) as store:
            await store.record_conversation("assistant", "ada", TALK)

    asyncio.run(record())
    assert found(run)["learning"]["found"].startswith("0 conversations remembered, 1 pending, 0 failed")
    with closing(sqlite3.connect(folder / "recollect.db")) as connection, connection:
        connection.execute("UPDATE memory_queue SET available_at = available_at - 3600")
    learning = found(run)["learning"]
    assert (learning["state"], "has waited 60 minutes" in learning["found"]) == ("warning", True)
    assert learning_finding("1 pending", 0, 0.5).found == "1 pending"
    assert learning_finding("1 pending", 0, 12.4).found == "1 pending, 12 s behind"
    assert learning_finding("", 1, 0).fix == "see why: recollect runs list --status failed"


def test_texts_without_a_vector_of_the_embedder_are_counted(run: Run, folder: Path) -> None:
    learn()  # without an embedder
    vectors = found(run)["vectors"]
    assert vectors["state"] == "warning"
    assert vectors["found"].endswith("without a vector of use-multilingual-v3/512/p1")
    with closing(sqlite3.connect(folder / "recollect.db")) as connection, connection:
        connection.execute("INSERT INTO memory_embedders VALUES ('default', 'another/3', '')")
    assert "vectors of another/3 exist, but cannot be compared" in found(run)["vectors"]["found"]
    assert vectors_finding("a/3", [], 0).state == "ok"


@pytest.mark.parametrize(
    ("installed", "missing", "groups"),
    [
        ([], ["mcp", "redis", "strands", "crewai"], [["mcp", "redis"], ["strands", "crewai"]]),
        (["mcp"], ["redis", "strands"], [["redis"]]),
        (["strands"], ["mcp", "redis", "crewai"], [["redis"], ["crewai"]]),
        (["mcp"], ["strands"], []),
    ],
)
def test_extras_that_exclude_each_other_are_not_suggested_together(
    installed: list[str], missing: list[str], groups: list[list[str]]
) -> None:
    assert _installable(installed, missing) == groups
