"""Hooks: what an agent is given, what is recorded, and that a failure of ours never reaches the agent."""

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.capture.settings import CaptureSettings, write_settings
from recollect.cli import main
from tests.capture.conftest import Writer
from tests.capture.daemons import (
    CLIENT,
    messages_in,
    rows_in,
    run_hook,
    silent_server,
    spooled,
    start_daemon,
    told,
    wait_for,
)

CWD = "/home/ada/shop"
Start = Callable[..., "subprocess.Popen[bytes]"]


def event(name: str, **more: Any) -> dict[str, Any]:
    return {"session_id": "s1", "cwd": CWD, "hook_event_name": name, **more}


@pytest.fixture
def folder(home: Path) -> Path:
    """The folder of capture, with settings."""
    found = home / ".recollect/capture"
    write_settings(found, CaptureSettings(str(home / "memory.db"), "ada", excluded=["/home/ada/secret"]))
    return found


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts daemons, and ends them and those that hooks have started."""
    started: list[subprocess.Popen[bytes]] = []

    def run(idle: str = "900") -> "subprocess.Popen[bytes]":
        started.append(start_daemon(folder, idle))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
    lock = folder / "lock"
    text = lock.read_text() if lock.exists() else ""
    if text and text not in [str(each.pid) for each in started]:
        _end(int(text))


def _end(process_id: int) -> None:
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        return


def remember(home: Path, text: str, agent: str = "assistant") -> None:
    assert main(["remember", text, "--user", "ada", "--agent", agent, "--url", str(home / "memory.db")]) == 0


def test_session_starts_with_pages_of_user_and_project(home: Path, folder: Path, start: Start) -> None:
    remember(home, "Ada lives in Lisbon.")
    remember(home, "The shop uses PostgreSQL.", f"code:{CWD}")
    remember(home, "The bank uses Oracle.", "code:/home/ada/bank")
    start()
    code, output = run_hook("claude-code", folder, event("SessionStart", source="startup"))
    assert code == 0
    assert "Lisbon" in told(output)
    assert "PostgreSQL" in told(output)
    assert "Oracle" not in told(output)


def test_prompt_is_given_what_is_recalled_if_anything(home: Path, folder: Path, start: Start) -> None:
    remember(home, "Ada lives in Lisbon.")
    start()
    asked = run_hook("codex", folder, event("UserPromptSubmit", prompt="Where does Ada live?"))
    assert "Lisbon" in told(asked[1])
    assert run_hook("codex", folder, event("UserPromptSubmit", prompt="Rename the function.")) == (0, "")


def test_cursor_gets_context_at_the_start_only(home: Path, folder: Path, start: Start) -> None:
    remember(home, "Ada lives in Lisbon.")
    start()
    begun = {"conversation_id": "c1", "workspace_roots": [CWD], "hook_event_name": "sessionStart"}
    assert "Lisbon" in run_hook("cursor", folder, begun)[1]
    asked = {**begun, "hook_event_name": "beforeSubmitPrompt", "prompt": "Where does Ada live?"}
    assert run_hook("cursor", folder, asked) == (0, "")
    wait_for(lambda: messages_in(home / "memory.db") == ["Where does Ada live?"])


@pytest.mark.usefixtures("start")
def test_without_daemon_event_is_spooled_and_delivered_once(home: Path, folder: Path, writer: Writer) -> None:
    writer.user("Use uv, not pip.").agent("Yes.")
    stopped = event("Stop", transcript_path=str(writer.path))
    for _ in range(2):  # the first of them starts a daemon
        assert run_hook("claude-code", folder, stopped) == (0, "")
    wait_for(lambda: messages_in(home / "memory.db") and not spooled(folder))
    assert messages_in(home / "memory.db") == ["Use uv, not pip.", "Yes."]


def test_what_was_said_is_recorded_and_learned_from(
    home: Path, folder: Path, writer: Writer, start: Start
) -> None:
    start()
    writer.user("Use uv, not pip.").agent("Yes.")
    run_hook("claude-code", folder, event("Stop", transcript_path=str(writer.path)))
    begun = event("SessionStart", source="startup")
    wait_for(lambda: "use uv, not pip" in told(run_hook("claude-code", folder, begun)[1]))
    writer.user("And ruff.").agent("Sure.")
    run_hook("claude-code", folder, event("SessionEnd", transcript_path=str(writer.path)))
    wait_for(lambda: len(messages_in(home / "memory.db")) == 4)


def test_subagents_are_recorded_with_their_session(
    home: Path, folder: Path, writer: Writer, start: Start
) -> None:
    start()
    writer.user("Look around.").agent("Done.")
    side = Writer(writer.path.parent / "s1/subagents/agent-a7.jsonl")
    side.user("Look at the tests.", isSidechain=True, agentId="a7")
    run_hook("claude-code", folder, event("SubagentStop", transcript_path=str(writer.path)))
    wait_for(lambda: rows_in(home / "memory.db", "SELECT 1 FROM agent_sessions") == [(1,), (1,)])
    assert "Look at the tests." not in messages_in(home / "memory.db")


def test_daemon_that_is_killed_loses_nothing(home: Path, folder: Path, writer: Writer, start: Start) -> None:
    writer.user("Use uv, not pip.").agent("Yes.")
    for number in range(2):
        process = start()
        writer.user(f"Question {number}?").agent(f"Answer {number}.")
        run_hook("claude-code", folder, event("Stop", transcript_path=str(writer.path)))
        process.kill()
        process.wait()
        (folder / "hook.sock").unlink()
    start()
    wait_for(lambda: not spooled(folder))
    expected = [text for number in range(2) for text in (f"Question {number}?", f"Answer {number}.")]
    assert messages_in(home / "memory.db") == ["Use uv, not pip.", "Yes.", *expected]


def test_hook_that_is_killed_leaves_daemon_and_spool_whole(home: Path, folder: Path, start: Start) -> None:
    remember(home, "Ada lives in Lisbon.")
    start()
    command = [sys.executable, "-I", "-S", CLIENT, "claude-code", str(folder), "60"]
    for part in (b"", b'{"session_id": "s1", "hook'):
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(part)
        process.stdin.flush()
        process.kill()
        process.wait()
        process.stdin.close()
    assert "Lisbon" in run_hook("claude-code", folder, event("SessionStart"))[1]
    assert spooled(folder) == []


def test_daemon_that_does_not_answer_holds_no_agent_up(folder: Path) -> None:
    server = silent_server(folder)
    try:
        assert run_hook("claude-code", folder, event("Stop"), "0.2") == (0, "")
    finally:
        server.close()
    assert len(spooled(folder)) == 1


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_folder_that_others_can_enter_gets_no_event(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    assert run_hook("claude-code", folder, event("Stop")) == (0, "")
    assert not (folder / "spool").exists()


def test_failure_of_the_hook_is_logged_and_hidden(tmp_path: Path, folder: Path) -> None:
    assert run_hook("claude-code", tmp_path / "missing", event("Stop")) == (0, "")
    (folder / "spool").write_text("in the way")
    assert run_hook("claude-code", folder, event("Stop")) == (0, "")
    assert (folder / "hook.log").read_text() == "hook failed (FileExistsError)\n"


def test_paused_capture_starts_nothing(folder: Path) -> None:
    assert main(["capture", "pause"]) == 0
    assert run_hook("claude-code", folder, event("Stop")) == (0, "")
    assert not (folder / "spool").exists()
    assert main(["capture", "resume"]) == 0
    assert not (folder / "paused").exists()


def test_excluded_project_is_neither_recorded_nor_told(
    home: Path, folder: Path, writer: Writer, start: Start
) -> None:
    remember(home, "Ada lives in Lisbon.")
    start()
    writer.user("Use uv, not pip.")
    secret = {"cwd": "/home/ada/secret/part", "transcript_path": str(writer.path)}
    assert run_hook("claude-code", folder, {**event("SessionStart"), **secret}) == (0, "")
    assert run_hook("claude-code", folder, {**event("Stop"), **secret}) == (0, "")
    assert spooled(folder) == []


def test_prompts_without_transcripts_are_noted_without_secrets(
    home: Path, folder: Path, start: Start
) -> None:
    start()
    secret = "ghp_" + "a1B2" * 9
    run_hook("vscode", folder, event("UserPromptSubmit", prompt=f"My token is {secret}."))
    (message,) = wait_for(lambda: messages_in(home / "memory.db"))
    wait_for(lambda: not spooled(folder))
    assert secret not in message
    for path in [*folder.rglob("*"), *home.glob("memory.db*")]:
        assert not path.is_file() or secret.encode() not in path.read_bytes()


def test_state_of_work_comes_back_after_a_compaction(
    home: Path, folder: Path, writer: Writer, start: Start
) -> None:
    start()
    writer.user("Make the search faster.").call("Edit", {"file_path": "src/search.py"}, "ok")
    todos = [{"content": "Measure it", "status": "pending"}, {"content": "Profile it", "status": "completed"}]
    writer.call("TodoWrite", {"todos": todos}, "ok").agent("The index is ready.")
    run_hook("claude-code", folder, event("PreCompact", transcript_path=str(writer.path)))
    wait_for(lambda: messages_in(home / "memory.db") and not spooled(folder))
    resumed = told(run_hook("claude-code", folder, event("SessionStart", source="resume"))[1])
    assert "Measure it" not in resumed
    after = told(run_hook("claude-code", folder, event("SessionStart", source="compact"))[1])
    for words in ("Make the search faster.", "src/search.py", "Measure it", "The index is ready."):
        assert words in after
    assert "Profile it" not in after
    again = told(run_hook("claude-code", folder, event("SessionStart", source="compact"))[1])
    assert "Measure it" not in again


def test_one_daemon_runs_and_only_its_user_can_reach_it(folder: Path, start: Start) -> None:
    first = start()
    second = subprocess.run(
        [sys.executable, "-m", "recollect.capture.daemon", str(folder)], check=False, env=os.environ
    )
    assert second.returncode == 0
    assert (folder / "lock").read_text() == str(first.pid)
    assert (folder / "hook.sock").stat().st_mode & 0o777 == 0o600


def test_daemon_without_events_ends(folder: Path, start: Start) -> None:
    assert start("0.01").wait() == 0
    assert not (folder / "hook.sock").exists()


def test_hook_imports_only_built_in_modules() -> None:
    tree = ast.parse(Path(CLIENT).read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imported for alias in node.names}
    assert names == {"os", "sys", "time", "_signal", "_socket"}
