"""`make test` says at once which programs are missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from . import system

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment whose path leads to make, a shell and Python, and to no apt-get."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("make", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    return {"PATH": str(programs)}


@pytest.mark.parametrize("target", ["test", "proof", "faults"])
def test_what_is_missing_ends_make_before_anything_is_made(
    bare: dict[str, str], tmp_path: Path, target: str
) -> None:
    folders = [f"VENV={tmp_path}/venv", f"MCP1={tmp_path}/mcp1"]
    command = ["make", "-C", str(ROOT), target, f"PYTHON={sys.executable}", *folders]
    ended = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    (line,) = [line for line in ended.stderr.splitlines() if not line.startswith("make")]
    assert "as root, run `apt-get install nodejs npm chromium" in line
    assert not (tmp_path / "venv").exists()


def test_a_user_who_is_not_root_installs_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    called = tmp_path / "called"
    apt = tmp_path / "apt-get"
    apt.write_text(f"#!/bin/sh\necho $@ >> {called}\n")
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert system.main("test") == 1
    assert not called.exists()
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert system.main("test") == 1, "they are still missing"
    assert "install -y nodejs npm chromium" in called.read_text()


def test_an_old_node_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    node = tmp_path / "node"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    node.write_text("#!/bin/sh\necho v16.20.2\n")
    node.chmod(0o755)
    assert not system.is_there("node")
    node.write_text("#!/bin/sh\necho v20.1.0\n")
    assert system.is_there("node")


def test_a_browser_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RECOLLECT_TEST_CHROMIUM", raising=False)
    assert not system.is_there("chromium")
    monkeypatch.setenv("RECOLLECT_TEST_CHROMIUM", "/opt/browser")
    assert system.is_there("chromium")


def test_a_program_that_is_not_in_the_path_of_users_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    found = next(Path("/usr/sbin").iterdir())
    assert system.is_there(found.name)
