"""`recollect serve`, as it is run: in a process of its own, which signals end."""

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest

from recollect.cli import main
from recollect.server.access.keys import KeyStore
from recollect.server.settings import Settings
from recollect.server.transport.listener import is_loopback
from recollect.server.transport.runner import build_server
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import sql
from .kit import TALK
from .test_logs import _logging_as_it_was  # noqa: F401 - commands that run here configure it

COMMAND = [str(Path(sys.executable).with_name("recollect")), "serve"]
PLANTED = "planted-contents"
LONGEST = 60


@contextmanager
def started(folder: Path, *arguments: str, environment: Mapping[str, str]) -> "Iterator[Process]":
    """A service that has told where it listens."""
    variables = {**os.environ, "RECOLLECT_MEMORY__EMBEDDER": "none", **environment}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [*COMMAND, "--port", "0", "--url", str(folder / "recollect.db"), *arguments],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=variables,
            cwd=folder,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            yield Process(process, process.stdout, folder / "log")
        finally:
            process.kill()


class Process:
    """A service in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]", output: IO[str], log: Path) -> None:
        self.process = process
        self._log = log
        self.said: list[str] = []
        for line in output:
            self.said.append(line.strip())
            if "listens on" in line:
                break
        assert self.said, log.read_text("utf-8")
        listens = re.search(r"listens on \S+:(\d+) ", self.said[-1])
        assert listens is not None, self.said
        self.port = int(listens[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def log(self) -> list[dict[str, object]]:
        """The lines of the log."""
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()]


@contextmanager
def half_sent(port: int, key: str | None, body: bytes) -> "Iterator[socket.socket]":
    """A request that the service has begun to serve, and of whose body the last byte is still to come."""
    head = f"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key else ""
    with socket.create_connection(("127.0.0.1", port), LONGEST) as connection:
        # The service says that it waits for the body as soon as somebody there does.
        connection.sendall(f"{head}Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        connection.sendall(body[:-1])
        yield connection


@pytest.mark.proof
def test_with_a_key_it_serves_elsewhere_and_a_signal_lets_requests_finish(tmp_path: Path) -> None:
    async def make_key() -> str:
        async with KeyStore(str(tmp_path / "recollect.db")) as keys:
            return (await keys.create("acme", "write"))[1]

    key = asyncio.run(make_key())
    with started(tmp_path, "--host", "0.0.0.0", environment={}) as service:
        assert service.said == [
            f"Recollect listens on http://0.0.0.0:{service.port} (dashboard http://localhost:{service.port}/;"
            f" database {tmp_path / 'recollect.db'}; extractor offline; embedder none)"
        ]
        assert httpx2.get(f"{service.url}/v1/conversations?q={PLANTED}").status_code == 401
        said = {"agent_id": "a", "user_id": PLANTED, "messages": [{**TALK[0], "content": PLANTED}]}
        body = json.dumps(said).encode()
        with half_sent(service.port, key, body) as connection:
            service.process.send_signal(signal.SIGTERM)
            _wait_until_it_takes_no_more(service.port)
            connection.sendall(body[-1:])
            assert connection.recv(10_000).startswith(b"HTTP/1.1 201")
        assert service.process.wait(LONGEST) == 0
    told = service.log()
    assert PLANTED not in str(told)
    assert key not in str(told)
    lines = [line for line in told if line["logger"] == "recollect.access"]
    assert [(line["status"], line.get("tenant")) for line in lines] == [(401, None), (201, "acme")]
    assert [line["level"] for line in told if line["level"] not in ("INFO", "WARNING")] == []


@pytest.mark.proof
def test_without_a_key_it_says_that_it_is_open_and_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with started(tmp_path, environment={}) as service:
        assert service.said[0].startswith("No API keys configured: every local process can read and write.")
        assert httpx2.get(f"{service.url}/readyz").json()["status"] in ("ready", "degraded")
        with half_sent(service.port, None, b"{}"):
            service.process.send_signal(signal.SIGINT)
            _wait_until_it_takes_no_more(service.port)
            service.process.send_signal(signal.SIGINT)
            assert service.process.wait(LONGEST) == 128 + signal.SIGINT


def _wait_until_it_takes_no_more(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), LONGEST).close()
        except ConnectionError:
            return


@pytest.mark.parametrize(
    ("arguments", "environment", "told"),
    [
        (
            ["--host", "0.0.0.0"],
            {},
            "no API keys configured, so the server cannot listen on 0.0.0.0: create one",
        ),
        (["--host", "::"], {}, "no API keys configured, so the server cannot listen on ::"),
        (["--host", "192.0.2.1"], {"keys": "yes"}, "cannot listen on 192.0.2.1:0: "),
        (
            ["--host", "0.0.0.0"],
            {"keys": "yes", "RECOLLECT_ACCESS__REQUIRE_KEYS": "never"},
            "access.require_keys is never, so the server cannot listen on 0.0.0.0",
        ),
        (["--port", "no"], {}, "invalid setting RECOLLECT_SERVER__PORT"),
        (["--config", "none.toml"], {}, "the configuration none.toml cannot be read"),
        (
            [],
            {"RECOLLECT_SERVER__PROT": "1"},
            "unknown setting RECOLLECT_SERVER__PROT; [server] has host",
        ),
        ([], {"RECOLLECT_CHAT__AGENTS_FILE": "none.toml"}, "none.toml"),
    ],
)
def test_what_it_cannot_do_is_told_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    environment: dict[str, str],
    told: str,
) -> None:
    url = str(tmp_path / "recollect.db")
    if environment.pop("keys", None):
        assert main(["keys", "create", "--tenant", "acme", "--scope", "read", "--url", url]) == 0
    for name, value in {"RECOLLECT_MEMORY__EMBEDDER": "none", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--port", "0", "--url", url, *arguments]) == 1
    assert told in capsys.readouterr().err.splitlines()[-1]


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--url", str(tmp_path / "recollect.db")]) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err


def test_a_database_that_was_not_migrated_is_refused_with_what_mends_it(
    migrated_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sql(migrated_url, "DROP TABLE recollect_schema_version")
    assert main(["serve", "--port", "0", "--url", migrated_url]) == 1
    assert "run `recollect migrate`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_only_addresses_of_this_machine_alone_are_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@in_event_loop
async def test_what_will_not_work_is_said_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    place = {"database": {"url": str(tmp_path / "recollect.db")}, "memory": {"workers": 0}}

    async def notes(**given: Any) -> str:
        server = await build_server(Settings.model_validate({**place, **given}))
        await server.service.aclose()
        return capsys.readouterr().out

    assert "No API key for the model" in await notes(chat={"model": "gpt-test"})
    assert "No API key for the model" not in await notes()
    local = {"model": "gpt-test", "base_url": "http://127.0.0.1:9/v1"}  # which needs none
    assert "No API key for the model" not in await notes(chat=local)
    async with KeyStore(tmp_path / "recollect.db") as keys:
        await keys.create("default", "admin")
    assert await notes() == ""
    for file in tmp_path.glob("recollect.db*"):
        if file.suffix != ".keys":
            file.unlink()
    lost = await notes()
    assert "it was replaced, or emptied. Requests are refused." in lost
    command = re.findall("`(.+)`", lost)[0]
    assert await asyncio.to_thread(main, shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.startswith("rk_")
    assert await notes() == ""
