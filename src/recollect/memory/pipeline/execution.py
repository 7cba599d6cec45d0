"""Executes one run: the stages that are not finished yet, in order, each stored before the next begins.

`runner.py` has the rules that make this safe to interrupt and repeat.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from ...cancellation import finish_despite_cancellation
from ...errors import ExtractionError, StatementRefusedError, StorageError
from ...sql.columns import StoredTime
from ...sql.scripts import MakeScript, Script, Statement, combine, run_all
from ..database import conversations, entries, memories, runs
from ..database.access import MemoryDatabase, column_now
from ..database.entries import Changes, Target
from ..database.runs import LastStages, StageRecord, Task
from ..entry import Entry
from ..facts.clauses import facts_of
from ..guard.secrets import mask_secrets
from .consolidation import apply_changes, consolidate, slots_of, split_facts
from .doubts import doubts_after
from .grounding import ground
from .guarding import IsRejected, find_rejected, guard_mind, guard_modification, join_texts, nothing_rejected
from .inferences import INFERRED, ground_inferences
from .merging import merge_entries
from .nearest import NearestEntries
from .replacements import SINGLE_SLOTS, apply_replacements, by_relevance
from .results import describe_left_out, merge_mind, merge_results, mind_run_result, pipeline_result
from .stages import (
    CONSOLIDATION,
    REFERENCE,
    STAGES,
    Answer,
    Candidate,
    Decision,
    Excerpt,
    Extractor,
    Mind,
    Modification,
    Stage,
    Update,
    display_name_of,
)
from .store_barrier import MayStore
from .token_meter import GuardedMeter

T = TypeVar("T")
Unstored: TypeAlias = Sequence[tuple[StageRecord, Changes]]
"""Finished stages with the changes that they make."""

_log = logging.getLogger("recollect.memory")
_FIRST_PAUSE = 0.1  # seconds until a call of an unavailable database is repeated; doubled each time
_LONGEST_PAUSE = 5.0
_MOST_COMPARED = 40  # messages of the user, whose known entries are given to an extractor
_LONGEST_COMPARED = 2000  # characters of each
_MOST_SHOWN = 40  # entries that surely fit into a prompt
_MOST_KNOWN = 300  # entries of a memory that are all given to an extractor


async def retry_until_available(task: Task, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Call the database, again and again while it is unavailable: giving up would repeat a model call.

    `StatementRefusedError` is raised at once, since a retry would be refused, too.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await finish_despite_cancellation(call())
        except StatementRefusedError:
            raise
        except StorageError as error:
            _log.warning("database unavailable: run %s (%s)", task.run.run_id, type(error).__name__)
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


async def count_and_store(
    database: MemoryDatabase, meter: GuardedMeter, task: Task, tokens: int, store: MakeScript[None]
) -> None:
    """Count the tokens of a model call, once, and store its result or its failure.

    In this order, all tokens of a run are counted before anybody sees the run as finished, or a crash hides
    that the call was made.
    """
    uncounted = tokens

    async def call() -> None:
        nonlocal uncounted
        spent, uncounted = uncounted, 0
        await meter.spent(task.run.tenant, spent)
        await database.write(store)

    await retry_until_available(task, call)


def _with_dropped(answer: Answer[T], dropped: Counter[str]) -> Answer[T]:
    """The answer with the number of dropped candidates, by their reasons."""
    counts = {f"dropped_{reason}": count for reason, count in sorted(dropped.items())}
    return replace(answer, data={**answer.data, **counts}) if counts else answer


def _depends_on(changes: Changes) -> set[str]:
    """The ids of the entries without which changes cannot be made as they are."""
    depends = {each for entry in changes.added for each in (entry.superseded_by, entry.remains_of) if each}
    return {support.content_id for support in changes.supported} | depends


def _changes_by_others(changes: Changes) -> bool:
    """Whether what becomes of an entry depends on another one that may be gone."""
    return bool(changes.superseded) or any(entry.superseded_by or entry.remains_of for entry in changes.added)


def _write_together(statements: Sequence[Statement]) -> Script[None]:
    if statements:
        yield combine(statements)


def _any_entry(_: Entry) -> bool:
    return True


async def _guarded(call: Awaitable[T]) -> T:
    """The result of a call of an extractor, which must not end the thread of the workers."""
    try:
        return await call
    except (SystemExit, KeyboardInterrupt) as error:
        raise ExtractionError(f"the extractor raised {type(error).__name__}") from error


class Execution:
    """The execution of one run, with the stages that are finished."""

    def __init__(
        self,
        database: MemoryDatabase,
        extractor: Extractor,
        task: Task,
        lease_seconds: float,
        meter: GuardedMeter,
        may_store: MayStore,
        nearest: NearestEntries | None = None,
    ) -> None:
        self._nearest = nearest
        self.stage: Stage = "modification"
        self._database = database
        self._extractor = extractor
        self._task = task
        self._lease_seconds = lease_seconds
        self._meter = meter
        self._may_store = may_store
        self._is_cancelled = False
        self._known_now: list[Entry] | None = None
        self._knows_all = False
        self._rejected: IsRejected | None = None
        self._found: Modification | None = None
        self._may_merge = True  # not known if the stages before were executed in an earlier attempt
        self._is_done = False
        self._has_shaken = False  # whether an inference has become doubtful
        # Stages that cost no model call are stored together: a crash repeats them, which costs little.
        self._stores_together = getattr(extractor, "asks_no_model", False)
        self._unstored: list[tuple[StageRecord, Changes]] = []
        self._excerpt = Excerpt(task.owner.agent_id, task.owner.user_id, task.messages, task.before)
        self._finished: dict[Stage, StageRecord] = {cast(Stage, kept.stage): kept for kept in task.finished}

    async def run_stages(self) -> None:
        """Execute the stages that are not finished, in order."""
        stages: dict[Stage, Callable[[], Coroutine[Any, Any, None]]] = {
            "modification": self._modification,
            "update": self._update,
            "mind": self._infer if self._task.run.infers else self._mind,
        }
        if len(self._excerpt.unknown_names()) == 1:  # otherwise there is nothing to find out
            self._excerpt = replace(self._excerpt, display_name=await self._find_display_name())
        for self.stage in STAGES:
            if self._task.run.infers and self.stage != "mind":
                continue
            if self.stage not in self._finished:
                await stages[self.stage]()
            if self._is_cancelled:
                raise asyncio.CancelledError
        if not self._is_done:
            self.stage = CONSOLIDATION
            merge = partial(self._merge_script, column_now())
            await retry_until_available(self._task, partial(self._database.write, merge))

    async def _find_display_name(self) -> str | None:
        """The display name of the user: an excerpt alone does not show who else speaks in a conversation."""
        key = (self._task.run.conversation_id,)
        read = partial(self._database.fetch, conversations.USER_NAMES, key, conversations.names_from)
        return display_name_of(await retry_until_available(self._task, read))

    async def _modification(self) -> None:
        answer = Answer(Modification("", ()))
        # Read before the call: a cancellation between the call and its storing would repeat the call.
        rejected = await self._find_rejected()
        if self._excerpt.messages:  # they may have been erased
            if getattr(self._extractor, "reads_known", False):
                await self._read_known()
            answer = await self._under_lease(self._extractor.modification(self._excerpt))
        candidates, dropped = self._grounded(answer.value.candidates)
        mind = answer.value.mind
        if mind is not None:
            minds, more = self._grounded(mind.candidates)
            insights = join_texts(minds) if more else mind.insights
            mind, dropped = replace(mind, candidates=minds, insights=insights), dropped + more
        text = join_texts(candidates) if dropped else answer.value.text
        grounded = replace(answer, value=Modification(text, candidates, mind))
        answer = guard_modification(_with_dropped(grounded, dropped), self._excerpt, rejected)
        self._found = answer.value
        await self._store(answer, msgspec.to_builtins(self._found))

    def _grounded(self, candidates: Sequence[Candidate]) -> tuple[tuple[Candidate, ...], Counter[str]]:
        """The candidates that the user's messages support, one fact each, and the reasons of the others."""
        grounded = ground(candidates, self._excerpt)
        return split_facts(grounded.candidates), Counter(grounded.dropped)

    async def _update(self) -> None:
        candidates = self._first_result().candidates
        known = await self._known(candidates)
        answer = Answer(Update(()))
        if candidates:
            answer = await self._under_lease(self._extractor.update(self._excerpt, candidates, known))
        decisions = apply_replacements(candidates, answer.value.decisions, known)
        doubts = await self._doubts_after(candidates, decisions, known)
        if doubts:
            candidates = (*candidates, *doubts)
            known = list({entry.content_id: entry for entry in (*known, *self._excerpt.known)}.values())
            decisions = apply_replacements(candidates, decisions, known)
        known = await self._with_evidence(candidates, known, decisions)
        changes = self._consolidate(candidates, decisions, known)
        result = msgspec.to_builtins(Update(decisions))
        await self._store(answer, {**result, "profile_updated": bool(changes.added)}, changes)
        self._known_now = apply_changes(known, changes, self._task.run.memory_id)
        self._may_merge = bool(changes.added) and bool(merge_entries(self._known_now, _any_entry))

    async def _mind(self) -> None:
        answered = self._first_result().mind
        if answered is not None:
            answer = Answer(answered)
        elif self._excerpt.messages:
            known = self._known_now
            await self._find_rejected()  # before the call, as in the first stage
            if known is None:  # the stage before was executed in an earlier attempt
                known = await self._known(self._first_result().candidates)
            answer = await self._under_lease(self._extractor.mind(self._excerpt, known))
        else:
            answer = Answer(Mind("", None, ()))
        await finish_despite_cancellation(self._store_mind(answer), grace=_LONGEST_PAUSE)

    async def _infer(self) -> None:
        """Infer from what is known. Such a run learns nothing from messages, and has this stage alone."""
        rejected = await self._find_rejected()
        await self._read_known()
        known = list(self._excerpt.known)
        known = await retry_until_available(self._task, partial(self._database.with_evidence, known))
        answer = await self._under_lease(self._extractor.mind(self._excerpt, known))
        mind, dropped = ground_inferences(answer.value, known, is_all=self._knows_all)
        mind = replace(mind, insights=join_texts(mind.candidates) if dropped else mind.insights)
        answer = guard_mind(_with_dropped(replace(answer, value=mind), dropped), self._excerpt, rejected)
        candidates = answer.value.candidates
        changes = self._consolidate(candidates, apply_replacements(candidates, (), known), known)
        ended = tuple((each, None) for each in answer.value.ended)
        changes = replace(changes, superseded=(*changes.superseded, *ended))
        self._is_done = True
        await self._store(answer, msgspec.to_builtins(answer.value), changes, is_last=True)

    async def _store_mind(self, answer: Answer[Mind]) -> None:
        if self._first_result().mind is None:  # that of the first stage is grounded already
            candidates, dropped = self._grounded(answer.value.candidates)
            insights = join_texts(candidates) if dropped else answer.value.insights
            grounded = replace(answer, value=replace(answer.value, candidates=candidates, insights=insights))
            answer = _with_dropped(grounded, dropped)
        answer = guard_mind(answer, self._excerpt, await self._find_rejected())
        candidates = answer.value.candidates
        known = await self._known(candidates)
        for _, unstored in self._unstored:  # what the stage before has learned is known now
            known = apply_changes(known, unstored, self._task.run.memory_id)
        decisions = apply_replacements(candidates, (), known)
        known = await self._with_evidence(candidates, known, decisions)
        changes = self._consolidate(candidates, decisions, known)
        if changes.added and not self._may_merge:
            after = apply_changes(known, changes, self._task.run.memory_id)
            self._may_merge = bool(merge_entries(after, _any_entry))
        found = msgspec.to_builtins(answer.value)
        # Most runs have nothing to merge: they end here, without another transaction.
        self._is_done = not self._may_merge
        await self._store(answer, found, changes, is_last=self._is_done)

    async def _doubts_after(
        self, candidates: Sequence[Candidate], decisions: Sequence[Decision], known: Sequence[Entry]
    ) -> list[Candidate]:
        """Doubtful copies of the known entries that rest on what the decisions change."""
        is_change = any(each.action == "supersede" for each in decisions)
        if not is_change and not any(each.shakes for each in candidates):
            return []
        if not getattr(self._extractor, "reads_known", False):
            return []
        if not self._excerpt.known:  # the stage before was executed in an earlier attempt
            await self._read_known()
        everything = {entry.content_id: entry for entry in (*known, *self._excerpt.known)}
        doubts = doubts_after(
            candidates,
            decisions,
            list(everything.values()),
            self._said_at(),
            by_plan=not self._stores_together,
        )
        self._has_shaken = any(each.data.get(INFERRED) for each in doubts)
        return doubts

    def _said_at(self) -> dict[str, datetime]:
        return {message.message_id: message.created_at for message in self._task.messages}

    def _consolidate(
        self, candidates: Sequence[Candidate], decisions: Sequence[Decision], known: Sequence[Entry]
    ) -> Changes:
        return consolidate(self._task.run.conversation_id, candidates, decisions, known, self._said_at())

    def _first_result(self) -> Modification:
        """The result of the first stage."""
        if self._found is None:
            self._found = msgspec.convert(self._finished["modification"].result, Modification)
        return self._found

    async def _find_rejected(self) -> IsRejected:
        """A test for what people have rejected. It is read once for a run."""
        if self._rejected is None and not self._task.owner.has_rejected:
            self._rejected = nothing_rejected
        if self._rejected is None:
            find = partial(find_rejected, self._database, self._task.run.memory_id)
            self._rejected = await retry_until_available(self._task, find)
        return self._rejected

    async def _known(self, candidates: Sequence[Candidate]) -> list[Entry]:
        """The stored entries about the same matters, with those that the candidates replace."""
        known = await self._about(candidates)
        replaced = {
            each
            for candidate in candidates
            for each in (*candidate.replaces, candidate.confirms)
            if each and not each.startswith(REFERENCE)
        }
        missing = sorted(replaced - {entry.content_id for entry in known})
        if missing:
            by_id = partial(self._database.entries_by_id, self._task.run.tenant, missing)
            found = (await retry_until_available(self._task, by_id)).values()
            known += [entry for entry in found if self._is_current(entry)]
        return known

    async def _about(self, candidates: Sequence[Candidate]) -> list[Entry]:
        if self._knows_all and self._stores_together:
            return list(self._excerpt.known)
        texts = [candidate.text for candidate in candidates]
        slots = slots_of(candidates)
        related = partial(self._database.related, self._task.run.memory_id, texts, slots)
        return await retry_until_available(self._task, related)

    def _is_current(self, entry: Entry) -> bool:
        return entry.memory_id == self._task.run.memory_id and entry.retired_at is None

    async def _read_known(self) -> None:
        """Read what is known about the messages, for the extractor."""
        self._excerpt = replace(self._excerpt, known=await self._known_about_messages())

    async def _known_about_messages(self) -> tuple[Entry, ...]:
        """All current entries, or if there are too many the newest with those about the same matters."""
        key = (self._task.run.memory_id, column_now(), _MOST_KNOWN + 1)
        fetch = partial(self._database.fetch, entries.READ_NEWEST, key, entries.entries_from)
        newest = [entry for _, entry in reversed(await retry_until_available(self._task, fetch))]
        self._knows_all = len(newest) <= _MOST_KNOWN
        said = [each.content for each in self._excerpt.messages if self._excerpt.is_users(each)]
        texts = [text[:_LONGEST_COMPARED] for text in said[-_MOST_COMPARED:]]
        if self._knows_all and len(newest) <= _MOST_SHOWN:
            return by_relevance(newest, texts)
        run, near = self._task.run, list[str]()
        if self._nearest is not None and texts:
            find = partial(self._nearest.find, run.tenant, run.memory_id, texts)
            near = await retry_until_available(self._task, find)
        found = {entry.content_id: entry for entry in newest}
        if not self._knows_all:
            related = partial(self._database.related, run.memory_id, texts, SINGLE_SLOTS)
            found |= {each.content_id: each for each in await retry_until_available(self._task, related)}
            missing = [each for each in near if each not in found]
            by_id = partial(self._database.entries_by_id, run.tenant, missing)
            others = (await retry_until_available(self._task, by_id)).values()
            found |= {each.content_id: each for each in others if self._is_current(each)}
        return by_relevance(found.values(), texts, near)

    async def _with_evidence(
        self, candidates: Sequence[Candidate], known: list[Entry], decisions: Sequence[Decision]
    ) -> list[Entry]:
        """The same entries, with evidence for those that are put in doubt, or may have to be split."""
        targets = {
            each for decision in decisions if decision.action == "supersede" for each in decision.targets
        }
        doubted = {candidate.doubts for candidate in candidates}
        split = [
            entry
            for entry in known
            if entry.content_id in doubted or (entry.content_id in targets and len(facts_of(entry.text)) > 1)
        ]
        if not split:
            return known
        cited = await retry_until_available(self._task, partial(self._database.with_evidence, split))
        by_id = {entry.content_id: entry for entry in cited}
        return [by_id.get(entry.content_id, entry) for entry in known]

    async def _store(
        self, answer: Answer[Any], result: Any, changes: Changes | None = None, is_last: bool = False
    ) -> None:
        """Store the stage and its changes in one transaction, and the end of the run with the last stage.

        Stages that are stored together wait for the last one.
        """
        kept = StageRecord(
            self.stage,
            self._extractor.model,
            column_now(),
            {**result, "data": dict(answer.data)} if answer.data else result,
            mask_secrets(answer.raw_response or self._shared_response()).text,
            answer.usage.prompt_tokens,
            answer.usage.completion_tokens,
        )
        self._finished[self.stage] = kept
        self._unstored.append((kept, changes or Changes()))
        if self.stage == "mind" or not self._stores_together:
            await self._store_finished(is_last=is_last)

    async def _store_finished(self, is_last: bool = False) -> None:
        """Store the stages that are finished and not stored yet."""
        unstored, self._unstored = self._unstored, []
        if not unstored:
            return
        await self._may_store()
        tokens = sum(kept.prompt_tokens + kept.completion_tokens for kept, _ in unstored)
        store = partial(self._stages_script, unstored, is_last)
        await count_and_store(self._database, self._meter, self._task, tokens, store)

    def _shared_response(self) -> str:
        """The response of the model to the first stage, if that one answers for all stages."""
        first = self._finished.get("modification")
        return first.raw_response if first and self._first_result().mind is not None else ""

    def _stages_script(self, unstored: Unstored, is_last: bool) -> Script[None]:
        if is_last and self._database.queue.store_last:
            return (yield from self._last_script(unstored))
        run, stages = self._task.run, [kept for kept, _ in unstored]
        alone = not is_last and not any(changes for _, changes in unstored)
        if not (yield from self._stages_stored(stages, alone=alone)):
            return  # an earlier try has committed, and its connection was lost before the confirmation
        for kept, changes in unstored:
            if _depends_on(changes):
                yield Statement(memories.LOCK, (run.memory_id, run.tenant))
            possible = yield from self._still_possible(changes)
            yield from entries.change(run.tenant, run.memory_id, run.run_id, possible, kept.finished_at)
        if is_last:
            yield from self._finish_script(stages[-1].model, stages[-1].finished_at)

    def _last_script(self, unstored: Unstored) -> Script[None]:
        """The same for the last stages of a run, in few statements."""
        queue, task = self._database.queue, self._task
        changed = [(kept, changes) for kept, changes in unstored if changes]
        depends = any(_changes_by_others(changes) for _, changes in changed)
        last = LastStages(
            [kept for kept, _ in unstored],
            describe_left_out(self._finished.values()),
            (0 if depends else len(changed)) if changed else None,
            0 if depends else sum(len(changes.added) for _, changes in changed),
        )
        ending = yield from runs.store_last(queue, task, last, self._lease_seconds)
        if ending is None:
            return  # an earlier try has committed, and its connection was lost before the confirmation
        waiting = yield from self._change_script(
            changed, None if depends else ending.next_position - last.places
        )
        if self._fewest_new is not None:
            yield from _write_together(waiting)  # the new entries count
            yield runs.enqueue_mind(queue, task, self._fewest_new, column_now())
            waiting = []
        result, merge = self._result()
        yield combine([*waiting, *runs.release_statements(queue, task, result, merge, ending.before)])

    def _result(self) -> tuple[dict[str, Any], runs.MergeResults]:
        """The result of the run, and how it changes that of the conversation."""
        messages = len(self._task.messages)
        if self._task.run.infers:
            return mind_run_result(self._finished["mind"], messages), merge_mind
        return pipeline_result(self._finished, messages), merge_results

    @property
    def _fewest_new(self) -> int | None:
        """After how many new entries a run that infers follows; `None` if none does.

        It follows at once if an inference has lost ground.
        """
        fewest: int = getattr(self._extractor, "infers_after", 0)
        if self._task.run.infers or fewest < 1:
            return None
        return 0 if self._has_shaken else fewest

    def _change_script(self, changed: Unstored, first: int | None) -> Script[list[Statement]]:
        """Apply changes to the memory; returns the statements that are left to run at the end.

        `first` is the first reserved position. Without it, the changes depend on entries that may be gone.
        """
        run, waiting = self._task.run, list[Statement]()
        for kept, wanted in changed:
            place, changes = first, wanted
            target = Target(run.tenant, run.memory_id, run.run_id, kept.finished_at)
            if place is None:
                yield from _write_together(waiting)  # these may depend on the entries of the stage before
                waiting = []
                changes = yield from self._still_possible(wanted)
                if not changes:
                    continue
                place = yield from memories.advance(run.memory_id, kept.finished_at, len(changes.added))
            else:
                first = place + len(changes.added)
            waiting += self._database.entries.additions(target, changes, place)
            said_again = self._database.entries.said_again(run.memory_id, changes)
            waiting += said_again[:1]
            said_earlier = entries.said_earlier(run.memory_id, changes)
            if changes.supersedes or said_again[1:] or said_earlier:
                yield from _write_together(waiting)
                waiting = []
                yield from run_all([*said_again[1:], *said_earlier])
                yield from entries.supersede(run.memory_id, changes, kept.finished_at)
        return waiting

    def _stages_stored(self, stages: Sequence[StageRecord], *, alone: bool = False) -> Script[bool]:
        queue = self._database.queue
        return (yield from runs.store_stages(queue, self._task, stages, self._lease_seconds, alone=alone))

    def _merge_script(self, now: str) -> Script[None]:
        """Merge the entries that this run has learned with the others, and finish the run.

        All is read and decided in the transaction, with the memory locked: nobody changes an entry meanwhile.
        """
        task, run, queue = self._task, self._task.run, self._database.queue
        yield from runs.extend(queue, task, self._lease_seconds)
        yield Statement(memories.LOCK, (run.memory_id, run.tenant))
        changes = merge_entries((yield from self._database.learned_with_related(run.memory_id, run.run_id)))
        if changes and (yield from self._adds_rejected(changes)):
            changes = Changes()
        if changes:
            result = {"merged": len(changes.superseded), "added": len(changes.added)}
            model = self._finished["mind"].model
            yield from self._stages_stored([StageRecord(CONSOLIDATION, model, now, result, "")])
            yield from entries.change(run.tenant, run.memory_id, run.run_id, changes, now)
        yield from self._finish_script(self._finished["mind"].model, now)

    def _adds_rejected(self, changes: Changes) -> Script[bool]:
        """Whether a merge would bring back a text that a person has rejected."""
        key = (self._task.run.memory_id, entries.MOST_REJECTED)
        rows = yield Statement(entries.READ_REJECTED, key)
        rejected = {entries.text_key(entry.text) for _, entry in entries.entries_from(rows)}
        return any(entries.text_key(entry.text) in rejected for entry in changes.added)

    def _finish_script(self, model: str, now: StoredTime) -> Script[None]:
        if self._fewest_new is not None:
            yield runs.enqueue_mind(self._database.queue, self._task, self._fewest_new, now)
        result, merge = self._result()
        left_out = describe_left_out(self._finished.values())
        yield from runs.finish(self._database.queue, self._task, model, result, merge, now, left_out)

    def _still_possible(self, changes: Changes) -> Script[Changes]:
        """The changes that still apply: people may have deleted or changed entries during the model call.

        If there are entries that they depend on, the memory must be locked.
        """
        wanted = _depends_on(changes)
        if not wanted:
            return changes
        is_live = yield from runs.existing_entries(self._database.queue, wanted)
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
            tuple(pair for pair in changes.superseded if pair[1] is None or pair[1] in there),
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
