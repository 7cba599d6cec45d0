"""The processes of an episode: clients that are replaced when they are killed, and a worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from .journal import Tail
from .orders import Order, write_order
from .places import Place, wait_until

_ROOT = Path(__file__).parents[3]
_LAST_OF_A_CLIENT = 300.0  # seconds for what is under way when nothing more is done to it


class Launcher:
    """Starts processes that have all modules loaded, on a clock that can jump."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, order: Order) -> int:
        """Have an order carried out; returns the number of the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(write_order(order), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@contextmanager
def launcher_at(place: Place) -> Iterator[Launcher]:
    """A launcher, which takes what it started along when it ends."""
    environment = {**os.environ, **(place.clock.environment() if place.clock else {})}
    command = [sys.executable, "-m", "tests.faults.memory.processes"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=_ROOT, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        yield Launcher(process)


class Crew:
    """The clients and the worker of one episode."""

    def __init__(self, launcher: Launcher, orders: list[Order], worker: Order) -> None:
        self._launcher = launcher
        self._orders = {order.client: order for order in orders}
        self._worker = worker
        self._tails: dict[int, Tail] = {}
        self._done: dict[int, int] = dict.fromkeys(self._orders, 0)
        self._processes: dict[int, int] = {}
        self._worker_process = 0
        for client in self._orders:
            self._begin(client)
        self._begin_to_learn()

    @property
    def journals(self) -> list[Path]:
        """Those of all lives of all clients."""
        return sorted(Path(self._worker.journal).parent.glob("client-*"))

    @property
    def worker_journals(self) -> list[Path]:
        """Those of all lives of the worker."""
        return sorted(Path(self._worker.journal).parent.glob("worker-*"))

    def operations(self) -> int:
        """How many operations have come to their end, in all lives."""
        return sum(self._done.values()) + sum(tail.look() for tail in self._tails.values())

    def is_done(self) -> bool:
        """Whether all clients have ended."""
        self.operations()
        return all(tail.has_ended for tail in self._tails.values())

    def is_lost(self) -> list[int]:
        """The clients that ended though nobody killed them, and did not come to their end."""
        gone = [client for client, process in self._processes.items() if not _is_there(process)]
        self.operations()
        return [client for client in gone if not self._tails[client].has_ended]

    def living(self) -> list[int]:
        """The clients that are not at their end."""
        self.operations()
        return [client for client, tail in self._tails.items() if not tail.has_ended]

    def kill(self, client: int) -> None:
        """Kill a client, and have another life do what it has left undone."""
        _kill(self._processes[client])
        self._done[client] += self._tails.pop(client).look()
        order = self._orders[client]
        left = max(order.operations - self._done[client], 1)
        self._orders[client] = msgspec.structs.replace(order, life=order.life + 1)
        self._begin(client, left)

    def kill_worker(self) -> None:
        """Kill the worker, and have another."""
        _kill(self._worker_process)
        self._worker = msgspec.structs.replace(self._worker, life=self._worker.life + 1)
        self._begin_to_learn()

    def end(self) -> list[str]:
        """Wait for all to come to their end, the worker last; returns who did not."""
        late = [] if wait_until(self.is_done, _LAST_OF_A_CLIENT) else [f"clients {self.living()} did not end"]
        os.kill(self._worker_process, signal.SIGTERM)
        if not wait_until(lambda: not _is_there(self._worker_process), _LAST_OF_A_CLIENT):
            late.append("the worker did not end")
        for process in (*self._processes.values(), self._worker_process):
            if not wait_until(lambda process=process: not _is_there(process), 2.0):  # type: ignore[misc]
                _kill(process)
        return late

    def _begin(self, client: int, operations: int | None = None) -> None:
        order = self._orders[client]
        path = f"{order.journal}-{order.life}"
        left = order.operations if operations is None else operations
        self._tails[client] = Tail(Path(path))
        self._processes[client] = self._launcher.start(
            msgspec.structs.replace(order, journal=path, operations=left)
        )

    def _begin_to_learn(self) -> None:
        path = f"{self._worker.journal}-{self._worker.life}"
        self._worker_process = self._launcher.start(msgspec.structs.replace(self._worker, journal=path))


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return  # it has just ended by itself
    wait_until(lambda: not _is_there(process), 5.0)


def _is_there(process: int) -> bool:
    return Path("/proc", str(process)).exists()
