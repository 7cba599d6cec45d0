"""Databases for chats, and what is opened on them."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..sessions.postgres.database import sql
from .chats import Place, open_chat

_numbers = itertools.count()


@pytest.fixture(scope="session")
def chat_postgres(postgres_url: str) -> Iterator[str]:
    """A database of our own on the server that all share, with its tables."""
    name = f"chats_{os.getpid()}_{next(_numbers)}"
    sql(postgres_url, f"CREATE DATABASE {name}")
    url = postgres_url.rpartition("/")[0] + f"/{name}"
    asyncio.run(_make_tables(url))
    yield url
    sql(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


async def _make_tables(url: str) -> None:
    async with open_chat(Place(url, create_tables=True)) as chat:
        await chat.begin()
        await chat.say("Hello.")


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of database."""
    if request.param == "file":
        return Place(str(tmp_path / "chat.db"))
    url: str = request.getfixturevalue("chat_postgres")
    sql(url, "TRUNCATE memories, sdk_agent_sessions CASCADE")
    return Place(url)


@pytest.fixture
def file_place(tmp_path: Path) -> Place:
    """A file: where one kind of database is enough."""
    return Place(str(tmp_path / "chat.db"))
