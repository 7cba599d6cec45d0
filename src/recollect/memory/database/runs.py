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
from ...sql.scripts import Row, Script, Statement, renumber
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
from .dialect import Dialect
from .schema import CONTENTS, FAILURES, MEMORIES, MESSAGES, QUEUE, REJECTED_ENTRIES, RUNS, STAGES

_RUNS_PER_STATEMENT = 500
_STAGES_AT_ONCE = (1, 2, 3)
_CONTEXT = 6  # messages before those of a run, which these may refer to
LONGEST = 3600.0
"""The longest lease or delay, in seconds."""
_IMPOSSIBLE = LONGEST + 60  # seconds from now: no right clock has set a later time
COLUMNS = (
    "run_id, tenant, memory_id, conversation_id, first_index, last_index, status, attempts, created_at,"
    " started_at, finished_at, error, model"
)
READ = f"SELECT {COLUMNS} FROM {RUNS.name} WHERE run_id = ?1 AND tenant = ?2"
OF_CONVERSATION = (
    f"SELECT {COLUMNS} FROM {RUNS.name} WHERE conversation_id = ?1 AND tenant = ?2 ORDER BY sequence"
)
STAGE_COLUMNS = "stage, model, finished_at, result, raw_response, prompt_tokens, completion_tokens"
READ_STAGES = f"SELECT {STAGE_COLUMNS} FROM {STAGES.name} WHERE run_id = ?1"
_OF_OWNER = f"(SELECT {{}} FROM {MEMORIES.name} WHERE {MEMORIES.name}.memory_id = {RUNS.name}.memory_id)"
_START = f"UPDATE {RUNS.name} SET status = 'running', started_at = coalesce(started_at, {{}})"
_OLDEST = f"(SELECT run_id FROM {RUNS.name} WHERE memory_id = {{}} AND is_open = 1 ORDER BY sequence LIMIT 1)"
_ANY_REJECTED = (
    f"EXISTS (SELECT 1 FROM {CONTENTS.name} WHERE {CONTENTS.name}.memory_id = {RUNS.name}.memory_id"
    f" AND {REJECTED_ENTRIES})"
)
_STARTED = (
    f"{COLUMNS}, {_OF_OWNER.format('agent_id')}, {_OF_OWNER.format('user_id')},"
    f" {_OF_OWNER.format('next_position > 0')}, {_ANY_REJECTED}"
)
_START_OLDEST = (
    # The last condition is checked again if another worker has just finished the run.
    f"{_START.format('?2')} WHERE run_id = {_OLDEST.format('?1')} AND is_open = 1 RETURNING {_STARTED}"
)
_STAGE_ROW = (
    "run_id",
    "tenant",
    "stage",
    "model",
    "finished_at",
    "result",
    "raw_response",
    "prompt_tokens",
    "completion_tokens",
)
_CLOSE = (
    f"UPDATE {RUNS.name} SET status = 'done', is_open = 0, finished_at = ?2, model = ?3, error = ?4"
    " WHERE run_id = ?1"
)
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


class _LastStages(NamedTuple):
    """The parameters of `QueueQueries.store_last` before those of the stages."""

    memory_id: str
    lease: str
    seconds: float
    versions: int | None
    places: int
    run_id: str
    now: StoredTime
    model: str
    left_out: str | None
    conversation_id: str
    tenant: str


class QueueQueries:
    """The statements about the queue, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        queue, now = QUEUE.name, dialect.now
        # An update that changes nothing locks the row: recorders and workers of a memory exclude each other.
        self.enqueue = (
            f"INSERT INTO {queue} (memory_id, tenant, available_at) VALUES (?1, ?2, {now})"
            " ON CONFLICT (memory_id) DO UPDATE SET tenant = excluded.tenant"
        )
        self.claim = self._claims(dialect, "tenant = ?3")
        self.claim_any = self._claims(dialect, "CAST(?3 AS VARCHAR) IS NULL")
        leased = "WHERE memory_id = ?1 AND lease = ?2"
        self.extend = f"UPDATE {queue} SET available_at = {now} + ?3 {leased} RETURNING 1"
        self.release = f"UPDATE {queue} SET available_at = {now} + ?3, lease = NULL {leased} RETURNING 1"
        # The transaction must have locked the row before: otherwise a run could be added meanwhile.
        self.dequeue_if_done = (
            f"DELETE FROM {queue} WHERE memory_id = ?1 AND NOT EXISTS"
            f" (SELECT 1 FROM {RUNS.name} WHERE memory_id = ?1 AND is_open = 1) RETURNING 1"
        )
        self.existing_entries = (
            f"SELECT content_id, retired_at IS NULL FROM {CONTENTS.name}"
            f" WHERE content_id IN {dialect.each.format('?1')}"
        )
        self.make_runs = make_runs(dialect, "?1", "?2", "?3", "?4", "?5")
        self.claims_at_once = _claims_at_once(dialect, self.claim), _claims_at_once(dialect, self.claim_any)
        """The same for one tenant and for any, which also start the run and read its messages."""
        # By the number of stages.
        self.add_stages = {count: _add_stages(dialect, count, 1) for count in _STAGES_AT_ONCE}
        self.extend_and_add_stages = {
            count: _extend_and_add_stages(dialect, self.extend, count)
            for count in _STAGES_AT_ONCE
            if dialect.changes_in_with
        }
        self.store_last = {
            count: _store_last(dialect, self.extend, count) for count in self.extend_and_add_stages
        }
        """Stores the last stages of a run, closes it, and reads its conversation; none without `WITH`."""
        opened = f"FROM {RUNS.name} WHERE memory_id = ?1 AND is_open = 1"
        created = f"(SELECT {dialect.seconds.format('created_at')} {opened} ORDER BY sequence LIMIT 1)"
        oldest = f"coalesce({created}, {now})"  # a corrupt time has no seconds
        # The next run is due since it was created: the runs of a memory do not go to the end of the queue.
        self.release_if_open = (
            f"UPDATE {queue} SET available_at = {dialect.least.format(now, oldest)}, lease = NULL"
            f" WHERE memory_id = ?1 AND EXISTS (SELECT 1 {opened}) RETURNING 1"
        )
        self.lock_conversation = f"{conversations.READ}{dialect.lock}"

    def _claims(self, dialect: Dialect, whose: str) -> tuple[str, str]:
        """Statements that claim a memory: the one that waited longest, and one that a fast clock queued."""
        now = dialect.now
        return (
            _claim(dialect, f"{whose} AND available_at <= {now}"),
            _claim(dialect, f"{whose} AND available_at > {now} + {_IMPOSSIBLE}"),
        )


def _claim(dialect: Dialect, which: str) -> str:
    found = (
        f"SELECT memory_id FROM {QUEUE.name} WHERE {which} ORDER BY available_at"
        f" LIMIT ?4{dialect.skip_locked}"
    )
    return (
        f"UPDATE {QUEUE.name} SET lease = ?1, available_at = {dialect.now} + ?2"
        f" WHERE memory_id {dialect.among.format(found)} RETURNING memory_id"
    )


def _claims_at_once(dialect: Dialect, claims: Sequence[str]) -> tuple[str, ...]:
    """Statements that claim memories, start their oldest runs and read the messages; none without `WITH`."""
    if not dialect.changes_in_with:
        return ()
    oldest = (
        f"SELECT memory_id AS claimed_id, {_OLDEST.format('claimed.memory_id')} AS oldest_id FROM claimed"
    )
    start = f"{_START.format('?5')} FROM oldest WHERE run_id = oldest_id AND is_open = 1 RETURNING {_STARTED}"
    first = f"greatest(0, started.first_index - {_CONTEXT})"
    said = ", ".join(f"said.{column}" for column in conversations.MESSAGE_COLUMNS.split(", "))
    return tuple(
        f"WITH claimed AS ({claim}), oldest AS ({oldest}), started AS ({start})"
        f" SELECT claimed.memory_id, started.*, {said}"
        " FROM claimed LEFT JOIN started ON started.memory_id = claimed.memory_id"
        f" LEFT JOIN {MESSAGES.name} AS said ON said.conversation_id = started.conversation_id"
        f" AND said.message_index BETWEEN {first} AND started.last_index"
        " ORDER BY claimed.memory_id, said.message_index"
        for claim in claims
    )


def _add_stages(dialect: Dialect, count: int, first: int, held: str = "") -> str:
    """Adds so many finished stages, unless they are stored already; `first` is the first parameter."""
    types = {"finished_at": dialect.time, "result": dialect.json}
    types |= dict.fromkeys(("prompt_tokens", "completion_tokens"), "CAST({} AS BIGINT)")
    casts = [types.get(name, "CAST({} AS VARCHAR)") for name in _STAGE_ROW]
    rows = (
        f"SELECT {', '.join(cast.format(f'?{number}') for number, cast in enumerate(casts, start))}{held}"
        for start in range(first, first + count * len(casts), len(casts))
    )
    return (
        f"INSERT INTO {STAGES.name} ({', '.join(_STAGE_ROW)}) SELECT * FROM ({' UNION ALL '.join(rows)})"
        " AS stages WHERE true ON CONFLICT DO NOTHING RETURNING 1"
    )


def _extend_and_add_stages(dialect: Dialect, extend: str, count: int) -> str:
    """Both in one statement. Without the lease, no stage is added."""
    added = _add_stages(dialect, count, 4, " FROM held")
    return (
        f"WITH held AS ({extend}), added AS ({added})"
        " SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM added)"
    )


def _store_last(dialect: Dialect, extend: str, count: int) -> str:
    """All that a run stores at its end and that needs no answer from the database, in one statement.

    Without the lease, nothing is stored. Lock order: each part waits for the one before, so the queue row is
    locked first, then the memory, then the conversation.
    """
    added = _add_stages(dialect, count, len(_LastStages._fields) + 1, " FROM held")
    is_added, versions = "EXISTS (SELECT 1 FROM added)", "CAST(?4 AS BIGINT)"
    advanced = (
        f"UPDATE {MEMORIES.name} SET version = version + {versions},"
        f" entries_stamp = entries_stamp + {versions}, next_position = next_position + CAST(?5 AS BIGINT),"
        f" updated_at = CASE WHEN {versions} > 0 THEN {dialect.time.format('?7')} ELSE updated_at END"
        f" WHERE memory_id = ?1 AND {versions} IS NOT NULL AND {is_added} RETURNING next_position"
    )
    closed = f"{renumber(_CLOSE, 5)} AND {is_added}"
    # The release of the queue row will share the memory: the server checks the key of a row updated twice.
    shared = f"SELECT 1 FROM {MEMORIES.name} WHERE memory_id = ?1 AND {is_added}{dialect.share}"
    locked = "(SELECT count(*) FROM advanced) + (SELECT count(*) FROM shared) > 0"
    before = f"{renumber(conversations.READ, 9)} AND {locked}{dialect.lock}"
    return (
        f"WITH held AS ({extend}), added AS ({added}), advanced AS ({advanced}), shared AS ({shared}),"
        f" closed AS ({closed}), before AS ({before}) SELECT (SELECT count(*) FROM held),"
        " (SELECT count(*) FROM added),"
        " (SELECT next_position FROM advanced), before.* FROM (SELECT 1) AS one LEFT JOIN before ON true"
    )


def make_runs(
    dialect: Dialect, given: str, tenant: str, memory_id: str, conversation_id: str, created_at: str
) -> str:
    """Adds the runs of a JSON list to a memory, numbered in order after its existing runs."""
    run = {name: dialect.field.format("value", name) for name in ("run_id", "first", "last")}
    return (
        f"INSERT INTO {RUNS.name} (run_id, tenant, memory_id, conversation_id, first_index, last_index,"
        f" created_at, status, is_open, attempts, sequence) SELECT {run['run_id']},"
        f" CAST({tenant} AS VARCHAR), CAST({memory_id} AS VARCHAR), CAST({conversation_id} AS VARCHAR),"
        f" CAST({run['first']} AS BIGINT), CAST({run['last']} AS BIGINT), {dialect.time.format(created_at)},"
        f" 'pending', 1, 0, row_number() OVER (ORDER BY CAST({run['first']} AS BIGINT)) + (SELECT"
        f" coalesce(max(sequence), 0) FROM {RUNS.name} WHERE memory_id = {memory_id})"
        f" FROM {dialect.each.format(given)} AS given"
    )


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
    while found := (yield Statement(_START_OLDEST, (memory_id, request.now))):
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
        conversations.READ_MESSAGES, (run.conversation_id, max(0, run.first_index - _CONTEXT), run.last_index)
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
    key = _LastStages(
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
    yield Statement(_CLOSE, (task.run.run_id, now, model, left_out))
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
