"""Planted contents and secrets, used by command, over MCP, by a worker and from code: no log has any of them.

What the service tells is looked at in `tests/server/proof/test_nothing_leaks.py`.
"""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from recollect import EncryptedSession, SQLiteSession, StrategySession, Summarize, WrongKeyError
from recollect.cli import main
from recollect.memory.extraction import OpenAIExtractor
from recollect.memory.pipeline.runner import RunOptions
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop
from recollect.testing.providers import ProviderServer, Refuse, Reply

SAID = "planted-said"
USER = "planted-user"
PROVIDER_KEY = "planted-provider-key"
PASSWORD = "planted-password"
PLANTED = (SAID, USER, PROVIDER_KEY, PASSWORD)
ASKED = "POST /v1/chat/completions"
TALK = [{"role": "user", "content": f"My name is {SAID}. I live in {SAID}."}]
LOUD = {"RECOLLECT_LOGGING__LEVEL": "debug", "RECOLLECT_MEMORY__EMBEDDER": "none"}


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    with ProviderServer(PROVIDER_KEY) as server:
        yield server


def check(told: str) -> None:
    found = {planted: line for planted in PLANTED for line in told.splitlines() if planted in line}
    assert found == {}


def run(*arguments: str, given: str = "", environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """A command in a process of its own, which tells all it can; its output, and what it says beside."""
    ended = subprocess.run(
        [sys.executable, "-m", "recollect", *arguments],
        input=given,
        env=os.environ | LOUD | dict(environment or {}),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return ended.stdout, ended.stderr


# --- commands ---


def test_commands_log_nothing_planted_and_repeat_no_password(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    place, owner = ("--url", str(tmp_path / "memory.db")), ("--user", USER)
    unreachable = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:9/x"
    (tmp_path / "bad.json").write_text(f'{{"{SAID}": "{SAID}"')
    commands = [
        ("remember", SAID, *owner, *place),
        ("recall", SAID, *owner, *place),
        ("memory", "show", *owner, *place),
        ("export", *owner, *place),
        ("import", str(tmp_path / "bad.json"), *place),
        ("backup", str(tmp_path / "copy.db"), *place),
        ("doctor", *place),
        ("erase", *owner, "--yes", *place),
        ("memory", "list", "--url", unreachable),
        ("migrate", "--url", unreachable),
        ("doctor", "--url", unreachable),
    ]
    with caplog.at_level(logging.DEBUG, "recollect"):
        for command in commands:
            main(command)
            said = capsys.readouterr()
            assert PASSWORD not in said.out + said.err, command
            assert SAID not in said.err, command
    check("\n".join(map(caplog.handler.format, caplog.records)))


# --- a worker, whose model fails and says what it was asked ---


async def record(database: Path) -> None:
    async with MemoryStore(database, workers=0, embedder=None) as store:
        await store.record_conversation("assistant", USER, TALK)


def test_a_worker_whose_model_fails_logs_nothing_planted(tmp_path: Path, provider: ProviderServer) -> None:
    asyncio.run(record(tmp_path / "memory.db"))
    provider.fail_next(ASKED, Refuse(400, f"{SAID} {PROVIDER_KEY}"), times=20)
    configuration = tmp_path / "recollect.toml"
    learning = 'extractor = "openai:gpt-test"\nembedder = "none"\n'
    configuration.write_text(f'[database]\nurl = "{tmp_path}/memory.db"\n[memory]\n{learning}')
    openai = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": PROVIDER_KEY}
    out, told = run("worker", "--config", str(configuration), "--until-idle", environment=openai)
    assert "1 failed" in out, (out, told)
    assert provider.requests(ASKED)
    check(out + told)


# --- MCP ---


def asked(number: int, method: str, **parameters: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n"


def test_tools_over_standard_input_log_nothing_planted(tmp_path: Path) -> None:
    client = {"name": "t", "version": "0"}
    hello = asked(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"
    calls = [
        asked(1, "tools/call", name="remember", arguments={"text": SAID, "kind": "profile"}),
        asked(2, "tools/call", name="recall", arguments={"query": SAID}),
        asked(3, "tools/call", name=SAID, arguments={SAID: SAID}),
        f"{SAID}\n",
    ]
    place = ("--user", USER, "--url", str(tmp_path / "memory.db"))
    out, told = run("mcp", *place, given="".join((hello, ready, *calls)))
    assert '"serverInfo"' in out
    check(told)


# --- from code ---


@in_event_loop
async def test_code_that_works_and_fails_logs_nothing_planted(
    tmp_path: Path, provider: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "recollect"):
        await use_sessions(tmp_path / "sessions.db")
        await learn(tmp_path / "memory.db", provider)
    assert caplog.records, "something was logged"
    check("\n".join(map(caplog.handler.format, caplog.records)))


async def use_sessions(database: Path) -> None:
    """An encrypted history, one that another key does not open, and a summarizer that fails."""

    def fail(*_: object) -> str:
        raise RuntimeError(SAID)

    said = [{"role": role, "content": SAID} for role in ("user", "assistant") * 6]
    async with EncryptedSession("locked", SQLiteSession("locked", database), PASSWORD) as session:
        await session.add_items(said)
        assert len(await session.get_items()) == len(said)
    async with EncryptedSession("locked", SQLiteSession("locked", database), "another") as session:
        with pytest.raises(WrongKeyError):
            await session.get_items()
    strategy = Summarize(max_user_turns=2)
    async with StrategySession(SQLiteSession("plain", database), strategy, summarizer=fail) as session:
        await session.add_items(said)
        await session.get_items()


async def learn(database: Path, provider: ProviderServer) -> None:
    """Learning from a model that refuses, then from one whose answers cannot be read; then it is erased."""
    provider.fail_next(ASKED, Refuse(400, f"{SAID} {PROVIDER_KEY}"), times=2)
    provider.chat.reply_always(Reply(f"I say {SAID}."))
    extractor = OpenAIExtractor("gpt-test", base_url=provider.base_url, api_key=PROVIDER_KEY)
    options = RunOptions(attempts=1)
    async with MemoryStore(database, extractor=extractor, embedder=None, options=options, workers=1) as store:
        for _ in range(2):
            await store.record_conversation("assistant", USER, TALK)
            await store.drain(60)
        assert (await store.coverage()).failed == 2
        await store.search_memories(SAID, "assistant", USER)
        await store.erase_user(USER)
    await extractor.aclose()
