"""The rows of runs and the queue: what is to be learned from which messages, and who is at it.

A memory is worked on by whoever holds its lease, so it is changed by one run at a time, in the order in which
runs were made. A lease is a time: the row of the queue may be taken again when it is over. Whoever writes for
a run checks its lease in the same transaction, so a worker that was given up on writes nothing more.
No lease and no wait is longer than an hour. What is to be taken later than that was queued by a clock that
was fast and has been set right since: it is due at once, for else it would wait until that time comes again.
Every transaction takes the row of the queue first, so that none waits for another that waits for it.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ...errors import LeaseLostError
from ...sql.columns import StoredTime, json_to_column, text_to_column, time_as_text
from ...sql.scripts import Row, Script, Statement
from ..conversation import Message
from . import conversations, memories
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
from .schema import CONTENTS, FAILURES, MEMORIES, QUEUE, RUNS, STAGES

_RUNS_AT_ONCE = 500
_BEFORE = 6  # messages before those of a run, for what they refer to
LONGEST = 3600.0
"""Seconds of a lease, or of a wait."""
_IMPOSSIBLE = LONGEST + 60  # seconds from now, at which nothing can be due
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
_START_OLDEST = (
    f"UPDATE {RUNS.name} SET status = 'running', started_at = coalesce(started_at, ?2)"
    f" WHERE run_id = (SELECT run_id FROM {RUNS.name} WHERE memory_id = ?1 AND is_open = 1"
    f" ORDER BY sequence LIMIT 1) RETURNING {COLUMNS},"
    f" {_OF_OWNER.format('agent_id')}, {_OF_OWNER.format('user_id')}"
)
_KEEP_STAGE = (
    f"INSERT INTO {STAGES.name} (run_id, tenant, stage, model, finished_at, result, raw_response,"
    " prompt_tokens, completion_tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
    " ON CONFLICT DO NOTHING RETURNING 1"
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
_KEEP_FAILURE = (
    f"INSERT INTO {FAILURES.name} (run_id, tenant, attempt, stage, failed_at, error, raw_response,"
    f" prompt_tokens, completion_tokens) VALUES (?1, ?2, {_NEXT_FAILURE}, ?3, ?4, ?5, ?6, ?7, ?8)"
)
_FAIL_CORRUPT = (
    f"UPDATE {RUNS.name} SET status = 'failed', is_open = 0, finished_at = ?2, error = ?3 WHERE run_id = ?1"
)
_CORRUPT = "the row of this run is corrupt: see `recollect repair`"
_GIVE_BACK = f"UPDATE {RUNS.name} SET status = 'pending' WHERE run_id = ?1 AND is_open = 1"
_FAILED = f"SELECT memory_id FROM {RUNS.name} WHERE run_id = ?1 AND tenant = ?2 AND status = 'failed'"
_REOPEN = (
    f"UPDATE {RUNS.name} SET status = 'pending', is_open = 1, attempts = 0, finished_at = NULL, error = NULL"
    " WHERE run_id = ?1 AND tenant = ?2 AND status = 'failed' RETURNING 1"
)
_FORGET_QUEUED = f"DELETE FROM {QUEUE.name} WHERE memory_id = ?1"


MergeResults: TypeAlias = Callable[[dict[str, Any] | None, dict[str, Any], int], dict[str, Any]]
"""What a conversation tells of its runs: from what it told before, a new result, and its length."""


class RunRow(NamedTuple):
    """A run, as its row holds it."""

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
class KeptStage:
    """A stage that is finished: what it came to, in JSON."""

    stage: str
    model: str
    finished_at: StoredTime
    result: Any = field(repr=False)
    raw_response: str = field(repr=False)
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Failure:
    """Why a stage has no answer, and when it is asked for again."""

    stage: str
    model: str
    error: str
    raw_response: str = field(repr=False)
    again_in: float | None
    """Seconds; `None` if it is not."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True)
class Task:
    """A run that was taken on, with all that is needed to do it."""

    run: RunRow
    lease: str
    agent_id: str
    user_id: str
    messages: tuple[Message, ...] = field(repr=False)
    before: tuple[Message, ...] = field(repr=False)
    finished: tuple[KeptStage, ...]


class QueueQueries:
    """The statements about the queue, in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        queue, now = QUEUE.name, dialect.now
        # The change that changes nothing makes recorders and workers of one memory wait for each other.
        self.enqueue = (
            f"INSERT INTO {queue} (memory_id, tenant, available_at) VALUES (?1, ?2, {now})"
            " ON CONFLICT (memory_id) DO UPDATE SET tenant = excluded.tenant"
        )
        self.take = self._takes(dialect, "tenant = ?3")
        self.take_any = self._takes(dialect, "CAST(?3 AS VARCHAR) IS NULL")
        held = "WHERE memory_id = ?1 AND lease = ?2"
        self.extend = f"UPDATE {queue} SET available_at = {now} + ?3 {held} RETURNING 1"
        self.release = f"UPDATE {queue} SET available_at = {now} + ?3, lease = NULL {held} RETURNING 1"
        # Only for who has changed the row before: else a run could be made while this waits for its turn.
        self.forget_if_done = (
            f"DELETE FROM {queue} WHERE memory_id = ?1 AND NOT EXISTS"
            f" (SELECT 1 FROM {RUNS.name} WHERE memory_id = ?1 AND is_open = 1) RETURNING 1"
        )
        self.still_there = (
            f"SELECT content_id, retired_at IS NULL FROM {CONTENTS.name}"
            f" WHERE content_id IN {dialect.each.format('?1')}"
        )
        self.make_runs = _make_runs(dialect)
        self.hold_conversation = f"{conversations.READ}{dialect.lock}"

    def _takes(self, dialect: Dialect, whose: str) -> tuple[str, str]:
        """Takes the memory that has waited longest; and where none is due, one of a clock that was fast."""
        now = dialect.now
        return (
            _take(dialect, f"{whose} AND available_at <= {now}"),
            _take(dialect, f"{whose} AND available_at > {now} + {_IMPOSSIBLE}"),
        )


def _take(dialect: Dialect, which: str) -> str:
    found = (
        f"SELECT memory_id FROM {QUEUE.name} WHERE {which} ORDER BY available_at LIMIT 1{dialect.skip_locked}"
    )
    return (
        f"UPDATE {QUEUE.name} SET lease = ?1, available_at = {dialect.now} + ?2"
        f" WHERE memory_id = ({found}) RETURNING memory_id"
    )


def _make_runs(dialect: Dialect) -> str:
    """Adds the runs of a JSON list to a memory, numbered in their order after those that it has."""
    run = {name: dialect.field.format("value", name) for name in ("run_id", "first", "last")}
    return (
        f"INSERT INTO {RUNS.name} (run_id, tenant, memory_id, conversation_id, first_index, last_index,"
        f" created_at, status, is_open, attempts, sequence) SELECT {run['run_id']}, CAST(?2 AS VARCHAR),"
        f" CAST(?3 AS VARCHAR), CAST(?4 AS VARCHAR), CAST({run['first']} AS BIGINT),"
        f" CAST({run['last']} AS BIGINT), ?5, 'pending', 1, 0,"
        f" row_number() OVER (ORDER BY CAST({run['first']} AS BIGINT)) + (SELECT coalesce(max(sequence), 0)"
        f" FROM {RUNS.name} WHERE memory_id = ?3) FROM {dialect.each.format('?1')} AS given"
    )


# --- making runs ---


def hold_queue(queries: QueueQueries, tenant: str, memory_id: str) -> Script[None]:
    """Have a memory in the queue, and keep others from it: before anything else of it is changed.

    Workers take the row of the queue first, too. Who took it later could wait for one who waits for them.
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
    """Make a run for each span of messages, in their order; returns their ids. The queue must be held."""
    made = [{"run_id": str(uuid.uuid4()), "first": first, "last": last} for first, last in spans]
    for start in range(0, len(made), _RUNS_AT_ONCE):
        some = json.dumps(made[start : start + _RUNS_AT_ONCE])
        yield Statement(queries.make_runs, (some, tenant, memory_id, conversation_id, now))
    return [str(run["run_id"]) for run in made]


def memory_of_failed(tenant: str, run_id: str) -> Script[str | None]:
    """The memory of a failed run; `None` if there is no such run."""
    rows = yield Statement(_FAILED, (run_id, tenant))
    return str(rows[0][0]) if rows else None


def reopen(queries: QueueQueries, tenant: str, run_id: str, memory_id: str) -> Script[bool]:
    """Let a failed run be tried again, from the stage at which it failed. The queue must be held."""
    is_open = bool((yield Statement(_REOPEN, (run_id, tenant))))
    if not is_open:
        yield Statement(queries.forget_if_done, (memory_id,))
    return is_open


# --- doing them ---


def take(
    queries: QueueQueries, tenant: str | None, lease: str, seconds: float, now: str
) -> Script[Task | None]:
    """Take on the memory that has waited longest, and the oldest of its runs; `None` if nothing is due.

    Without a tenant it may be anybody's.
    """
    due, impossible = queries.take_any if tenant is None else queries.take
    values = (lease, min(seconds, LONGEST), tenant)
    while rows := (yield Statement(due, values)) or (yield Statement(impossible, values)):
        memory_id = rows[0][0]
        while found := (yield Statement(_START_OLDEST, (memory_id, now))):
            *run, agent_id, user_id = found[0]
            if _has_span(row := RunRow(*run)):
                return (yield from _task(row, lease, agent_id, user_id, now))
            yield Statement(_FAIL_CORRUPT, (row.run_id, now, _CORRUPT))
        yield Statement(_FORGET_QUEUED, (memory_id,))
    return None


def _has_span(run: RunRow) -> bool:
    """Whether a run says which messages it is about. One that does not would stop the queue for ever."""
    try:
        return stored_count(run.first_index) <= stored_count(run.last_index)
    except UNREADABLE:
        report_corrupt(RUNS.name, run.run_id)
        return False


def _task(run: RunRow, lease: str, agent_id: str, user_id: str, now: str) -> Script[Task]:
    said = yield Statement(
        conversations.READ_MESSAGES, (run.conversation_id, max(0, run.first_index - _BEFORE), run.last_index)
    )
    messages = conversations.messages_from(said)
    stages: list[Row] = []
    assert run.started_at is not None
    if time_as_text(run.started_at) != now:  # what has just begun has nothing finished
        stages = yield Statement(READ_STAGES, (run.run_id,))
    return Task(
        run,
        lease,
        agent_id,
        user_id,
        tuple(message for message in messages if message.message_index >= run.first_index),
        tuple(message for message in messages if message.message_index < run.first_index),
        tuple(stages_from(run.run_id, stages)),
    )


def extend(queries: QueueQueries, task: Task, seconds: float, alone: bool = False) -> Script[None]:
    """Hold the lease for longer; raises `LeaseLostError` if another has it, and then nothing is written."""
    rows = yield Statement(queries.extend, (task.run.memory_id, task.lease, min(seconds, LONGEST)), alone)
    if not rows:
        raise LeaseLostError(f"run {task.run.run_id} was taken over by another worker")


def keep_stage(task: Task, kept: KeptStage) -> Script[bool]:
    """Keep what a stage came to; `False` if it is kept already, with all that it changes."""
    values = (
        task.run.run_id,
        task.run.tenant,
        kept.stage,
        kept.model,
        kept.finished_at,
        json_to_column(kept.result),
        text_to_column(kept.raw_response),
        kept.prompt_tokens,
        kept.completion_tokens,
    )
    return bool((yield Statement(_KEEP_STAGE, values)))


def still_there(queries: QueueQueries, task: Task, ids: Iterable[str]) -> Script[dict[str, bool]]:
    """Of the ids of entries those that nobody has deleted, nor will until the transaction ends.

    Each comes with whether it is live: not superseded.
    """
    yield Statement(memories.HOLD, (task.run.memory_id, task.run.tenant))
    rows = yield Statement(queries.still_there, (json.dumps(list(ids)),))
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
    """End a run that came to a result, and let the next of its memory be taken. The lease must be held.

    `left_out` says what the run did not read, if anything.
    """
    yield Statement(_CLOSE, (task.run.run_id, now, model, left_out))
    if not (yield Statement(queries.forget_if_done, (task.run.memory_id,))):
        yield from release(queries, task, 0)
    # Last, since who appends has the memory, which who releases may wait for, and then the conversation.
    held = yield Statement(queries.hold_conversation, (task.run.conversation_id, task.run.tenant))
    before = conversations.ConversationRow(*held[0])
    told = json_to_column(merge(before.result, result, before.next_index))
    yield Statement(conversations.SET_RESULT, (task.run.conversation_id, told))


def fail(queries: QueueQueries, task: Task, failure: Failure, now: str) -> Script[None]:
    """Keep a failure with its cause; the run is tried again later, or it has failed."""
    yield from release(queries, task, failure.again_in or 0)
    run, error = task.run, text_to_column(failure.error)
    is_final = failure.again_in is None
    status, finished_at = ("failed", now) if is_final else ("pending", None)
    yield Statement(
        _COUNT_FAILURE, (run.run_id, status, int(not is_final), finished_at, failure.model, error)
    )
    raw = text_to_column(failure.raw_response)
    tokens = (failure.prompt_tokens, failure.completion_tokens)
    yield Statement(_KEEP_FAILURE, (run.run_id, run.tenant, failure.stage, now, error, raw, *tokens))
    if is_final:
        yield Statement(queries.forget_if_done, (run.memory_id,))


def give_back(queries: QueueQueries, task: Task, seconds: float = 0) -> Script[None]:
    """Let another take the run, at once or in so many seconds."""
    yield from release(queries, task, seconds)
    yield Statement(_GIVE_BACK, (task.run.run_id,))


def release(queries: QueueQueries, task: Task, seconds: float) -> Script[None]:
    """Give up the lease; the oldest open run of the memory may be taken in so many seconds."""
    rows = yield Statement(queries.release, (task.run.memory_id, task.lease, min(seconds, LONGEST)))
    if not rows:
        raise LeaseLostError(f"run {task.run.run_id} was taken over by another worker")


# --- rows ---


def stages_from(run_id: str, rows: Sequence[Row]) -> list[KeptStage]:
    """The finished stages of a run that rows hold, without corrupt ones."""
    return readable(STAGES.name, ((run_id, *row) for row in rows), _stage_from, key=(0, 1))


def _stage_from(row: Row) -> KeptStage:
    _, stage, model, finished_at, result, raw, prompt, completion = row
    stored_time(finished_at)
    tokens = (stored_count(prompt), stored_count(completion))
    return KeptStage(stage, model, finished_at, stored_object(result), stored_text(raw), *tokens)
