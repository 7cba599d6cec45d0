"""A database of each kind."""

from pathlib import Path
from uuid import uuid4

import pytest


@pytest.fixture(params=["file", "memory", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A SQLite file, a SQLite database in memory, and PostgreSQL."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return str(tmp_path / "checkpoints.db") if request.param == "file" else ":memory:"


@pytest.fixture(params=["file", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes can open."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return str(tmp_path / "checkpoints.db")


@pytest.fixture
def thread_id() -> str:
    """A thread that no other test uses."""
    return str(uuid4())
