"""Environments with the wheel of Recollect and what a page tells its reader to install, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..documentation import ROOT

DISTRIBUTION = "recollect-memory"
LOCK = ROOT / "requirements.lock"
LOCK_OF_MCP1 = ROOT / "requirements-mcp1.lock"


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Environment:
    """A virtual environment. The versions of its packages are those of the lock."""

    def __init__(self, folder: Path) -> None:
        self.python = str(folder / "bin" / "python")
        """The path of its interpreter."""

    @classmethod
    def create(cls, folder: Path, wheel: Path, packages: str) -> "Environment":
        """Install `packages`, with spaces between them. `recollect-memory` is the wheel."""
        environment = cls(folder)
        lock = LOCK_OF_MCP1 if "[crewai]" in packages or "[strands]" in packages else LOCK
        names = [_from_wheel(name, wheel) for name in packages.split()]
        options = ["--quiet", "--constraint", str(lock), *names]
        uv = [sys.executable, "-m", "uv"]
        subprocess.run(
            [*uv, "venv", "--quiet", "--seed", "--python", sys.executable, str(folder)], check=True
        )
        installing = [*uv, "pip", "install", "--python", environment.python, *options]
        if subprocess.run(installing, check=False, capture_output=True).returncode != 0:
            # uv does not read pip's configuration, so where it cannot reach an index, pip installs the same.
            subprocess.run([environment.python, "-m", "pip", "install", *options], check=True)
        return environment

    def run(
        self, folder: Path, *arguments: str, variables: Mapping[str, str] | None = None, given: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run Python in `folder`, without this source tree and without our own variables."""
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
        return subprocess.run(
            [self.python, *arguments], cwd=folder, env={**kept, **(variables or {})}, input=given,
            capture_output=True, text=True, check=False,
        )  # fmt: skip


def _from_wheel(name: str, wheel: Path) -> str:
    if not name.startswith(DISTRIBUTION):
        return name
    return f"{name} @ {wheel.as_uri()}"
