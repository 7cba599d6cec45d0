"""The one thread that writes to a file. It groups the commits of waiting scripts.

A commit that survives a power cut costs a flush of the disk. The writer therefore takes all waiting scripts,
runs them in one transaction, and flushes once for all of them. If one script fails, the transaction is rolled
back and each script runs again in a transaction of its own. Only the failing script fails then.

Lock order: the lock of the registry, then `_working`, then `_claiming`.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ...cancellation import wait_until_done
from ..scripts import MakeScript
from .connection import (
    EngineOptions,
    UnconfirmedCommitError,
    commit,
    explain,
    explain_unconfirmed,
    is_busy,
    run_script,
    wait_for_lock,
)
from .turns import Turns
from .wal import Log

T = TypeVar("T")
logger = logging.getLogger(__name__)

_JOIN_INTERVAL = 0.1  # seconds: another thread may have taken over


class Job:
    """A waiting script, and the future that its caller awaits."""

    __slots__ = ("claimed", "future", "loop", "make_script", "revoked", "settled")

    def __init__(self, make_script: MakeScript[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.make_script = make_script
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.claimed = False
        self.revoked = False
        self.settled = False  # the outcome was delivered, even if the caller no longer waits for it


Outcome: TypeAlias = tuple[Job, Any, BaseException | None]


class _TakenOverError(Exception):
    """Another thread continues the work of this one, which was waiting for its turn for too long."""


class Writer:
    """Runs scripts in the order of their submission, on a thread that lives while it is needed."""

    def __init__(
        self,
        path: str,
        options: EngineOptions,
        connection: Callable[[sqlite3.Connection | None], sqlite3.Connection],
        before_waiting: Callable[[], None],
        try_retire: Callable[[], bool],
        linger: float,
    ) -> None:
        """`connection` maps the last connection to the one to use; `try_retire` returns whether to end."""
        self._path = path
        self._log = Log(path)
        self._turns = Turns(path)
        self._busy_timeout = options.busy_timeout
        self._connection_after = connection
        self._before_waiting = before_waiting
        self._try_retire = try_retire
        self._linger = linger
        self.reset()

    def reset(self) -> None:
        """Start without a thread and a connection. A forked child calls this: it has no threads."""
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._turns.forget()
        self._connection: sqlite3.Connection | None = None
        self._thread: threading.Thread | None = None
        self._left: tuple[list[Job], float] | None = None  # by a thread whose work is taken over
        self._needed = True
        self._stopping = False
        # Guards `claimed` and `revoked` of jobs, and the start and the end of the thread.
        self._claiming = threading.Lock()
        self._working = threading.Lock()  # held while the connection is in use

    async def run(self, make_script: MakeScript[T]) -> T:
        """Run a script in a durable transaction and return its result.

        If the call is cancelled while its script waits, the script never runs. If the script is running
        already, the call waits for the outcome before it raises `CancelledError`, so nothing changes after
        the call has ended.
        """
        job = Job(make_script, asyncio.get_running_loop())
        self._submit(job)
        try:
            result: T = await job.future
            return result
        except asyncio.CancelledError:
            if not self._revoke(job) and not job.settled:
                await _wait_despite_cancellation(job)
            raise

    def _submit(self, job: Job) -> None:
        with self._claiming:
            self._start()
            self._jobs.put(job)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = self._start_thread()

    def _start_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="recollect-writer", daemon=True)
        thread.start()
        return thread

    def _revoke(self, job: Job) -> bool:
        """Withdraw a job that has not begun. A job that has begun gets a new future to wait for."""
        with self._claiming:
            job.revoked = not job.claimed
        if job.claimed and job.future.cancelled():
            job.future = job.loop.create_future()
        return job.revoked

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None

    def set_needed(self, needed: bool, linger: bool = False) -> None:
        """Set whether any session uses the file. Else the thread lingers, closes the file and ends."""
        self._needed = needed
        if not needed and linger:
            with self._claiming:
                self._start()
            self.wake()

    def wake(self) -> None:
        """Make the thread check whether it is still needed. Never waits."""
        if self._thread is not None:
            self._jobs.put(None)

    def stop(self) -> None:
        """Run the waiting scripts and close the connection, without lingering."""
        self._stopping = True
        self._needed = False
        self.wake()
        self._join(time.monotonic() + self._busy_timeout)
        self.disconnect()

    def _join(self, deadline: float) -> None:
        """Wait until the thread has ended, or another one that has taken over its work."""
        while (left := deadline - time.monotonic()) > 0:
            with self._claiming:
                thread = self._thread
            if thread is None or not thread.is_alive():
                return
            thread.join(min(_JOIN_INTERVAL, left))

    def pause(self) -> None:
        """Wait until no transaction runs, and close the connection. No script runs until `resume`."""
        self._working.acquire()
        self._close_connection()

    def resume(self) -> None:
        """Run scripts again after `pause`."""
        self._working.release()

    def disconnect(self) -> None:
        """Close the connection; the next script opens a new one."""
        with self._working:
            self._close_connection()
            self._turns.leave()

    def _close_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- on the thread ---

    def _work(self) -> None:
        with suppress(_TakenOverError):
            while self._serve():
                pass

    def _serve(self) -> bool:
        """Wait for jobs and run them. `False` if the thread is to end.

        A return after each round drops the references to the jobs, and with them to sessions.
        """
        self._before_waiting()
        left, self._left = self._left, None
        if left is not None:
            self._commit(*left)
            return True
        waiting = self._collect()
        if waiting:
            self._commit(waiting, time.monotonic() + self._busy_timeout)
        return waiting is not None or not self._end()

    def _collect(self) -> list[Job] | None:
        """Wait for a job, and take all others that wait too. `None` if none came while lingering."""
        try:
            job = self._jobs.get(timeout=None if self._needed else 0 if self._stopping else self._linger)
        except queue.Empty:
            return None
        return [*([job] if job is not None else []), *self._take_waiting()]

    def _take_waiting(self) -> list[Job]:
        waiting: list[Job] = []
        try:
            while True:
                job = self._jobs.get_nowait()
                if job is not None:
                    waiting.append(job)
        except queue.Empty:
            return waiting

    def _end(self) -> bool:
        # The registry takes `_claiming` while it holds its own lock, so retire before `_claiming` is held.
        if not (self._stopping or self._try_retire()):
            return False
        with self._claiming:
            if not self._jobs.empty():
                return False
            self._thread = None
        self.disconnect()
        return True

    def _commit(self, waiting: list[Job], deadline: float) -> None:
        outcomes: list[Outcome] | None = None
        while outcomes is None:
            with self._working:
                outcomes = self._try_commit(waiting, deadline)
        _deliver(outcomes)
        self._truncate_log()

    def _try_commit(self, waiting: list[Job], deadline: float) -> list[Outcome] | None:
        """Run jobs when it is this process's turn; `None` if it has just joined the queue and has to wait."""
        try:
            self._wait_for_turn(waiting, deadline)
        except _TakenOverError:
            raise
        except BaseException as error:  # noqa: BLE001 - every waiting caller must get the error
            return [(job, None, error) for job in waiting]
        try:
            return self._transact(waiting, deadline)
        finally:
            self._turns.end()

    def _wait_for_turn(self, waiting: list[Job], deadline: float) -> None:
        """Wait until this process may write. A fork may proceed meanwhile.

        Raises `_TakenOverError` if another thread has taken over the jobs meanwhile.
        """
        if self._turns.try_enter():
            return
        with self._released():
            is_ours = self._turns.wait(
                deadline - time.monotonic(), partial(self._take_over, waiting, deadline)
            )
        if not is_ours:
            raise _TakenOverError

    def _take_over(self, waiting: list[Job], deadline: float) -> None:
        """Let a new thread run these jobs without a turn. If it cannot be started, nothing has changed."""
        with self._claiming:
            self._left = (waiting.copy(), deadline)
            try:
                self._thread = self._start_thread()
            except RuntimeError:
                self._left = None
                raise
            waiting.clear()  # the old thread may wait for long, and must not keep sessions alive

    def _transact(self, waiting: list[Job], deadline: float) -> list[Outcome] | None:
        """Run jobs in a transaction; `None` if this process has to queue first."""
        try:
            connection = self._begin(deadline)
        except BaseException as error:  # noqa: BLE001 - every waiting caller must get the error
            self._close_connection()
            return [(job, None, explain(error, self._path)) for job in waiting]
        if connection is None:
            return None
        # Those that came while this process waited for others share the transaction too.
        return self._run(connection, self._claim(waiting + self._take_waiting()))

    def _truncate_log(self) -> None:
        with self._working:
            if self._connection is not None:
                self._log.truncate_if_large(self._connection)

    def _begin(self, deadline: float) -> sqlite3.Connection | None:
        """Begin a transaction with the write lock; `None` if this process has to queue first.

        A fork may proceed while this waits for the lock.
        """
        if self._connection is None:
            self._connect()
            if not self._turns.try_enter():
                return None
        return self._wait_and_begin(deadline)

    def _wait_and_begin(self, deadline: float) -> sqlite3.Connection:
        return wait_for_lock(self._try_begin, deadline - time.monotonic(), between=self._released)

    def _try_begin(self) -> sqlite3.Connection:
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _connect(self) -> sqlite3.Connection:
        """The connection, which is a new one if there was none, or the file was replaced."""
        last, self._connection = self._connection, None
        self._connection = connection = self._connection_after(last)
        if connection is not last:
            self._turns.leave()  # the queue of the log of the last connection, which may be gone
            self._turns.join()
        return connection

    @contextmanager
    def _released(self) -> Iterator[None]:
        self._working.release()
        try:
            yield
        finally:
            self._working.acquire()

    def _claim(self, waiting: list[Job]) -> list[Job]:
        """Mark the jobs as begun, and return them without those that were revoked meanwhile."""
        with self._claiming:
            claimed = [job for job in waiting if not job.revoked]
            for job in claimed:
                job.claimed = True
        return claimed

    def _run(self, connection: sqlite3.Connection, jobs: list[Job]) -> list[Outcome]:
        """Run the jobs in the current transaction. After a failure, run each in a transaction of its own."""
        try:
            results = [run_script(connection, job.make_script()) for job in jobs]
            commit(connection)
            return [(job, result, None) for job, result in zip(jobs, results, strict=True)]
        except UnconfirmedCommitError as error:  # no job may run again: its first run may be stored
            logger.warning("a disk has not confirmed a commit")
            self._close_connection()
            return [(job, None, explain_unconfirmed(error, self._path)) for job in jobs]
        except BaseException as error:  # noqa: BLE001 - the caller of the job gets it
            self._roll_back(connection, error)
            if len(jobs) == 1:
                # Scripts run code of callers: errors that are not SQLite's pass unchanged.
                reported = explain(error, self._path) if isinstance(error, sqlite3.Error) else error
                return [(jobs[0], None, reported)]
        return [outcome for job in jobs for outcome in self._run_alone(job)]

    def _run_alone(self, job: Job) -> list[Outcome]:
        try:
            connection = self._wait_and_begin(time.monotonic() + self._busy_timeout)
        except BaseException as error:  # noqa: BLE001 - the caller of the job gets it
            return [(job, None, explain(error, self._path))]
        return self._run(connection, [job])

    def _roll_back(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """Roll the transaction back. After an error of the database itself, close the connection too."""
        if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError) and not is_busy(error):
            self._close_connection()  # closing rolls back
        elif connection.in_transaction:
            connection.rollback()


def _deliver(outcomes: list[Outcome]) -> None:
    """Pass the outcomes to the event loops that await them, with one wake-up for each loop."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_loop[outcome[0].loop].append(outcome)
    for loop, of_loop in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, of_loop)
        except RuntimeError:
            logger.debug("event loop closed before its writes were acknowledged")


def _resolve(outcomes: list[Outcome]) -> None:
    for job, result, error in outcomes:
        job.settled = True
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(error)


async def _wait_despite_cancellation(job: Job) -> None:
    """Wait for the outcome of a job, however often the caller is cancelled meanwhile.

    The outcome is discarded: the caller raises `CancelledError`.
    """
    await wait_until_done(job.future)
    job.future.exception()  # marks the exception as retrieved, or asyncio would log it
