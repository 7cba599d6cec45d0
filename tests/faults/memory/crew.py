"""The processes of an episode: clients that are replaced when they are killed, and a worker."""

import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from .journal import Tail
from .orders import Order, write_order
from .places import Place, wait_until

_ROOT = Path(__file__).parents[3]
_PATIENCE = 120.0  # seconds in which some operation must come to its end, whatever is done to the clients
_POLL = 0.005


class Process:
    """A process that was started, by a handle: unlike its number, that never becomes another's."""

    def __init__(self, number: int) -> None:
        self._handle = os.pidfd_open(number)
        self._end = select.poll()
        self._end.register(self._handle, select.POLLIN)

    def is_there(self) -> bool:
        """Whether it has not ended."""
        return not self._end.poll(0)

    def send(self, number: signal.Signals) -> None:
        """Send a signal; to a process that has ended, nothing happens."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        self.send(signal.SIGKILL)
        self._end.poll(5_000)

    def close(self) -> None:
        """Let go of the handle."""
        os.close(self._handle)

    def tell_stacks(self) -> None:
        """Have it say on standard error where its threads and tasks are."""
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            self.send(number)


class Launcher:
    """Starts processes that have all modules loaded, on a clock that can jump."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def start(self, order: Order) -> Process:
        """Have an order carried out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(write_order(order), file=self._process.stdin, flush=True)
        return Process(int(self._process.stdout.readline()))


@contextmanager
def launcher_at(place: Place, module: str = "tests.faults.memory.processes") -> Iterator[Launcher]:
    """A launcher, which takes what it started along when it ends."""
    environment = {**os.environ, **(place.clock.environment() if place.clock else {})}
    command = [sys.executable, "-m", module]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=_ROOT, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        yield Launcher(process)


class Crew:
    """The clients and the worker of one episode; none is left when it is over."""

    def __init__(self, launcher: Launcher, orders: list[Order], worker: Order) -> None:
        self._launcher = launcher
        self._orders = {order.client: order for order in orders}
        self._worker = worker
        self._tails: dict[int, Tail] = {}
        self._done: dict[int, int] = dict.fromkeys(self._orders, 0)
        self._processes: dict[int, Process] = {}
        for client in self._orders:
            self._begin(client)
        self._worker_process = self._begin_to_learn()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for process in (*self._processes.values(), self._worker_process):
            process.kill()
            process.close()

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

    def refusals(self) -> int:
        """How many calls of the present lives of the clients have failed, and were made again."""
        self.operations()
        return sum(tail.refusals for tail in self._tails.values())

    def is_done(self) -> bool:
        """Whether all clients have ended."""
        self.operations()
        return all(tail.has_ended for tail in self._tails.values())

    def lost(self) -> list[str]:
        """Who ended though nobody killed them, and did not come to their end."""
        gone = [client for client, process in self._processes.items() if not process.is_there()]
        self.operations()
        lost = [f"client {client}" for client in gone if not self._tails[client].has_ended]
        lost += [] if self._worker_process.is_there() else ["the worker"]
        return [f"{who} ended by itself" for who in lost]

    def living(self) -> list[int]:
        """The clients that are not at their end."""
        self.operations()
        return [client for client, tail in self._tails.items() if not tail.has_ended]

    def wait_for(self, operations: float) -> list[str]:
        """Wait until so many operations, or all, have come to their end; returns why that will not be."""
        seen, since = self.operations(), time.monotonic()
        while self.operations() < operations and not self.is_done():
            if lost := self.lost():
                return lost
            if self.operations() > seen:
                seen, since = self.operations(), time.monotonic()
            elif time.monotonic() - since > _PATIENCE:
                return self._stuck(f"of clients {self.living()} no operation came to its end")
            time.sleep(_POLL)
        return []

    def kill(self, client: int) -> bool:
        """Kill a client, and have another life do what it has left undone; whether it was not at its end."""
        if not self._processes[client].is_there():
            return False
        self._processes[client].kill()
        if client not in self.living():
            return False
        self._processes[client].close()
        self._done[client] += self._tails.pop(client).look()
        order = self._orders[client]
        left = max(order.operations - self._done[client], 1)
        self._orders[client] = msgspec.structs.replace(order, life=order.life + 1)
        self._begin(client, left)
        return True

    def kill_worker(self) -> bool:
        """Kill the worker, and have another; whether there was one."""
        if not self._worker_process.is_there():
            return False
        self._worker_process.kill()
        self._worker_process.close()
        self._worker = msgspec.structs.replace(self._worker, life=self._worker.life + 1)
        self._worker_process = self._begin_to_learn()
        return True

    def end(self) -> list[str]:
        """Wait for all to come to their end, the worker last; returns why they did not."""
        if wrong := self.wait_for(math.inf) or self.lost():
            return wrong
        self._worker_process.send(signal.SIGTERM)
        processes = (*self._processes.values(), self._worker_process)
        if not wait_until(lambda: not any(each.is_there() for each in processes), _PATIENCE):
            return self._stuck("a process that was done, or told to end, did not")
        return []

    def _stuck(self, what: str) -> list[str]:
        for process in (*self._processes.values(), self._worker_process):
            process.tell_stacks()
        time.sleep(1.0)  # they have to say it before they are killed
        return [f"{what} in {_PATIENCE:.0f} seconds; where it is stuck stands on standard error"]

    def _begin(self, client: int, operations: int | None = None) -> None:
        order = self._orders[client]
        path = f"{order.journal}-{order.life}"
        left = order.operations if operations is None else operations
        self._tails[client] = Tail(Path(path))
        self._processes[client] = self._launcher.start(
            msgspec.structs.replace(order, journal=path, operations=left)
        )

    def _begin_to_learn(self) -> Process:
        path = f"{self._worker.journal}-{self._worker.life}"
        return self._launcher.start(msgspec.structs.replace(self._worker, journal=path))
