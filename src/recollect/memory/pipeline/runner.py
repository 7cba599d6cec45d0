"""Executes runs: the stages that are not finished yet, in order, each stored before the next begins.

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
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from ...cancellation import finish_despite_cancellation, wait_until_done
from ...errors import ExtractionError, LeaseLostError, ModelRefusedError, ModelUnavailableError, StorageError
from ...sql.scripts import Script
from ..database import entries, runs
from ..database.access import MemoryDatabase, column_now
from ..database.entries import Changes
from ..database.runs import Failure, StageRecord, Task
from ..entry import Entry
from ..facts.clauses import facts_of
from ..guard.secrets import mask_secrets
from .consolidation import apply_changes, consolidate
from .guarding import IsRejected, find_rejected, guard_mind, guard_modification
from .results import describe_left_out, merge_results, pipeline_result
from .stages import STAGES, Answer, Candidate, Decision, Excerpt, Extractor, Mind, Modification, Stage, Update
from .token_meter import GuardedMeter, TokenMeter

T = TypeVar("T")

_log = logging.getLogger("recollect.memory")
_LONGEST_ERROR = 500  # characters
_FIRST_PAUSE = 0.1  # seconds until a call of an unavailable database is repeated; doubled each time
_LONGEST_PAUSE = 5.0


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
            if getattr(self, name) > runs.LONGEST:
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
    ) -> None:
        self.tenant = tenant
        """The tenant whose runs it executes; `None` for the runs of all tenants."""
        self._database = database
        self._extractor = extractor
        self._options = options
        self._meter = GuardedMeter(meter)

    async def claim(self, lease: str) -> Task | None:
        """Claim a due run under a lease; `None` if no run is due.

        If the caller is cancelled while the claim is written, the run is released again.
        """
        queue, seconds = self._database.queue, self._options.lease_seconds
        take = partial(runs.claim, queue, self.tenant, lease, seconds, column_now())
        claim = asyncio.ensure_future(self._database.write(take))
        cancelled = await wait_until_done(claim)
        if cancelled is None:
            return claim.result()
        if not claim.cancelled() and claim.exception() is None and (task := claim.result()):
            await finish_despite_cancellation(self._release(task))
        raise cancelled

    async def execute(self, task: Task) -> None:
        """Execute a claimed run. An error is stored with the run as a failure and not raised.

        If the meter does not allow a model call now, the run is released until it does.
        """
        lease_seconds = self._options.lease_seconds
        execution = _Execution(self._database, self._extractor, task, lease_seconds, self._meter)
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
        try:
            await _retry_until_available(task, partial(self._database.write, fail))
        except LeaseLostError:
            _log.warning("lease lost, run taken over by another worker: run %s", task.run.run_id)
        finally:
            await self._meter.spent(task.run.tenant, failure.prompt_tokens + failure.completion_tokens)


def _describe_error(error: Exception) -> str:
    """The cause of a failure. The message of a foreign error is left out, since it may quote contents."""
    if isinstance(error, ExtractionError):
        reason = str(error)
    else:
        is_storage = isinstance(error, StorageError)
        reason = "the answer cannot be stored" if is_storage else "the extractor raised it"
    return f"{type(error).__name__}: {reason}"[:_LONGEST_ERROR]


async def _retry_until_available(task: Task, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call the database, again and again while it is unavailable: giving up would repeat a model call.

    A plain `StorageError` means that the database refused the data. It is raised at once, since a retry would
    be refused too.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await finish_despite_cancellation(call())
        except StorageError as error:
            if type(error) is StorageError:
                raise
            _log.warning("database unavailable: run %s (%s)", task.run.run_id, type(error).__name__)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _guarded(call: Awaitable[T]) -> T:
    """The result of a call of an extractor, which must not end the thread of the workers."""
    try:
        return await call
    except (SystemExit, KeyboardInterrupt) as error:
        raise ExtractionError(f"the extractor raised {type(error).__name__}") from error


class _Execution:
    """The execution of one run, with the stages that are finished."""

    def __init__(
        self,
        database: MemoryDatabase,
        extractor: Extractor,
        task: Task,
        lease_seconds: float,
        meter: GuardedMeter,
    ) -> None:
        self.stage: Stage = "modification"
        self._database = database
        self._extractor = extractor
        self._task = task
        self._lease_seconds = lease_seconds
        self._meter = meter
        self._is_cancelled = False
        self._known_now: list[Entry] | None = None
        self._rejected: IsRejected | None = None
        self._excerpt = Excerpt(task.agent_id, task.user_id, task.messages, task.before)
        self._finished: dict[Stage, StageRecord] = {cast(Stage, kept.stage): kept for kept in task.finished}

    async def run_stages(self) -> None:
        """Execute the stages that are not finished, in order."""
        stages: dict[Stage, Callable[[], Coroutine[Any, Any, None]]] = {
            "modification": self._modification,
            "update": self._update,
            "mind": self._mind,
        }
        for self.stage in STAGES:
            if self.stage not in self._finished:
                await stages[self.stage]()
            if self._is_cancelled:
                raise asyncio.CancelledError

    async def _modification(self) -> None:
        answer = Answer(Modification("", ()))
        if self._excerpt.messages:  # they may have been erased
            answer = await self._under_lease(self._extractor.modification(self._excerpt))
        answer = guard_modification(answer, self._excerpt, await self._find_rejected())
        await self._store(answer, msgspec.to_builtins(answer.value))

    async def _update(self) -> None:
        candidates = self._candidates()
        known = await self._known(candidates)
        answer = Answer(Update(()))
        if candidates:
            answer = await self._under_lease(self._extractor.update(self._excerpt, candidates, known))
        known = await self._with_evidence(known, answer.value.decisions)
        changes = self._consolidate(candidates, answer.value.decisions, known)
        result = msgspec.to_builtins(answer.value)
        await self._store(answer, {**result, "profile_updated": bool(changes.added)}, changes)
        self._known_now = apply_changes(known, changes, self._task.run.memory_id)

    async def _mind(self) -> None:
        known = self._known_now
        if known is None:  # the stage before was executed in an earlier attempt
            known = await self._known(self._candidates())
        answer = Answer(Mind("", None, ()))
        if self._excerpt.messages:
            answer = await self._under_lease(self._extractor.mind(self._excerpt, known))
        await finish_despite_cancellation(self._store_mind(answer), grace=_LONGEST_PAUSE)

    async def _store_mind(self, answer: Answer[Mind]) -> None:
        answer = guard_mind(answer, self._excerpt, await self._find_rejected())
        candidates = answer.value.candidates
        changes = self._consolidate(candidates, (), await self._known(candidates))
        await self._store(answer, msgspec.to_builtins(answer.value), changes, is_last=True)

    def _consolidate(
        self, candidates: Sequence[Candidate], decisions: Sequence[Decision], known: Sequence[Entry]
    ) -> Changes:
        said_at = {message.message_id: message.created_at for message in self._task.messages}
        return consolidate(self._task.run.conversation_id, candidates, decisions, known, said_at)

    def _candidates(self) -> Sequence[Candidate]:
        """The candidates that the first stage has found."""
        return msgspec.convert(self._finished["modification"].result, Modification).candidates

    async def _find_rejected(self) -> IsRejected:
        """A test for what people have rejected. It is read once for a run."""
        if self._rejected is None:
            find = partial(find_rejected, self._database, self._task.run.memory_id)
            self._rejected = await _retry_until_available(self._task, find)
        return self._rejected

    async def _known(self, candidates: Sequence[Candidate]) -> list[Entry]:
        """The stored entries about the same matters."""
        texts = [candidate.text for candidate in candidates]
        slots = {candidate.slot for candidate in candidates if candidate.slot}
        related = partial(self._database.related, self._task.run.memory_id, texts, slots)
        return await _retry_until_available(self._task, related)

    async def _with_evidence(self, known: list[Entry], decisions: Sequence[Decision]) -> list[Entry]:
        """The same entries, with evidence for those that may be superseded in part and have to be split."""
        targets = {
            each for decision in decisions if decision.action == "supersede" for each in decision.targets
        }
        split = [entry for entry in known if entry.content_id in targets and len(facts_of(entry.text)) > 1]
        if not split:
            return known
        cited = await _retry_until_available(self._task, partial(self._database.with_evidence, split))
        by_id = {entry.content_id: entry for entry in cited}
        return [by_id.get(entry.content_id, entry) for entry in known]

    async def _store(
        self, answer: Answer[Any], result: Any, changes: Changes | None = None, is_last: bool = False
    ) -> None:
        """Store the stage and its changes in one transaction, and the end of the run with the last stage."""
        kept = StageRecord(
            self.stage,
            self._extractor.model,
            column_now(),
            {**result, "data": dict(answer.data)} if answer.data else result,
            mask_secrets(answer.raw_response).text,
            answer.usage.prompt_tokens,
            answer.usage.completion_tokens,
        )
        self._finished[self.stage] = kept
        store = partial(self._stage_script, kept, changes or Changes(), is_last)
        try:
            await _retry_until_available(self._task, partial(self._database.write, store))
        finally:
            await self._meter.spent(self._task.run.tenant, kept.prompt_tokens + kept.completion_tokens)

    def _stage_script(self, kept: StageRecord, changes: Changes, is_last: bool) -> Script[None]:
        task, run, queue, now = self._task, self._task.run, self._database.queue, kept.finished_at
        yield from runs.extend(queue, task, self._lease_seconds)
        if not (yield from runs.store_stage(task, kept)):
            return  # an earlier try has committed, and its connection was lost before the confirmation
        changes = yield from self._still_possible(changes)
        yield from entries.change(run.tenant, run.memory_id, run.run_id, changes, now)
        if is_last:
            result = pipeline_result(self._finished, len(task.messages))
            left_out = describe_left_out(self._finished.values())
            yield from runs.finish(queue, task, kept.model, result, merge_results, now, left_out)

    def _still_possible(self, changes: Changes) -> Script[Changes]:
        """The changes that still apply: people may have deleted or changed entries during the model call."""
        depends = {
            each for entry in changes.added for each in (entry.superseded_by, entry.remains_of) if each
        }
        wanted = {support.content_id for support in changes.supported} | depends
        if not wanted:
            return changes
        is_live = yield from runs.existing_entries(self._database.queue, self._task, wanted)
        added = [
            entry for entry in changes.added if entry.remains_of is None or is_live.get(entry.remains_of)
        ]
        there = is_live.keys() | {entry.content_id for entry in added}
        return Changes(
            tuple(
                entry if entry.superseded_by in there else replace(entry, superseded_by=None)
                for entry in added
            ),
            tuple(support for support in changes.supported if support.content_id in there),
            tuple(pair for pair in changes.superseded if pair[1] in there),
        )

    async def _under_lease(self, call: Awaitable[T]) -> T:
        """The result of a model call. The lease is extended meanwhile, and losing it cancels the call.

        If this worker is cancelled when the result is there already, the result is returned and stored, and
        the run stops after that.
        """
        result = asyncio.ensure_future(_guarded(call))
        try:
            while not (await asyncio.wait({result}, timeout=self._lease_seconds / 3))[0]:
                await self._extend()
            if result.cancelled():  # by the extractor itself, not by this worker
                raise ExtractionError("the extractor was cancelled")
            return result.result()
        except asyncio.CancelledError:
            if not result.done() or result.cancelled() or result.exception() is not None:
                raise
            self._is_cancelled = True
            return result.result()
        finally:
            result.cancel()

    async def _extend(self) -> None:
        """Extend the lease. A database error is logged only: each write checks the lease again."""
        extend = partial(runs.extend, self._database.queue, self._task, self._lease_seconds, alone=True)
        try:
            await self._database.write(extend)
        except StorageError as error:
            run_id = self._task.run.run_id
            _log.warning("lease not extended: run %s (%s)", run_id, type(error).__name__)
