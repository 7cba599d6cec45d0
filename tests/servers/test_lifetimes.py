"""Servers for tests leave nothing behind, not even when a test run is killed."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from recollect.testing.servers.postgres import PostgresServer
from recollect.testing.servers.redis import RedisServer
from recollect.testing.servers.service import ServiceServer

START = """
import importlib, os, signal, sys
module, name, how = sys.argv[1:]
server = getattr(importlib.import_module(f"recollect.testing.servers.{module}"), name)()
server.__enter__()
print(server.port, server._process.pid, server._folder, flush=True)
os.kill(os.getpid(), int(how)) if how != "0" else server.__exit__()
"""

SERVERS = [("redis", "RedisServer"), ("postgres", "PostgresServer")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
@pytest.mark.parametrize(("module", "name"), SERVERS)
def test_a_server_ends_with_the_process_that_started_it(module: str, name: str, how: signal.Signals) -> None:
    port, process, folder = start_and_end(module, name, how)
    assert comes_true(lambda: not is_running(process))
    assert comes_true(lambda: not is_listening(port))
    shutil.rmtree(folder)  # nobody was left to do it


@pytest.mark.parametrize("kind", [RedisServer, PostgresServer])
def test_a_server_outlives_the_thread_that_started_it(kind: type[RedisServer | PostgresServer]) -> None:
    with kind() as server:
        server.stop()
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        time.sleep(0.3)  # what would end it comes at once
        assert is_listening(server.port)


@pytest.mark.parametrize(("module", "name"), SERVERS)
def test_a_server_that_is_left_in_order_leaves_nothing(module: str, name: str) -> None:
    port, process, folder = start_and_end(module, name, 0)
    assert not is_running(process)
    assert not is_listening(port)
    assert not folder.exists()


def start_and_end(module: str, name: str, how: int) -> tuple[int, int, Path]:
    """Port, process and folder of a server whose parent has ended, by itself (0) or by a signal."""
    command = [sys.executable, "-c", START, module, name, str(int(how))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -how, ended.stderr
    port, process, folder = ended.stdout.split()
    return int(port), int(process), Path(folder)


def is_running(process: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def comes_true(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true before long."""
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_relative_path_of_a_service_is_that_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ServiceServer("here.db", {"memory": {"embedder": "none"}}):
        assert (tmp_path / "here.db").is_file()
