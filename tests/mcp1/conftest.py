"""Tests of frameworks that need an older mcp. `tests/integrations/test_mcp1.py` runs them in `.venv-mcp1`."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("strands") else ["test_*.py"]  # in the main environment


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.proof)])
def adapter_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes can open."""
    return os.environ["RECOLLECT_TEST_URL"] if request.param == "postgres" else str(tmp_path / "adapter.db")
