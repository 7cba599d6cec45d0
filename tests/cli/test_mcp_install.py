"""`recollect mcp install`: entries in the files of coding agents, added, shown, and taken out again."""

import io
import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from recollect.cli import main
from recollect.cli.mcp_clients import jsonc
from recollect.cli.mcp_clients.clients import CLIENTS

ALL = list(CLIENTS)
VSCODE = """\
// My servers. Do not sort.
{
    "inputs": [{"id": "k", "type": "promptString"}],
    "servers": {
        /* the files */
        "files": { "command": "npx", "args": ["-y", "files"] }, // keep me
    },
}
"""
CODEX = """\
# My settings
model = "gpt-5"   # the good one

[mcp_servers.files]
command = "npx"
args = ["-y", "files"]

[profiles.fast]
model = "gpt-5-mini"
"""
CLAUDE = '{"numStartups":7,"oauthAccount":{"token":"planted-3f"},"mcpServers":{},"big":12345678901234567890}'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory and a project of this test."""
    folder = tmp_path / "home"
    (tmp_path / "project").mkdir()
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(tmp_path / "project")
    for name in ("RECOLLECT_USER", "RECOLLECT_AGENT", "RECOLLECT_URL", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def install(*arguments: str) -> int:
    return main(["mcp", "install", *arguments, "--user", "ada", "--yes"])


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def entry_in(path: Path, client: str) -> Any:
    text = path.read_text()
    read = tomllib.loads(text) if path.suffix == ".toml" else jsonc.parse(text).value
    key = {"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")
    return read[key]["recollect"]


@pytest.mark.skipif(sys.platform != "linux", reason="VS Code has other places elsewhere")
def test_each_client_gets_its_entry_where_it_looks(home: Path) -> None:
    assert install(*ALL) == 0
    places = {
        "claude-code": ".claude.json",
        "codex": ".codex/config.toml",
        "claude-desktop": ".config/Claude/claude_desktop_config.json",
        "windsurf": ".codeium/windsurf/mcp_config.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json",
    }
    for client, place in places.items():
        entry = entry_in(home / place, client)
        assert Path(entry["command"]).is_absolute()
        assert entry["args"][-5:] == ["mcp", "--user", "ada", "--url", str(home / "recollect.db")]
        assert entry.get("type") == ("stdio" if client == "vscode" else None)


def test_a_project_gets_files_that_others_can_use_too() -> None:
    of_projects = [name for name in ALL if CLIENTS[name].project_file]
    assert install(*of_projects, "--scope", "project") == 0
    places = [".mcp.json", ".codex/config.toml", ".cursor/mcp.json", ".vscode/mcp.json"]
    for client, place in zip(of_projects, places, strict=True):
        entry = entry_in(Path(place), client)
        assert (entry["command"], entry["args"]) == ("recollect", ["mcp", "--user", "ada"])


def test_client_without_files_of_projects_is_refused(home: Path) -> None:
    assert install("windsurf", "cursor", "--scope", "project") == 2
    assert not Path(".cursor").exists()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("client", "place", "text"),
    [
        ("vscode", ".vscode/mcp.json", VSCODE),
        ("vscode", ".vscode/mcp.json", VSCODE.replace("\n", "\r\n")),
        ("codex", ".codex/config.toml", CODEX),
        ("codex", ".codex/config.toml", CODEX.rstrip("\n")),
        ("claude-code", ".mcp.json", CLAUDE),
        ("claude-code", ".mcp.json", "{}"),
        ("claude-code", ".mcp.json", ""),
        ("cursor", ".cursor/mcp.json", '{\n\t"mcpServers": {\n\t\t"a": {"url": "http://x"}\n\t}\n}\n'),
        ("cursor", ".cursor/mcp.json", '{"other": [1, 2.50, {}]}\n'),
    ],
)
def test_the_rest_of_a_file_stays_and_undo_restores_every_byte(client: str, place: str, text: str) -> None:
    path = write(Path(place), text)
    assert install(client, "--scope", "project") == 0
    assert entry_in(path, client)["command"] == "recollect"
    changed = path.read_bytes().decode()
    # Something was put in, and nothing taken out.
    assert any(
        changed.startswith(text[:cut]) and changed.endswith(text[cut:]) for cut in range(len(text) + 1)
    )
    assert install(client, "--scope", "project", "--undo") == 0
    assert path.read_bytes().decode() == text
    assert [each.name for each in path.parent.iterdir() if "recollect" in each.name] == []


def test_a_second_time_changes_nothing_and_other_options_replace_the_entry(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for client, place, text in (
        ("vscode", ".vscode/mcp.json", VSCODE),
        ("codex", ".codex/config.toml", CODEX),
    ):
        path = write(Path(place), text)
        install(client, "--scope", "project")
        once = path.read_bytes()
        assert install(client, "--scope", "project") == 0
        assert path.read_bytes() == once
        assert "has the entry already" in capsys.readouterr().out
        assert main(["mcp", "install", client, "--scope", "project", "--user", "bob", "--yes"]) == 0
        assert entry_in(path, client)["args"] == ["mcp", "--user", "bob"]
        assert install(client, "--scope", "project", "--undo") == 0
        assert path.read_bytes().decode() == text


def test_undo_after_other_changes_takes_only_the_entry_out() -> None:
    path = write(Path(".vscode/mcp.json"), VSCODE)
    install("vscode", "--scope", "project")
    write(path, path.read_text().replace("Do not sort", "Sorted"))
    assert install("vscode", "--scope", "project", "--undo") == 0
    assert jsonc.parse(path.read_text()).value == jsonc.parse(VSCODE).value
    assert "Sorted" in path.read_text()
    assert "keep me" in path.read_text()

    table = write(Path(".codex/config.toml"), CODEX)
    install("codex", "--scope", "project")
    write(table, table.read_text() + "\n[tail]\nx = 1\n")
    assert install("codex", "--scope", "project", "--undo") == 0
    assert tomllib.loads(table.read_text()) == {**tomllib.loads(CODEX), "tail": {"x": 1}}


def test_undo_removes_a_file_that_install_made(capsys: pytest.CaptureFixture[str]) -> None:
    install("claude-code", "codex", "--scope", "project")
    assert install("claude-code", "codex", "--scope", "project", "--undo") == 0
    assert not Path(".mcp.json").exists()
    assert not Path(".codex/config.toml").exists()
    assert install("cursor", "--undo") == 0
    assert "has no entry" in capsys.readouterr().out


def test_a_dry_run_writes_nothing_and_shows_only_our_lines(capsys: pytest.CaptureFixture[str]) -> None:
    path = write(Path(".mcp.json"), CLAUDE)
    before = path.read_bytes()
    assert install("claude-code", "--scope", "project", "--dry-run") == 0
    shown = capsys.readouterr().out
    assert '"recollect": {' in shown
    assert "planted-3f" not in shown
    assert path.read_bytes() == before
    assert list(Path().iterdir()) == [path]


def test_without_a_terminal_it_asks_for_yes_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["mcp", "install", "cursor", "--user", "ada"]) == 2
    assert "pass --yes to write these changes" in capsys.readouterr().err
    assert not (Path.home() / ".cursor").exists()


class _Terminal(io.StringIO):
    """A terminal whose user says yes after something else has changed a file."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__("y\n")
        self.path, self.text = path, text

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        write(self.path, self.text)
        return super().readline(-1 if size is None else size)


@pytest.mark.parametrize("before", [CLAUDE, None])
@pytest.mark.parametrize("undo", [True, False])
def test_a_file_that_changes_while_the_user_is_asked_keeps_its_change(
    before: str | None, undo: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(".mcp.json") if before is None else write(Path(".mcp.json"), before)
    if undo:
        install("claude-code", "codex", "--scope", "project")
    other = Path(".codex/config.toml")
    others = other.read_bytes() if undo else None
    monkeypatch.setattr("sys.stdin", _Terminal(path, '{"numStartups": 8}'))
    command = ["mcp", "install", "codex", "claude-code", "--scope", "project", "--user", "ada"]
    assert main([*command, *(["--undo"] if undo else [])]) == 1
    assert f"{path} was changed meanwhile; run this again" in capsys.readouterr().err.replace(
        f"{Path.cwd()}/", ""
    )
    assert path.read_text() == '{"numStartups": 8}'
    assert (other.read_bytes() if other.exists() else None) == others


@pytest.mark.parametrize(
    ("client", "place", "text", "fault"),
    [
        ("claude-code", ".mcp.json", '{\n"a": 1,\n"b" 2}', "is not valid JSON, in line 3"),
        ("claude-code", ".mcp.json", '{"a": nope}', "is not valid JSON, in line 1"),
        ("claude-code", ".mcp.json", "[1]", "must hold a JSON object"),
        (
            "claude-code",
            ".mcp.json",
            '{"mcpServers": []}',
            "has something else than an object under mcpServers",
        ),
        ("cursor", ".cursor/mcp.json", "{" * 500, "is not valid JSON"),
        ("codex", ".codex/config.toml", 'a = 1\nb = "planted', "is not valid TOML, at "),
        (
            "codex",
            ".codex/config.toml",
            'mcp_servers = {files = {command = "x"}}',
            "cannot be changed safely",
        ),
        ("codex", ".codex/config.toml", "mcp_servers = 3", "has something else than tables"),
        ("codex", ".codex/config.toml", "\udcff", "is not UTF-8"),
    ],
)
def test_a_broken_file_is_named_and_left_alone(
    client: str, place: str, text: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(place)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    assert install(client, "--scope", "project") == 1
    told = capsys.readouterr().err
    assert fault in told
    assert place in told
    assert "it was left as it is" in told
    assert "planted" not in told
    assert path.read_bytes() == before


def test_one_broken_file_stops_all_changes() -> None:
    write(Path(".mcp.json"), "{")
    assert install("codex", "claude-code", "--scope", "project") == 1
    assert not Path(".codex").exists()


def test_modes_links_and_copies_are_kept(home: Path) -> None:
    real = write(home / "dotfiles/claude.json", CLAUDE)
    real.chmod(0o600)
    (home / ".claude.json").symlink_to(real)
    assert install("claude-code") == 0
    assert (home / ".claude.json").is_symlink()
    assert entry_in(real, "claude-code")
    copy = home / ".claude.json.before-recollect"
    assert copy.read_text() == CLAUDE
    assert [stat.S_IMODE(path.stat().st_mode) for path in (real, copy)] == [0o600, 0o600]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:planted-5c@db/recollect",
        "postgresql://ada@db/recollect?password=planted-5c",
        "https://planted-5c@memory.example.org",
    ],
)
def test_a_password_is_not_written(home: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert install("cursor", "--url", url) == 2
    assert "planted-5c" not in "".join(capsys.readouterr())
    assert not (home / ".cursor").exists()
    assert install("cursor", "--url", "postgresql://ada@db/recollect") == 0


def test_for_a_service_it_says_where_the_key_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert install("cursor", "--url", "https://memory.example.org") == 0
    assert "set RECOLLECT_KEY" in capsys.readouterr().out
    assert install("cursor", "--undo") == 0
    assert "RECOLLECT_KEY" not in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--user", "--agent", "--url"])
def test_an_empty_option_is_refused(home: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["mcp", "install", "cursor", option, "", "--yes"]) == 2
    assert f"{option} is empty" in capsys.readouterr().err
    assert not (home / ".cursor").exists()


def test_a_name_that_begins_with_a_dash_stays_a_name(home: Path) -> None:
    assert main(["mcp", "install", "cursor", "--user=-x", "--yes"]) == 0
    assert "--user=-x" in entry_in(home / ".cursor/mcp.json", "cursor")["args"]


def test_claude_code_and_codex_may_have_another_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "work"))
    monkeypatch.setenv("CODEX_HOME", str(home / "work"))
    assert install("claude-code", "codex") == 0
    assert entry_in(home / "work/.claude.json", "claude-code")
    assert entry_in(home / "work/config.toml", "codex")


def test_the_installed_command_starts(home: Path) -> None:
    """The entry is what a client runs: the server answers its first message."""
    install("cursor")
    entry = entry_in(home / ".cursor/mcp.json", "cursor")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    ran = subprocess.run(
        [entry["command"], *entry["args"]],
        input=json.dumps(hello) + "\n",
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "RECOLLECT_MEMORY__EMBEDDER": "none"},
    )
    assert json.loads(ran.stdout.splitlines()[0])["result"]["serverInfo"]["name"], ran.stderr
