"""Strands and CrewAI need an mcp below 2, and our server a newer one: their tests run in `.venv-mcp1`."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}  # CrewAI would call home
PYTHON = ROOT / ".venv-mcp1" / "bin" / "python"


def run_tests(marks: str, url: str = "") -> None:
    assert PYTHON.exists(), "run `make .venv-mcp1/.ready` first"
    options = ["-q", "-m", marks, "-p", "no:cacheprovider", "--confcutdir", "tests/mcp1", "-W", "default"]
    ended = subprocess.run(
        [PYTHON, "-m", "pytest", *options, "tests/mcp1"],
        cwd=ROOT,
        env={**os.environ, **QUIET, "RECOLLECT_TEST_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-1000:]
    assert "skipped" not in ended.stdout


@pytest.mark.timeout(300)
def test_frameworks_with_an_older_mcp() -> None:
    run_tests("not proof")


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_long_campaigns_of_frameworks_with_an_older_mcp(postgres_url: str) -> None:
    run_tests("proof", postgres_url)
