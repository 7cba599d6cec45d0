"""A real service process, started as `recollect serve`, for tests."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from .processes import launch

_READY = "Recollect listens on "
_LONGEST_START = 240.0  # seconds
_LONGEST_END = 60.0


class ServiceServer:
    """The service in its own process, on a free loopback port.

    `database` is a path or a URL. `settings` are those of the configuration file, by their sections:
    `{"memory": {"embedder": "none"}}`. On Linux it ends with the process that started it, however that ends.
    """

    def __init__(self, database: str, settings: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-service-"))
        self._configuration = self._folder / "recollect.toml"
        self._log = self._folder / "log"
        configuration = {name: dict(section) for name, section in (settings or {}).items()}
        configuration["server"] = {"port": 0, **configuration.get("server", {})}
        # The process has another working directory.
        url = database if "://" in database else os.path.abspath(database)
        configuration["database"] = {**configuration.get("database", {}), "url": url}
        self._configuration.write_text(_toml(configuration), "utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        """The URL of the running service, such as `http://127.0.0.1:40123`."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start the service and wait until it responds."""
        self.begin()
        self.wait_until_ready()

    def begin(self) -> None:
        """Start the service without waiting, so that several can start in parallel."""
        self._log.write_text("")
        command = [sys.executable, "-m", "recollect", "serve", "--config", str(self._configuration)]
        self._process = launch(command, self._log)

    def wait_until_ready(self) -> None:
        """Wait until the service responds."""
        deadline = time.monotonic() + _LONGEST_START
        while not self.url_told():
            if self._running().poll() is not None or time.monotonic() > deadline:
                raise TimeoutError(f"the service did not start: {self.log()}")
            time.sleep(0.02)
        self.url = self.url_told()

    def url_told(self) -> str:
        """Return the address from the service's output, or nothing if it is not listening yet."""
        lines = (line.removeprefix(_READY) for line in self.log().splitlines() if line.startswith(_READY))
        return next(lines, "").partition(" ")[0]

    def log(self) -> str:
        """Return its standard output and standard error."""
        return self._log.read_text("utf-8")

    def signal(self, how: signal.Signals) -> None:
        """Send a signal to the process."""
        self._running().send_signal(how)

    def wait(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        code = self._running().wait(_LONGEST_END)
        self._process = None
        return code

    def stop(self) -> int:
        """Stop the service as a supervisor does, and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """Kill the service as a crash would. Can be called twice."""
        if self._process is not None:
            self._process.kill()
            self.wait()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            raise RuntimeError("the service is not running")
        return self._process


def _toml(settings: Mapping[str, Mapping[str, Any]]) -> str:
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        # The JSON literals of these settings are valid TOML.
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"
