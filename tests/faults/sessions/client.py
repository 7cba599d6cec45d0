"""A client: a process with several tasks, each of which makes one call after the other until it is to end."""

import asyncio
import faulthandler
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect import ConnectionLostError, DiskFullError, StorageError, TransientError

from ..leaks import held, left_behind
from .calls import make
from .journal import Call, Journal, Outcome
from .places import place_named
from .workload import Workload

_LIFE = 1_000_000  # calls: more than a client makes before it is killed
_PAUSE = 0.01  # seconds after a call that failed
_LONGEST_CALL = 120.0  # seconds: a call that takes longer hangs; drivers give up after half of that
_RECOVERY = 30.0


@dataclass(frozen=True)
class Orders:
    """What a client is to do."""

    place: str
    url: str
    seed: str
    journal: Path
    client: int
    life: int
    """Which of the clients of this number it is; the others were killed, or were those of other rounds."""
    tasks: int
    own: int
    """How many sessions each task has for itself."""
    shared: tuple[str, ...]
    resting: frozenset[str]
    cancelled: float
    """The part of the calls that are cancelled in the middle."""
    recovery: float = _RECOVERY
    """Seconds after SIGTERM, when nothing is harmed any more, in which every session must work again."""

    def own_sessions(self, task: int) -> list[str]:
        """Those of a task, which nobody else works on meanwhile."""
        return [f"own-{self.client}-{task}-{number}" for number in range(self.own)]


def run_client(orders: Orders) -> None:
    """Work until SIGTERM, or until the campaign is gone; what goes wrong is said in the journal."""
    threading.Thread(target=_end_with_the_campaign, name="faults-watch", daemon=True).start()
    journal = Journal(orders.journal)
    with stacks_beside(orders.journal).open("w") as stacks:
        faulthandler.register(signal.SIGUSR1, stacks)  # where it stands, for whoever finds that it hangs
        try:
            asyncio.run(Client(orders, journal).run())
        except Exception as error:  # noqa: BLE001 - the process ends here, and the journal tells why
            journal.say("died", f"{type(error).__name__}: {error}")
        finally:
            faulthandler.unregister(signal.SIGUSR1)
            journal.close()


def _end_with_the_campaign() -> None:
    """Wait for its end, however it ends: the process that forked us does not end before we do."""
    campaign = multiprocessing.parent_process()
    if campaign is not None:
        campaign.join()
        os.kill(os.getpid(), signal.SIGKILL)


def stacks_beside(journal: Path) -> Path:
    """Where a client that gets SIGUSR1 writes what its threads are doing."""
    return journal.with_name(f"{journal.name}.stacks")


class Client:
    """The tasks of one process, and the sessions they share."""

    def __init__(self, orders: Orders, journal: Journal) -> None:
        self._orders = orders
        self._journal = journal
        self._place = place_named(orders.place)
        self._sessions: dict[str, Any] = {}
        self._is_over = False
        self._ended = 0.0  # when it was told to end

    async def run(self) -> None:
        """Work until SIGTERM, close everything, and say what is left behind."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.end)
        before = held()
        await asyncio.gather(*(self._work(task) for task in range(self._orders.tasks)))
        for session in self._sessions.values():
            await session.aclose()
        self._sessions.clear()
        self._journal.say("left", await left_behind(before))

    def end(self) -> None:
        """Make no more calls, but for those that show that all sessions work again."""
        self._is_over = True
        self._ended = time.monotonic()

    def _gives_up(self) -> bool:
        """Whether nothing was harmed for so long that what fails still has not recovered."""
        return self._is_over and time.monotonic() > self._ended + self._orders.recovery

    async def _work(self, task: int) -> None:
        orders = self._orders
        own = [name for name in orders.own_sessions(task) if name not in orders.resting]
        first = orders.life * _LIFE + task
        seed = f"{orders.seed} {orders.client} {orders.life} {task}"
        writer = f"{orders.client}.{task}"
        workload = Workload(seed, writer, first, own, orders.shared, self._place.advanced)
        while not self._is_over:
            call = workload.next(orders.tasks)
            if await self._do(call, workload) is Outcome.FAILED:
                await asyncio.sleep(_PAUSE)
        for name in [*own, *orders.shared[task :: orders.tasks]]:
            if name in self._sessions and not await self._recovers(name, workload):
                self._journal.say("did not recover", name)

    async def _recovers(self, name: str, workload: Workload) -> bool:
        """Whether a session does a call now; one that rests is only read, and what it holds is not told."""
        if not workload.rests(name):
            return await self._do(workload.last(self._orders.tasks, name), workload) is Outcome.DONE
        reading = Call(0, "", name, "get", (1,))
        while (await self._outcome(reading, workload))[0] is not Outcome.DONE:
            if self._gives_up():
                return False
            await asyncio.sleep(_PAUSE)
        return True

    async def _do(self, call: Call, workload: Workload) -> Outcome:
        self._journal.begin(call)
        outcome, value = await self._outcome(call, workload)
        self._journal.end(call, outcome, value)
        return outcome

    async def _outcome(self, call: Call, workload: Workload) -> tuple[Outcome, Any]:
        begun = time.monotonic()
        try:
            async with asyncio.timeout(_LONGEST_CALL):
                return Outcome.DONE, await self._make(call, workload)
        except asyncio.CancelledError:
            return Outcome.UNKNOWN, "cancelled"
        except ConnectionLostError as error:
            if not call.only_reads:
                workload.rest(call.session)
            return Outcome.UNKNOWN, type(error).__name__
        except (TransientError, DiskFullError) as error:
            return Outcome.FAILED, type(error).__name__
        except (StorageError, TimeoutError) as error:
            seconds = time.monotonic() - begun
            self._journal.say("surprise", f"{call}: {type(error).__name__} after {seconds:.1f} s: {error}")
            return Outcome.UNKNOWN, type(error).__name__
        except ValueError:
            return Outcome.REFUSED, None

    async def _make(self, call: Call, workload: Workload) -> Any:
        making = make(self._session(call.session), call, self._gives_up)
        if self._is_over or workload.chance.random() >= self._orders.cancelled:
            return await making
        task = asyncio.ensure_future(making)
        await asyncio.wait([task], timeout=10 ** workload.chance.uniform(-4, -1.3))  # from 0.1 ms to 50 ms
        task.cancel()
        return await task

    def _session(self, name: str) -> Any:
        if name not in self._sessions:
            self._sessions[name] = self._place.open(self._orders.url, name)
        return self._sessions[name]
