"""Daemons for tests: real processes, with answers that are never late, and events that are sent to them."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recollect.capture import hook_client

CLIENT = hook_client.__file__


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Wait until a condition holds."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "the condition did not come to hold"
        time.sleep(0.01)
    return found


def start_daemon(folder: Path, idle: str = "900") -> "subprocess.Popen[bytes]":
    """Start a daemon, and wait until it listens."""
    command = [sys.executable, "-m", "recollect.capture.daemon", str(folder), idle, "60"]
    process = subprocess.Popen(command, env=os.environ)
    wait_for((folder / "hook.sock").exists)
    return process


def run_hook(agent: str, folder: Path, event: dict[str, Any], deadline: str = "60") -> "tuple[int, str]":
    """Run the command of a hook; its exit code and its output."""
    command = [sys.executable, "-I", "-S", CLIENT, agent, str(folder), deadline]
    done = subprocess.run(command, input=json.dumps(event), capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def told(output: str) -> str:
    """What a hook tells the agent."""
    return str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output else ""


def spooled(folder: Path) -> list[Path]:
    """The events that wait to be delivered."""
    return [path for path in (folder / "spool").glob("[!.]*") if path.is_file()]


def messages_in(database: Path) -> list[str]:
    """The messages that were recorded, in their order."""
    query = "SELECT content FROM conversation_messages ORDER BY conversation_id, message_index"
    return [str(row[0]) for row in rows_in(database, query)]


def rows_in(database: Path, query: str) -> list[Any]:
    """The rows of a query; none if the database is not there yet."""
    try:
        with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def silent_server(folder: Path) -> socket.socket:
    """A socket that takes connections and never answers."""
    server = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(folder)
    try:
        server.bind("hook.sock")
    finally:
        os.chdir(before)
    server.listen()
    return server
