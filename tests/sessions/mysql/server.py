"""A real MariaDB, of the system's package `mariadb-server`."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from recollect.testing.servers.processes import launch


class MariaDBServer:
    """A MariaDB server on a free loopback port, with its data in a temporary folder.

    It refuses to run as root; where the caller is root, it runs as the user `nobody`. On Linux it ends with
    the process that started it, however that ends.
    """

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-mariadb-"))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def url(self) -> str:
        """The URL of an empty database, without a driver."""
        return f"mysql://root@127.0.0.1:{self.port}/recollect"

    @property
    def log(self) -> Path:
        """The log file of the server."""
        return self._folder / "log"

    def __enter__(self) -> Self:
        user = _user()
        if user is not None:
            os.chown(self._folder, *user)
        self._run(
            "mariadb-install-db", f"--datadir={self._folder / 'data'}", "--skip-test-db",
            "--auth-root-authentication-method=normal",
        )  # fmt: skip
        self.start()
        self._run("mariadb-admin", *self._address(), "create", "recollect")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.end(signal.SIGTERM)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        command = [
            _binary("mariadbd"), "--no-defaults", f"--datadir={self._folder / 'data'}", f"--port={self.port}",
            "--bind-address=127.0.0.1", f"--socket={self._folder / 'socket'}",
            f"--pid-file={self._folder / 'pid'}", "--innodb-buffer-pool-size=32M",
        ]  # fmt: skip
        self._process = launch(command, self.log, user=_user())
        deadline = time.monotonic() + 120
        while self._run("mariadb-admin", *self._address(), "ping", check=False).returncode != 0:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"MariaDB did not start: {self.log.read_text()}")
            time.sleep(0.05)

    def end(self, how: signal.Signals) -> None:
        """End the server: cleanly with `SIGTERM`, as a crash would with `SIGKILL`."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=60)
            self._process = None

    def _address(self) -> list[str]:
        return ["--host=127.0.0.1", f"--port={self.port}", "--user=root"]

    def _run(self, name: str, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[bytes]":
        options: dict[str, Any] = {}
        if (user := _user()) is not None:
            options = {"user": user[0], "group": user[1], "extra_groups": []}
        command = [_binary(name), "--no-defaults", *arguments]
        return subprocess.run(command, check=check, capture_output=True, cwd="/", **options)


def _binary(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        raise FileNotFoundError(f"{name} is missing: apt-get install mariadb-server")
    return found


def _user() -> tuple[int, int] | None:
    """The user that the server runs as; `None` for ours."""
    nobody = pwd.getpwnam("nobody")
    return (nobody.pw_uid, nobody.pw_gid) if os.getuid() == 0 else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
