"""Doing a run: each stage that is not finished yet, one after another, each kept before the next begins."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from ...errors import ExtractionError, LeaseLostError, ModelRefusedError, ModelUnavailableError, StorageError
from ...sql.scripts import Script
from ..background import to_its_end
from ..database import entries, runs
from ..database.access import MemoryDatabase, column_now
from ..database.entries import Changes
from ..database.runs import Failure, StageRecord, Task
from ..entry import Entry
from ..facts.clauses import facts_of
from .consolidation import known_after, one_fact_each, settle
from .results import describe_left_out, merged, pipeline_result
from .stages import STAGES, Answer, Candidate, Decision, Excerpt, Extractor, Mind, Modification, Stage, Update
from .token_meter import Metered, TokenMeter

T = TypeVar("T")

_log = logging.getLogger("recollect.memory")
_LONGEST_ERROR = 500  # characters
_FIRST_PAUSE = 0.1  # seconds until a database that does not answer is asked again
_LONGEST_PAUSE = 5.0


@dataclass(frozen=True)
class RunOptions:
    """How runs are done."""

    lease_seconds: float = 60.0
    """A worker that is not heard of for so long is given up on, and another takes its run over."""
    attempts: int = 5
    """How often a run is tried before it has failed."""
    backoff_seconds: float = 1.0
    """Until the second attempt; doubled with each further one."""
    longest_backoff_seconds: float = 300.0

    def __post_init__(self) -> None:
        for name in ("lease_seconds", "attempts", "backoff_seconds", "longest_backoff_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be more than 0, and it is {getattr(self, name)}")
        for name in ("lease_seconds", "longest_backoff_seconds"):
            if getattr(self, name) > runs.LONGEST:
                raise ValueError(f"{name} must be at most an hour, and it is {getattr(self, name)} seconds")

    def again_in(self, attempt: int, error: Exception) -> float | None:
        """Seconds until a run is tried again after so many attempts; `None` if it is not."""
        if isinstance(error, ModelRefusedError) or attempt >= self.attempts:
            return None
        asked_for = (error.retry_after or 0.0) if isinstance(error, ModelUnavailableError) else 0.0
        backoff = max(self.backoff_seconds * 2.0 ** (attempt - 1), asked_for)
        return min(backoff, self.longest_backoff_seconds)


class Runner:
    """Takes runs from the queue and does them, with one extractor."""

    def __init__(
        self,
        database: MemoryDatabase,
        extractor: Extractor,
        options: RunOptions,
        tenant: str | None = "default",
        meter: TokenMeter | None = None,
    ) -> None:
        self.tenant = tenant
        """Whose runs it does; `None` for everybody's."""
        self._database = database
        self._extractor = extractor
        self._options = options
        self._meter = Metered(meter)

    async def take(self, lease: str) -> Task | None:
        """A run that is due, under a lease; `None` if there is none."""
        queue, seconds = self._database.queue, self._options.lease_seconds
        take = partial(runs.claim, queue, self.tenant, lease, seconds, column_now())
        taking = asyncio.ensure_future(self._database.write(take))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            await asyncio.wait({taking})
            if not taking.cancelled() and taking.exception() is None and (task := taking.result()):
                await self._give_back(task)
            raise

    async def do(self, task: Task) -> None:
        """Do a run. Whatever goes wrong in it is kept with it, and is not raised.

        Where no model may be asked now, it is given back, to be taken when one may.
        """
        work = _Work(self._database, self._extractor, task, self._options.lease_seconds, self._meter)
        try:
            seconds = await self._meter.wait(task.run.tenant)
            if seconds > 0:
                await to_its_end(self._give_back(task, seconds))
            else:
                await work.do()
        except LeaseLostError:
            _log.warning("run %s was taken over by another worker", task.run.run_id)
        except asyncio.CancelledError:
            await to_its_end(self._give_back(task))
            raise
        except Exception as error:  # noqa: BLE001 - extractors are others' code: whatever they raise is a failure
            await self._fail(task, work.stage, error)

    async def _give_back(self, task: Task, seconds: float = 0) -> None:
        try:
            await self._database.write(partial(runs.give_back, self._database.queue, task, seconds))
        except (LeaseLostError, StorageError):
            _log.info("run %s could not be given back, and is taken over later", task.run.run_id)

    async def _fail(self, task: Task, stage: Stage, error: Exception) -> None:
        again_in = self._options.again_in(task.run.attempts + 1, error)
        known = error if isinstance(error, ExtractionError) else ExtractionError("")
        failure = Failure(
            stage,
            self._extractor.model,
            _told(error),
            known.raw_response,
            again_in,
            known.prompt_tokens,
            known.completion_tokens,
        )
        _log.warning("run %s: no answer in stage %s (%s)", task.run.run_id, stage, type(error).__name__)
        fail = partial(runs.fail, self._database.queue, task, failure, column_now())
        try:
            await _patiently(task, partial(self._database.write, fail))
        except LeaseLostError:
            _log.warning("run %s was taken over by another worker", task.run.run_id)
        finally:
            await self._meter.spent(task.run.tenant, failure.prompt_tokens + failure.completion_tokens)


def _told(error: Exception) -> str:
    """The cause of a failure; what others' code says about it may quote contents, and is not told."""
    if isinstance(error, ExtractionError):
        reason = str(error)
    else:
        of_database = isinstance(error, StorageError)
        reason = "the answer cannot be stored" if of_database else "the extractor raised it"
    return f"{type(error).__name__}: {reason}"[:_LONGEST_ERROR]


async def _patiently(task: Task, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What a call of the database gives, be it that this takes long: no model is asked twice for that.

    A refusal of what was to be written is an error at once, for it would be refused again.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await to_its_end(call())
        except StorageError as error:
            if type(error) is StorageError:
                raise
            _log.warning("run %s: the database does not answer (%s)", task.run.run_id, type(error).__name__)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _guarded(call: Awaitable[T]) -> T:
    """What a call of an extractor gives; it may not end the thread it runs in."""
    try:
        return await call
    except (SystemExit, KeyboardInterrupt) as error:
        raise ExtractionError(f"the extractor raised {type(error).__name__}") from error


class _Work:
    """One run, as far as it has come."""

    def __init__(
        self,
        database: MemoryDatabase,
        extractor: Extractor,
        task: Task,
        lease_seconds: float,
        meter: Metered,
    ) -> None:
        self.stage: Stage = "modification"
        self._database = database
        self._extractor = extractor
        self._task = task
        self._lease_seconds = lease_seconds
        self._meter = meter
        self._is_cancelled = False
        self._known_now: list[Entry] | None = None
        self._excerpt = Excerpt(task.agent_id, task.user_id, task.messages, task.before)
        self._kept: dict[Stage, StageRecord] = {cast(Stage, kept.stage): kept for kept in task.finished}

    async def do(self) -> None:
        """The stages that are not finished, in their order."""
        stages: dict[Stage, Callable[[], Coroutine[Any, Any, None]]] = {
            "modification": self._modification,
            "update": self._update,
            "mind": self._mind,
        }
        for self.stage in STAGES:
            if self.stage not in self._kept:
                await stages[self.stage]()
            if self._is_cancelled:
                raise asyncio.CancelledError

    async def _modification(self) -> None:
        answer = Answer(Modification("", ()))
        if self._excerpt.messages:  # they may have been erased
            answer = await self._held(self._extractor.modification(self._excerpt))
        found = replace(answer.value, candidates=one_fact_each(answer.value.candidates))
        await self._keep(answer, msgspec.to_builtins(found))

    async def _update(self) -> None:
        candidates = self._candidates()
        known = await self._known(candidates)
        answer = Answer(Update(()))
        if candidates:
            answer = await self._held(self._extractor.update(self._excerpt, candidates, known))
        known = await self._with_evidence(known, answer.value.decisions)
        changes = self._settled(candidates, answer.value.decisions, known)
        told = msgspec.to_builtins(answer.value)
        await self._keep(answer, {**told, "profile_updated": bool(changes.added)}, changes)
        self._known_now = known_after(known, changes, self._task.run.memory_id)

    async def _mind(self) -> None:
        known = self._known_now
        if known is None:  # the stage before was done by another
            known = await self._known(self._candidates())
        answer = Answer(Mind("", None, ()))
        if self._excerpt.messages:
            answer = await self._held(self._extractor.mind(self._excerpt, known))
        await to_its_end(self._keep_mind(answer), _LONGEST_PAUSE)

    async def _keep_mind(self, answer: Answer[Mind]) -> None:
        found = replace(answer.value, candidates=one_fact_each(answer.value.candidates))
        changes = self._settled(found.candidates, (), await self._known(found.candidates))
        await self._keep(answer, msgspec.to_builtins(found), changes, is_last=True)

    def _settled(
        self, candidates: Sequence[Candidate], decisions: Sequence[Decision], known: Sequence[Entry]
    ) -> Changes:
        said_at = {message.message_id: message.created_at for message in self._task.messages}
        return settle(self._task.run.conversation_id, candidates, decisions, known, said_at)

    def _candidates(self) -> Sequence[Candidate]:
        """What the first stage has found."""
        return msgspec.convert(self._kept["modification"].result, Modification).candidates

    async def _known(self, candidates: Sequence[Candidate]) -> list[Entry]:
        """What is known about the same matters."""
        texts = [candidate.text for candidate in candidates]
        slots = {candidate.slot for candidate in candidates if candidate.slot}
        related = partial(self._database.related, self._task.run.memory_id, texts, slots)
        return await _patiently(self._task, related)

    async def _with_evidence(self, known: list[Entry], decisions: Sequence[Decision]) -> list[Entry]:
        """The same entries, with their evidence where facts of one may have to be kept apart."""
        targets = {
            each for decision in decisions if decision.action == "supersede" for each in decision.targets
        }
        split = [entry for entry in known if entry.content_id in targets and len(facts_of(entry.text)) > 1]
        if not split:
            return known
        cited = await _patiently(self._task, partial(self._database.with_evidence, split))
        by_id = {entry.content_id: entry for entry in cited}
        return [by_id.get(entry.content_id, entry) for entry in known]

    async def _keep(
        self, answer: Answer[Any], result: Any, changes: Changes | None = None, is_last: bool = False
    ) -> None:
        """Keep the stage, together with what it changes, and for the last one with the end of the run."""
        kept = StageRecord(
            self.stage,
            self._extractor.model,
            column_now(),
            {**result, "data": dict(answer.data)} if answer.data else result,
            answer.raw_response,
            answer.usage.prompt_tokens,
            answer.usage.completion_tokens,
        )
        self._kept[self.stage] = kept
        keep = partial(self._keeping, kept, changes or Changes(), is_last)
        try:
            await _patiently(self._task, partial(self._database.write, keep))
        finally:
            await self._meter.spent(self._task.run.tenant, kept.prompt_tokens + kept.completion_tokens)

    def _keeping(self, kept: StageRecord, changes: Changes, is_last: bool) -> Script[None]:
        task, run, queue, now = self._task, self._task.run, self._database.queue, kept.finished_at
        yield from runs.extend(queue, task, self._lease_seconds)
        if not (yield from runs.store_stage(task, kept)):
            return  # a try before this one has done it, and was cut off before it heard so
        changes = yield from self._still_possible(changes)
        yield from entries.change(run.tenant, run.memory_id, run.run_id, changes, now)
        if is_last:
            result = pipeline_result(self._kept, len(task.messages))
            left_out = describe_left_out(self._kept.values())
            yield from runs.finish(queue, task, kept.model, result, merged, now, left_out)

    def _still_possible(self, changes: Changes) -> Script[Changes]:
        """The changes without what people have deleted or changed while the model thought."""
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

    async def _held(self, call: Awaitable[T]) -> T:
        """What a call gives. The lease is held for as long as it takes, and the call ends with the lease."""
        asked = asyncio.ensure_future(_guarded(call))
        try:
            while not (await asyncio.wait({asked}, timeout=self._lease_seconds / 3))[0]:
                await self._extend()
            if asked.cancelled():  # not by us
                raise ExtractionError("the extractor was cancelled")
            return asked.result()
        except asyncio.CancelledError:
            if not asked.done() or asked.cancelled() or asked.exception() is not None:
                raise
            self._is_cancelled = True  # which is heeded when the answer that came with it is kept
            return asked.result()
        finally:
            asked.cancel()

    async def _extend(self) -> None:
        """Hold the lease. Where that fails the call goes on: the lease is checked before anything is kept."""
        extend = partial(runs.extend, self._database.queue, self._task, self._lease_seconds, alone=True)
        try:
            await self._database.write(extend)
        except StorageError as error:
            run_id = self._task.run.run_id
            _log.warning("run %s: the lease could not be extended (%s)", run_id, type(error).__name__)
