"""Commands, run in this process or in one of their own, in a folder of their own."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agents as _agents  # noqa: F401
import psycopg
import pytest

from recollect.cli import main
from recollect.memory.store import MemoryStore

# The SDK is imported above because its client of MCP keeps the standard error that it finds then for good. If
# a command imported it first, that would be the one of `capsys`, and later tests would have no other.
TALK = [
    {"role": "user", "content": "Hello! I live in Lisbon and I love pottery."},
    {"role": "assistant", "content": "Nice to meet you."},
]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    told: str
    """What it said on standard error."""

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and nothing configured."""
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        if not name.startswith("RECOLLECT_TEST_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def run_command(*arguments: str) -> Ended:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(str(ended.code))
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run_command


@pytest.fixture
def empty_database(postgres_url: str) -> Iterator[str]:
    """A database of its own on the server."""
    name = f"cli_{os.getpid()}"
    with closing(psycopg.connect(postgres_url, autocommit=True)) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield postgres_url.rpartition("/")[0] + f"/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def run_process(*arguments: str, **variables: str) -> Ended:
    """Run a command as a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "recollect", *arguments],
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def learn(path: Path | str = "recollect.db", tenant: str = "default") -> str:
    """Have a conversation recorded and learned from; returns its id."""

    async def record() -> str:
        async with MemoryStore(path, tenant=tenant, workers=1, embedder=None) as store:
            conversation = await store.record_conversation("assistant", "ada", TALK)
            await store.drain(60)
            return conversation.conversation_id

    return asyncio.run(record())
