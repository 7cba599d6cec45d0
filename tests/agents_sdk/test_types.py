"""Type checkers take our sessions where the SDK asks for one."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]

# The SDK's own types are read in full where sessions and items are concerned. What else it is made of is
# skipped, which saves half a minute.
CONFIG = """
[mypy]
strict = true
mypy_path = {source}
[mypy-{skipped}]
follow_imports = skip
"""
SKIPPED = (
    "agents.computer,agents.editor,agents.extensions.sandbox.*,agents.mcp.*,agents.models.*,"
    "agents.realtime.*,agents.repl,agents.run_internal.*,agents.sandbox.*,agents.testing.*,"
    "agents.tool,agents.tracing.*,agents.voice.*,"
    "openai._base_client,openai._client,openai.lib.*,openai.resources.*,openai.types.admin.*,"
    "openai.types.audio.*,openai.types.beta.*,openai.types.chat.*,openai.types.containers.*,"
    "openai.types.evals.*,openai.types.fine_tuning.*,openai.types.graders.*,openai.types.realtime.*,"
    "openai.types.vector_stores.*,openai.types.webhooks.*,"
    "anyio.*,cryptography.*,griffe.*,httpx.*,httpx2.*,mcp.*,numpy.*,pydantic.*,pydantic_core.*,"
    "redis.*,requests.*,sqlalchemy.*,websockets.*"
)

# Wrong uses carry an ignore, and an ignore that is not needed is an error: each line proves itself.
SNIPPETS = {
    "runs": """
from agents import Agent, Runner, Session, SQLiteSession as TheirSession
from agents.items import TResponseInputItem
from recollect import InMemorySession, RetryingSession, SQLiteSession

async def main(agent: Agent[None]) -> None:
    session = SQLiteSession("s", "f.db")
    await Runner.run(agent, "hi", session=session)
    Runner.run_sync(agent, "hi", session=session)
    Runner.run_streamed(agent, "hi", session=session)
    await Runner.run(agent, "hi", session=InMemorySession("s"))
    await Runner.run(agent, "hi", session=RetryingSession(session))
    await Runner.run(agent, "hi", session=object())  # type: ignore[arg-type]
    await Runner.run(agent, "hi", session="s")  # type: ignore[arg-type]

async def items(session: SQLiteSession, theirs: TheirSession) -> list[TResponseInputItem]:
    either: list[Session] = [session, theirs]
    await session.add_items(await theirs.get_items())
    return await session.get_items(limit=len(either))
""",
    "items": """
import agents
from recollect import SQLiteSession, TResponseInputItem

async def items(session: SQLiteSession, theirs: agents.SQLiteSession) -> list[TResponseInputItem]:
    ours: list[TResponseInputItem] = [{"role": "user", "content": "hi"}]
    await theirs.add_items(ours)
    wrong: list[TResponseInputItem] = ["hi"]  # type: ignore[list-item]
    both: list[agents.TResponseInputItem] = [*ours, *wrong, *await session.get_items()]
    return both
""",
    "callbacks": """
from agents import RunConfig, SessionSettings
from recollect import chain_callbacks, drop_sensitive, limit_history, mask_sensitive, summarize_head
from recollect import SQLiteSession

callback = chain_callbacks(
    limit_history(3), drop_sensitive(["a"]), mask_sensitive(["a"]), summarize_head(lambda items: "", 3)
)
RunConfig(session_input_callback=callback)
RunConfig(session_input_callback=limit_history(3))
RunConfig(session_input_callback=3)  # type: ignore[arg-type]

def limited(settings: SessionSettings) -> SQLiteSession:
    return SQLiteSession("s", session_settings=settings)
""",
    "compaction": """
from agents import OpenAIResponsesCompactionSession
from recollect import SQLiteSession

OpenAIResponsesCompactionSession("s", underlying_session=SQLiteSession("s"))
OpenAIResponsesCompactionSession("s", underlying_session=object())  # type: ignore[arg-type]
""",
    "encryption": """
from agents.extensions.memory import EncryptedSession
from recollect import SQLiteSession

EncryptedSession("s", underlying_session=SQLiteSession("s"), encryption_key="k")
EncryptedSession("s", underlying_session=object(), encryption_key="k")  # type: ignore[arg-type]
""",
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> dict[str, list[str]]:
    """What mypy says of each snippet; asked once, as most of the time goes into reading the SDK."""
    folder = tmp_path_factory.mktemp("snippets")
    for name, text in SNIPPETS.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "mypy.ini").write_text(CONFIG.format(source=ROOT / "src", skipped=SKIPPED))
    assert pytestconfig.cache is not None
    cache = pytestconfig.cache.mkdir("mypy-snippets")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", f"--cache-dir={cache}", "--no-pretty"]
        + [f"{name}.py" for name in SNIPPETS],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    lines = done.stdout.splitlines()
    return {name: [line for line in lines if line.startswith(f"{name}.py:")] for name in SNIPPETS} | {
        "elsewhere": [line for line in lines[:-1] if not line.startswith(tuple(SNIPPETS))]
    }


@pytest.mark.parametrize("snippet", [*SNIPPETS, "elsewhere"])
def test_no_complaints_of_mypy(complaints: dict[str, list[str]], snippet: str) -> None:
    assert complaints[snippet] == []
