"""`recollect capture install` and its undo: the files of all agents, byte for byte."""

import json
import subprocess
from pathlib import Path

import pytest

from recollect.capture.projects import is_within, project_of
from recollect.cli import main
from recollect.cli.hook_files import FILES, HooksFormat

WHO = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
PLACES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "cursor": ".cursor/hooks.json",
    "vscode": ".copilot/hooks/recollect.json",
}
OTHERS = """{
  // mine
  "model": "x",
  "hooks": {
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}], // keep
  },
}
"""


@pytest.mark.parametrize(("agent", "place"), PLACES.items())
def test_install_and_undo_leave_no_trace(agent: str, place: str, home: Path) -> None:
    assert main(["capture", "install", agent, "--yes"]) == 0
    written = (home / place).read_text()
    hooks = json.loads(written)["hooks"]
    assert hooks
    assert all("hook_client.py" in json.dumps(each) for each in hooks.values())
    assert main(["capture", "install", agent, "--yes"]) == 0
    assert (home / place).read_text() == written
    assert main(["capture", "install", agent, "--undo", "--yes"]) == 0
    assert not (home / place).exists()


def test_file_with_comments_and_other_hooks_gets_its_bytes_back(home: Path) -> None:
    path = home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(OTHERS)
    assert main(["capture", "install", "claude-code", "--yes"]) == 0
    assert path.read_text().startswith('{\n  // mine\n  "model": "x",\n')
    assert "say done" in path.read_text()
    assert main(["capture", "install", "claude-code", "--undo", "--yes"]) == 0
    assert path.read_text() == OTHERS


def test_undo_after_other_changes_takes_out_only_our_hooks() -> None:
    form = HooksFormat()
    hook = {"type": "command", "command": "python hook_client.py"}
    installed = form.add(OTHERS, {"Stop": hook, "SessionStart": hook})
    edited = installed.replace('"model": "x"', '"model": "y"')
    assert form.entry_of(edited) == {"Stop": hook, "SessionStart": hook}
    removed = form.remove(edited)
    assert "hook_client" not in removed
    assert "say done" in removed
    assert '"model": "y"' in removed


def test_dry_run_writes_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "install", *PLACES, "--dry-run"]) == 0
    assert "hook_client.py" in capsys.readouterr().out
    assert list(home.iterdir()) == []


def test_folders_of_variables_and_projects_count(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    assert main(["capture", "install", "claude-code", "codex", "--yes"]) == 0
    assert (home / "claude/settings.json").exists()
    assert (home / "codex/hooks.json").exists()
    arguments = ["--scope", "project", "--folder", str(tmp_path), "--yes"]
    assert main(["capture", "install", *FILES, *arguments]) == 0
    assert (tmp_path / ".claude/settings.local.json").exists()
    assert (tmp_path / ".github/hooks").exists()


def test_command_quotes_folders_and_never_fails(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_CAPTURE_HOME", str(home / "a folder; touch x"))
    assert main(["capture", "install", "codex", "--yes"]) == 0
    hooks = json.loads((home / ".codex/hooks.json").read_text())["hooks"]
    command = hooks["Stop"][0]["hooks"][0]["command"]
    assert command.endswith(f"codex '{home}/a folder; touch x' || :")


def test_service_as_database_and_windows_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", "install", "codex", "--url", "https://memory.example", "--yes"]) == 2
    monkeypatch.setattr("sys.platform", "win32")
    assert main(["capture", "install", "codex", "--yes"]) == 2
    assert "import claude-code --follow" in capsys.readouterr().err


def test_status_says_what_is_installed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["capture", "install", "codex", "--yes"]) == 0
    assert main(["capture", "exclude", str(home / "secret")]) == 0
    capsys.readouterr()
    assert main(["capture", "status"]) == 0
    shown = capsys.readouterr().out
    assert "codex: installed" in shown
    assert "claude-code: not installed" in shown
    assert f"left alone: {home}/secret" in shown
    assert "daemon: not running, 0 events waiting" in shown


def test_link_into_an_excluded_folder_is_excluded(home: Path) -> None:
    (home / "secret/part").mkdir(parents=True)
    (home / "link").symlink_to(home / "secret")
    assert is_within(str(home / "link/part"), [str(home / "secret")])
    assert not is_within(str(home), [str(home / "secret")])


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("git@git.example:acme/shop.git", "git.example/acme/shop"),
        ("https://ada:word@Git.Example/acme/shop.git", "git.example/acme/shop"),
        ("ssh://git@git.example:2222/acme/shop", "git.example/acme/shop"),
    ],
)
def test_project_is_named_after_its_remote_without_credentials(remote: str, name: str) -> None:
    assert project_of("/home/ada/shop", remote) == name


def test_worktrees_share_the_project_of_their_repository(tmp_path: Path) -> None:
    repository, worktree = tmp_path / "shop", tmp_path / "shop-next"
    for arguments in (
        ["init", "-q", str(repository)],
        ["-C", str(repository), "remote", "add", "origin", "git@git.example:acme/shop.git"],
        ["-C", str(repository), *WHO, "commit", "-q", "--allow-empty", "-m", "x"],
        ["-C", str(repository), "worktree", "add", "-q", str(worktree)],
    ):
        subprocess.run(["git", *arguments], check=True)
    (worktree / "src").mkdir()
    assert project_of(str(worktree / "src")) == project_of(str(repository)) == "git.example/acme/shop"
    assert project_of(str(tmp_path)) == str(tmp_path)
