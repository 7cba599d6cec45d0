"""The rows of runs, and the queue of memories that have open runs.

Leases: a worker claims a memory by a lease on its queue row. One run at a time therefore changes a memory,
in the order in which the runs were created. A lease expires: then another worker may claim the row. Each
write of a run checks the lease in the same transaction: a worker that has lost its lease writes nothing more.

Clocks: no lease and no delay is longer than an hour. A queue row that is due later than that was written by a
clock that ran fast. It is due at once; otherwise it would wait until that time.

Lock order: the queue row first, then the memory, then the conversation. No transaction waits for a queue row
while it holds one of the others, so no two transactions wait for each other.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ...errors import LeaseLostError
from ...ids import new_id
from ...sql.columns import StoredTime, json_to_column, text_to_column, time_as_text
from ...sql.scripts import Row, Script, Statement
from ..conversation import Message
from . import conversations
from .corruption import (
    UNREADABLE,
    readable,
    report_corrupt,
    stored_count,
    stored_object,
    stored_text,
    stored_time,
)
from .queue_queries import (
    CLOSE,
    COLUMNS,
    CONTEXT,
    LONGEST,
    MIND,
    STAGE_COLUMNS,
    START_OLDEST,
    LastStagesKey,
    QueueQueries,
)
from .schema import FAILURES, QUEUE, RUNS, STAGES

_RUNS_PER_STATEMENT = 500
READ = f"SELECT {COLUMNS} FROM {RUNS.name} WHERE run_id = ?1 AND tenant = ?2"
OF_CONVERSATION = (
    f"SELECT {COLUMNS} FROM {RUNS.name} WHERE conversation_id = ?1 AND tenant = ?2 ORDER BY sequence"
)
READ_STAGES = f"SELECT {STAGE_COLUMNS} FROM {STAGES.name} WHERE run_id = ?1"
_COUNT_FAILURE = (
    f"UPDATE {RUNS.name} SET status = ?2, is_open = ?3, attempts = attempts + 1, finished_at = ?4,"
    " model = ?5, error = ?6 WHERE run_id = ?1"
)
_NEXT_FAILURE = f"(SELECT coalesce(max(attempt), 0) + 1 FROM {FAILURES.name} WHERE run_id = ?1)"
_ADD_FAILURE = (
    f"INSERT INTO {FAILURES.name} (run_id, tenant, attempt, stage, failed_at, error, raw_response,"
    f" prompt_tokens, completion_tokens) VALUES (?1, ?2, {_NEXT_FAILURE}, ?3, ?4, ?5, ?6, ?7, ?8)"
)
_FAIL_CORRUPT = (
    f"UPDATE {RUNS.name} SET status = 'failed', is_open = 0, finished_at = ?2, error = ?3 WHERE run_id = ?1"
)
_CORRUPT = "the row of this run is corrupt: run `recollect repair`"
_GIVE_BACK = f"UPDATE {RUNS.name} SET status = 'pending' WHERE run_id = ?1 AND is_open = 1"
_FAILED = f"SELECT memory_id FROM {RUNS.name} WHERE run_id = ?1 AND tenant = ?2 AND status = 'failed'"
_REOPEN = (
    f"UPDATE {RUNS.name} SET status = 'pending', is_open = 1, attempts = 0, finished_at = NULL, error = NULL"
    " WHERE run_id = ?1 AND tenant = ?2 AND status = 'failed' RETURNING 1"
)
_DELETE_QUEUED = f"DELETE FROM {QUEUE.name} WHERE memory_id = ?1"


MergeResults: TypeAlias = Callable[[dict[str, Any] | None, dict[str, Any], int], dict[str, Any]]
"""Combines the result of a conversation so far, the result of a run, and the number of messages."""


class RunRow(NamedTuple):
    """The row of a run."""

    run_id: str
    tenant: str
    memory_id: str
    conversation_id: str
    first_index: int
    last_index: int
    status: str
    attempts: int
    created_at: StoredTime
    started_at: StoredTime | None
    finished_at: StoredTime | None
    error: str | None
    model: str | None
    kind: str | None

    @property
    def infers(self) -> bool:
        """Whether it infers from entries, instead of learning from messages."""
        return self.kind == MIND


@dataclass(frozen=True)
class StageRecord:
    """A finished stage, with its result as JSON."""

    stage: str
    model: str
    finished_at: StoredTime
    result: Any = field(repr=False)
    raw_response: str = field(repr=False)
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Failure:
    """Why a stage failed, and when the run is tried again."""

    stage: str
    model: str
    error: str
    raw_response: str = field(repr=False)
    again_in: float | None
    """Seconds until the next attempt; `None` if the run has failed for good."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Owner(NamedTuple):
    """The memory of a run, as it was when the run was claimed."""

    agent_id: str
    user_id: str
    has_entries: bool
    """Whether it has ever had an entry."""
    has_rejected: bool
    """Whether a person has rejected an entry of it."""


@dataclass(frozen=True)
class Task:
    """A claimed run, with all that a worker needs for it."""

    run: RunRow
    lease: str
    owner: Owner
    messages: tuple[Message, ...] = field(repr=False)
    before: tuple[Message, ...] = field(repr=False)
    finished: tuple[StageRecord, ...]


class ClaimRequest(NamedTuple):
    """A request for due runs, each of another memory. Without a tenant, those of all tenants are claimed."""

    tenant: str | None
    lease: str
    seconds: float
    now: str
    most: int = 1

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters of a statement that claims."""
        return self.lease, min(self.seconds, LONGEST), self.tenant, self.most


# --- creating runs ---


def lock_queue(queries: QueueQueries, tenant: str, memory_id: str) -> Script[None]:
    """Enqueue a memory and lock its queue row. Run this before anything else of the memory is locked.

    Workers lock the queue row first, too. A transaction that locked it later could wait for a worker that
    waits for the memory.
    """
    yield Statement(queries.enqueue, (memory_id, tenant))


def enqueue(
    queries: QueueQueries,
    tenant: str,
    memory_id: str,
    conversation_id: str,
    spans: Sequence[tuple[int, int]],
    now: str,
) -> Script[list[str]]:
    """Create a run for each span of messages, in order; returns their ids. The queue row must be locked."""
    made = new_runs(spans)
    for start in range(0, len(made), _RUNS_PER_STATEMENT):
        some = json.dumps(made[start : start + _RUNS_PER_STATEMENT])
        yield Statement(queries.make_runs, (some, tenant, memory_id, conversation_id, now))
    return [str(run["run_id"]) for run in made]


def new_runs(spans: Sequence[tuple[int, int]]) -> list[dict[str, str | int]]:
    """New runs, as `make_runs` takes them."""
    return [{"run_id": new_id(), "first": first, "last": last} for first, last in spans]


def enqueue_mind(queries: QueueQueries, task: Task, fewest: int, now: StoredTime) -> Statement:
    """Create a run that infers, if so many entries are new since the last one. The queue row is locked."""
    return Statement(queries.make_mind_run, (task.run.run_id, new_id(), now, fewest))


def memory_of_failed(tenant: str, run_id: str) -> Script[str | None]:
    """The id of the memory of a failed run; `None` if there is no such run."""
    rows = yield Statement(_FAILED, (run_id, tenant))
    return str(rows[0][0]) if rows else None


def reopen(queries: QueueQueries, tenant: str, run_id: str, memory_id: str) -> Script[bool]:
    """Reopen a failed run at its failed stage; `False` if there is none. The queue row must be locked."""
    is_open = bool((yield Statement(_REOPEN, (run_id, tenant))))
    if not is_open:
        yield Statement(queries.dequeue_if_done, (memory_id,))
    return is_open


# --- processing runs ---


def claim(queries: QueueQueries, request: ClaimRequest) -> Script[list[Task]]:
    """Claim the memories that have waited longest, and start the oldest run of each; empty if none is due."""
    due, impossible = queries.claim_any if request.tenant is None else queries.claim
    values = request.parameters
    while rows := (yield Statement(due, values)) or (yield Statement(impossible, values)):
        tasks: list[Task] = []
        for (memory_id,) in rows:
            task = yield from _start(memory_id, request)
            tasks += [task] if task is not None else []
        if tasks:
            return tasks
    return []


def claim_at_once(statement: str, request: ClaimRequest) -> Script[dict[str, Task | None]]:
    """The same as `claim` in one statement: the claimed memories and their tasks; empty if none is due.

    Without a task, no run can be started in the snapshot of the statement: `start_claimed` decides. The
    stages of a run that was started before are not read.
    """
    rows = yield Statement(statement, (*request.parameters, request.now), alone=True)
    by_memory: dict[str, list[Row]] = {}
    for memory_id, *found in rows:
        by_memory.setdefault(memory_id, []).append(tuple(found))
    return {memory_id: _claimed(request.lease, found) for memory_id, found in by_memory.items()}


def _claimed(lease: str, rows: Sequence[Row]) -> Task | None:
    """The task in rows of a run, its owner and one message each."""
    width = len(RunRow._fields)
    after = width + len(Owner._fields)
    if rows[0][0] is None or not _has_span(run := RunRow(*rows[0][:width])):
        return None
    said = [row[after:] for row in rows if row[after] is not None]
    return _task_of(run, lease, Owner(*rows[0][width:after]), said)


def start_claimed(queries: QueueQueries, memory_id: str, request: ClaimRequest) -> Script[Task | None]:
    """Start the oldest run of a claimed memory. Without one, the memory is removed from the queue."""
    if not (yield Statement(queries.extend, (memory_id, *request.parameters[:2]))):
        return None
    return (yield from _start(memory_id, request))


def _start(memory_id: str, request: ClaimRequest) -> Script[Task | None]:
    while found := (yield Statement(START_OLDEST, (memory_id, request.now))):
        width = len(RunRow._fields)
        if _has_span(row := RunRow(*found[0][:width])):
            return (yield from _task(row, request, Owner(*found[0][width:])))
        yield Statement(_FAIL_CORRUPT, (row.run_id, request.now, _CORRUPT))
    yield Statement(_DELETE_QUEUED, (memory_id,))
    return None


def _has_span(run: RunRow) -> bool:
    """Whether a run has a valid span of messages. A run without one would block its memory for ever."""
    try:
        return stored_count(run.first_index) <= stored_count(run.last_index)
    except UNREADABLE:
        report_corrupt(RUNS.name, run.run_id)
        return False


def _task(run: RunRow, request: ClaimRequest, owner: Owner) -> Script[Task]:
    said = yield Statement(
        conversations.READ_MESSAGES, (run.conversation_id, max(0, run.first_index - CONTEXT), run.last_index)
    )
    stages: list[Row] = []
    if was_started_before(run, request.now):
        stages = yield Statement(READ_STAGES, (run.run_id,))
    return _task_of(run, request.lease, owner, said, stages_from(run.run_id, stages))


def _task_of(
    run: RunRow, lease: str, owner: Owner, said: list[Row], finished: Iterable[StageRecord] = ()
) -> Task:
    messages = conversations.messages_from(said)
    return Task(
        run,
        lease,
        owner,
        tuple(message for message in messages if message.message_index >= run.first_index),
        tuple(message for message in messages if message.message_index < run.first_index),
        tuple(finished),
    )


def was_started_before(run: RunRow, now: str) -> bool:
    """Whether a run may have finished stages: one that starts now has none."""
    assert run.started_at is not None
    return time_as_text(run.started_at) != now


def extend(queries: QueueQueries, task: Task, seconds: float, alone: bool = False) -> Script[None]:
    """Extend the lease. Raises `LeaseLostError` if another worker has it: then nothing is written."""
    rows = yield Statement(queries.extend, (task.run.memory_id, task.lease, min(seconds, LONGEST)), alone)
    if not rows:
        raise _lease_lost(task)


def store_stages(
    queries: QueueQueries, task: Task, stages: Sequence[StageRecord], seconds: float, *, alone: bool = False
) -> Script[bool]:
    """Extend the lease and store finished stages; `False` if they are stored already, with their changes.

    Raises `LeaseLostError` if another worker has the lease: then nothing is written. `alone` is for a
    transaction that does nothing else.
    """
    values = [value for stage in stages for value in _stage_row(task, stage)]
    if not queries.extend_and_add_stages:
        yield from extend(queries, task, seconds)
        return bool((yield Statement(queries.add_stages[len(stages)], values)))
    lease = (task.run.memory_id, task.lease, min(seconds, LONGEST))
    ((held, added),) = yield Statement(queries.extend_and_add_stages[len(stages)], (*lease, *values), alone)
    if not held:
        raise _lease_lost(task)
    return bool(added)


@dataclass(frozen=True)
class LastStages:
    """The last stages of a run that are to be stored, and what changes with them."""

    stages: Sequence[StageRecord]
    left_out: str | None
    """Which part of the messages the run did not read, if any."""
    versions: int | None
    """The number of changes to the memory; 0 locks it only, and `None` leaves it alone."""
    places: int
    """The number of new entries."""


class Ending(NamedTuple):
    """A run whose stages are stored and that is closed, but whose memory is not released yet."""

    next_position: int
    """The first position after those of the new entries."""
    before: conversations.ConversationRow


def store_last(queries: QueueQueries, task: Task, last: LastStages, seconds: float) -> Script[Ending | None]:
    """Store the last stages of a run and close it; `None` if they are stored already, with their changes.

    Raises `LeaseLostError` if another worker has the lease: then nothing is written. `release_statements`
    must follow in the same transaction.
    """
    run, stage = task.run, last.stages[-1]
    key = LastStagesKey(
        run.memory_id,
        task.lease,
        min(seconds, LONGEST),
        last.versions,
        last.places,
        run.run_id,
        stage.finished_at,
        stage.model,
        last.left_out,
        run.conversation_id,
        run.tenant,
    )
    values = [value for each in last.stages for value in _stage_row(task, each)]
    ((held, added, next_position, *before),) = yield Statement(
        queries.store_last[len(last.stages)], (*key, *values)
    )
    if not held:
        raise _lease_lost(task)
    return Ending(next_position or 0, conversations.ConversationRow(*before)) if added else None


def release_statements(
    queries: QueueQueries, task: Task, result: Any, merge: MergeResults, before: conversations.ConversationRow
) -> list[Statement]:
    """Statements that store the result of a closed run, and release its memory for the next run."""
    merged = json_to_column(merge(before.result, result, before.next_index))
    return [
        Statement(conversations.SET_RESULT, (task.run.conversation_id, merged)),
        Statement(queries.release_if_open, (task.run.memory_id,)),
        Statement(queries.dequeue_if_done, (task.run.memory_id,)),
    ]


def _stage_row(task: Task, stage: StageRecord) -> list[Any]:
    return [
        task.run.run_id,
        task.run.tenant,
        stage.stage,
        stage.model,
        stage.finished_at,
        json_to_column(stage.result),
        text_to_column(stage.raw_response),
        stage.prompt_tokens,
        stage.completion_tokens,
    ]


def _lease_lost(task: Task) -> LeaseLostError:
    return LeaseLostError(f"run {task.run.run_id} was taken over by another worker")


def existing_entries(queries: QueueQueries, ids: Iterable[str]) -> Script[dict[str, bool]]:
    """Which entries exist, and whether each is current (not superseded).

    The memory must be locked: no entry is deleted until the transaction ends.
    """
    rows = yield Statement(queries.existing_entries, (json.dumps(list(ids)),))
    return {content_id: bool(is_live) for content_id, is_live in rows}


def finish(
    queries: QueueQueries,
    task: Task,
    model: str,
    result: Any,
    merge: MergeResults,
    now: StoredTime,
    left_out: str | None = None,
) -> Script[None]:
    """Finish a run with its result, and release the memory for its next run. Check the lease before.

    `left_out` says which part of the messages the run did not read, if any.
    """
    yield Statement(CLOSE, (task.run.run_id, now, model, left_out))
    if not (yield Statement(queries.dequeue_if_done, (task.run.memory_id,))):
        yield Statement(queries.release_if_open, (task.run.memory_id,))
    # Lock order: queue row first, then memory, then conversation. A releasing worker may wait for the memory
    # row. An appender holds the memory while it waits for the conversation, so the conversation comes last.
    rows = yield Statement(queries.lock_conversation, (task.run.conversation_id, task.run.tenant))
    before = conversations.ConversationRow(*rows[0])
    merged = json_to_column(merge(before.result, result, before.next_index))
    yield Statement(conversations.SET_RESULT, (task.run.conversation_id, merged))


def fail(queries: QueueQueries, task: Task, failure: Failure, now: str) -> Script[None]:
    """Store a failure with its cause. The run is tried again later, or fails for good."""
    yield from release(queries, task, failure.again_in or 0)
    run, error = task.run, text_to_column(failure.error)
    is_final = failure.again_in is None
    status, finished_at = ("failed", now) if is_final else ("pending", None)
    yield Statement(
        _COUNT_FAILURE, (run.run_id, status, int(not is_final), finished_at, failure.model, error)
    )
    raw = text_to_column(failure.raw_response)
    tokens = (failure.prompt_tokens, failure.completion_tokens)
    yield Statement(_ADD_FAILURE, (run.run_id, run.tenant, failure.stage, now, error, raw, *tokens))
    if is_final:
        yield Statement(queries.dequeue_if_done, (run.memory_id,))


def give_back(queries: QueueQueries, task: Task, seconds: float = 0) -> Script[None]:
    """Give a run back: another worker may claim it, at once or in so many seconds."""
    yield from release(queries, task, seconds)
    yield Statement(_GIVE_BACK, (task.run.run_id,))


def release(queries: QueueQueries, task: Task, seconds: float) -> Script[None]:
    """Release the lease. The oldest open run of the memory is due in so many seconds."""
    rows = yield Statement(queries.release, (task.run.memory_id, task.lease, min(seconds, LONGEST)))
    if not rows:
        raise _lease_lost(task)


# --- rows ---


def stages_from(run_id: str, rows: Sequence[Row]) -> list[StageRecord]:
    """The finished stages of a run, without corrupt rows."""
    return readable(STAGES.name, ((run_id, *row) for row in rows), _stage_from, key=(0, 1))


def _stage_from(row: Row) -> StageRecord:
    _, stage, model, finished_at, result, raw, prompt, completion = row
    stored_time(finished_at)
    tokens = (stored_count(prompt), stored_count(completion))
    return StageRecord(stage, model, finished_at, stored_object(result), stored_text(raw), *tokens)
