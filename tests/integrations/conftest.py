"""A database of each kind, for adapters."""

from pathlib import Path

import pytest


# `test_framework.py` tests what adapters stand on with both databases; `make proof` tests each adapter so.
@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.proof)])
def adapter_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes can open."""
    if request.param == "postgres":
        found: str = request.getfixturevalue("postgres_url")
        return found
    return str(tmp_path / "adapter.db")
