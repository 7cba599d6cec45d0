"""Claims runs and has them executed; stores why one has failed.

The rules that make a run safe to interrupt and repeat:

- **Lease.** A worker claims a run under a lease and extends it while it waits for a model. Each transaction
  that stores something checks the lease. A worker that has lost it stores nothing (`LeaseLostError`).
- **Idempotency.** A stage is stored in the same transaction as the changes that it makes to the memory, so a
  crash repeats no finished model call and applies nothing twice.
- **Cancellation.** A cancelled worker releases its run, so another can claim it at once. A result that the
  model has already returned is stored first. Writes finish even if the caller is cancelled.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...cancellation import finish_despite_cancellation, wait_until_done
from ...errors import ExtractionError, LeaseLostError, ModelRefusedError, ModelUnavailableError, StorageError
from ..database import runs
from ..database.access import MemoryDatabase, column_now
from ..database.queue_queries import LONGEST
from ..database.runs import ClaimRequest, Failure, Task
from ..guard.secrets import mask_secrets
from .execution import Execution, count_and_store
from .nearest import NearestEntries
from .stages import Extractor, Stage
from .store_barrier import MayStore, StoreBarrier
from .token_meter import GuardedMeter, TokenMeter

_log = logging.getLogger("recollect.memory")
_LONGEST_ERROR = 500  # characters
_AT_ONCE = 8  # runs that take no model: a claim must not take all from other workers


@dataclass(frozen=True)
class RunOptions:
    """How runs are executed."""

    lease_seconds: float = 60.0
    """The time after which another worker may take over a run whose lease was not extended."""
    attempts: int = 5
    """The number of attempts after which a run has failed."""
    backoff_seconds: float = 1.0
    """The wait before the second attempt, doubled for each further one."""
    longest_backoff_seconds: float = 300.0
    """The longest wait before an attempt."""

    def __post_init__(self) -> None:
        for name in ("lease_seconds", "attempts", "backoff_seconds", "longest_backoff_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0, and it is {getattr(self, name)}")
        for name in ("lease_seconds", "longest_backoff_seconds"):
            if getattr(self, name) > LONGEST:
                raise ValueError(f"{name} must be at most an hour, and it is {getattr(self, name)} seconds")

    def again_in(self, attempt: int, error: Exception) -> float | None:
        """Seconds until a run is tried again after an error in this attempt; `None` if it is not."""
        if isinstance(error, ModelRefusedError) or attempt >= self.attempts:
            return None
        retry_after = (error.retry_after or 0.0) if isinstance(error, ModelUnavailableError) else 0.0
        backoff = max(self.backoff_seconds * 2.0 ** (attempt - 1), retry_after)
        return min(backoff, self.longest_backoff_seconds)


class Runner:
    """Claims runs from the queue and executes them with one extractor."""

    def __init__(
        self,
        database: MemoryDatabase,
        extractor: Extractor,
        options: RunOptions,
        tenant: str | None = "default",
        meter: TokenMeter | None = None,
        nearest: NearestEntries | None = None,
    ) -> None:
        self.tenant = tenant
        """The tenant whose runs it executes; `None` for the runs of all tenants."""
        self._database = database
        self._extractor = extractor
        self.asks_no_model: bool = getattr(extractor, "asks_no_model", False)
        """Whether its runs take no model, so that it executes some of them together."""
        self._options = options
        self._meter = GuardedMeter(meter)
        self._nearest = None if self.asks_no_model else nearest

    async def claim(self, lease: str) -> Task | None:
        """Claim a due run under a lease; `None` if no run is due."""
        return next(iter(await self.claim_some(lease, 1)), None)

    async def claim_some(self, lease: str, most: int) -> list[Task]:
        """Claim due runs under a lease, each of another memory; empty if no run is due.

        If the caller is cancelled while the claim is written, the runs are released again.
        """
        request = ClaimRequest(self.tenant, lease, self._options.lease_seconds, column_now(), most)
        claim = asyncio.ensure_future(self._claim(request))
        cancelled = await wait_until_done(claim)
        if cancelled is None:
            return claim.result()
        if not claim.cancelled() and claim.exception() is None:
            await finish_despite_cancellation(self._release_all(claim.result()))
        raise cancelled

    async def _claim(self, request: ClaimRequest) -> list[Task]:
        database = self._database
        statements = database.queue.claims_at_once[self.tenant is None]
        if not statements:
            return await database.write(partial(runs.claim, database.queue, request))
        for statement in statements:
            while claimed := await database.write(partial(runs.claim_at_once, statement, request)):
                try:
                    found = [await self._completed(request, *each) for each in claimed.items()]
                except StorageError:
                    await self._release_all(filter(None, claimed.values()))
                    raise
                if tasks := [task for task in found if task is not None]:
                    return tasks
        return []

    async def _completed(self, request: ClaimRequest, memory_id: str, task: Task | None) -> Task | None:
        """A task with its finished stages. If a claim has found no run to start, look once more."""
        if task is None:
            start = partial(runs.start_claimed, self._database.queue, memory_id, request)
            return await self._database.write(start)
        if not runs.was_started_before(task.run, request.now):
            return task
        decode = partial(runs.stages_from, task.run.run_id)
        stages = await self._database.fetch(runs.READ_STAGES, (task.run.run_id,), decode)
        return replace(task, finished=tuple(stages))

    async def execute_due(self, lease: str) -> bool:
        """Claim due runs under a lease and execute them; `False` if no run is due.

        One run is claimed at a time if it takes a model, and some more if it does not: these are executed
        together, and store what they have found at the same time.
        """
        tasks = await self.claim_some(lease, _AT_ONCE if self.asks_no_model else 1)
        if len(tasks) == 1:
            await self.execute(tasks[0])
        elif tasks:
            await self._execute_together(tasks)
        return bool(tasks)

    async def _execute_together(self, tasks: Sequence[Task]) -> None:
        barrier, begun = StoreBarrier(len(tasks)), set[str]()

        async def execute(task: Task) -> None:
            begun.add(task.run.run_id)
            await self.execute(task, barrier)

        try:
            ended = await asyncio.gather(*map(execute, tasks), return_exceptions=True)
        except asyncio.CancelledError:
            # One that was cancelled before it began has not released its run.
            waiting = [task for task in tasks if task.run.run_id not in begun]
            await finish_despite_cancellation(self._release_all(waiting))
            raise
        for error in filter(None, ended):
            raise error

    async def execute(self, task: Task, barrier: StoreBarrier | None = None) -> None:
        """Execute a claimed run. An error is stored with the run as a failure and not raised.

        If the meter does not allow a model call now, the run is released until it does.
        """
        with (barrier or StoreBarrier(1)).entered() as may_store:
            await self._execute(task, may_store)

    async def _execute(self, task: Task, may_store: MayStore) -> None:
        lease_seconds = self._options.lease_seconds
        parts = (self._database, self._extractor, task, lease_seconds, self._meter, may_store)
        execution = Execution(*parts, self._nearest)
        try:
            seconds = await self._meter.wait(task.run.tenant)
            if seconds > 0:
                await finish_despite_cancellation(self._release(task, seconds))
            else:
                await execution.run_stages()
        except LeaseLostError:
            _log.warning("lease lost, run taken over by another worker: run %s", task.run.run_id)
        except asyncio.CancelledError:
            await finish_despite_cancellation(self._release(task))
            raise
        except Exception as error:  # noqa: BLE001 - an extractor is users' code: any error of it is a failure
            await self._fail(task, execution.stage, error)

    async def _release_all(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            await self._release(task)

    async def _release(self, task: Task, seconds: float = 0) -> None:
        """Release a run. If that fails, another worker takes it over when the lease ends."""
        try:
            await self._database.write(partial(runs.give_back, self._database.queue, task, seconds))
        except (LeaseLostError, StorageError):
            _log.info("run not released, its lease must end first: run %s", task.run.run_id)

    async def _fail(self, task: Task, stage: Stage, error: Exception) -> None:
        again_in = self._options.again_in(task.run.attempts + 1, error)
        known = error if isinstance(error, ExtractionError) else ExtractionError("")
        failure = Failure(
            stage,
            self._extractor.model,
            _describe_error(error),
            mask_secrets(known.raw_response).text,
            again_in,
            known.prompt_tokens,
            known.completion_tokens,
        )
        _log.warning("stage failed: run %s, stage %s (%s)", task.run.run_id, stage, type(error).__name__)
        fail = partial(runs.fail, self._database.queue, task, failure, column_now())
        tokens = failure.prompt_tokens + failure.completion_tokens
        try:
            await count_and_store(self._database, self._meter, task, tokens, fail)
        except LeaseLostError:
            _log.warning("lease lost, run taken over by another worker: run %s", task.run.run_id)


def _describe_error(error: Exception) -> str:
    """The cause of a failure. The message of a foreign error is left out, since it may quote contents."""
    if isinstance(error, ExtractionError):
        reason = str(error)
    else:
        is_storage = isinstance(error, StorageError)
        reason = "the answer cannot be stored" if is_storage else "the extractor raised it"
    return f"{type(error).__name__}: {reason}"[:_LONGEST_ERROR]
