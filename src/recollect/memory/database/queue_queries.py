"""The statements about the queue of memories and about runs that are claimed and stored, in one dialect."""

from collections.abc import Sequence
from typing import NamedTuple

from ...sql.columns import StoredTime
from ...sql.scripts import renumber
from . import conversations
from .dialect import Dialect, typed_parameters
from .schema import CONTENTS, MEMORIES, MESSAGES, QUEUE, REJECTED_ENTRIES, RUNS, STAGES

_STAGES_AT_ONCE = (1, 2, 3)
CONTEXT = 6
"""The messages before those of a run, which these may refer to."""
LONGEST = 3600.0
"""The longest lease or delay, in seconds."""
_IMPOSSIBLE = LONGEST + 60  # seconds from now: no right clock has set a later time
COLUMNS = (
    "run_id, tenant, memory_id, conversation_id, first_index, last_index, status, attempts, created_at,"
    " started_at, finished_at, error, model, kind"
)
MIND = "mind"
"""The kind of a run that infers from entries. One that learns from messages has none."""
STAGE_COLUMNS = "stage, model, finished_at, result, raw_response, prompt_tokens, completion_tokens"
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
START_OLDEST = (
    # The last condition is checked again if another worker has just finished the run.
    f"{_START.format('?2')} WHERE run_id = {_OLDEST.format('?1')} AND is_open = 1 RETURNING {_STARTED}"
)
STAGE_ROW = (
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
CLOSE = (
    f"UPDATE {RUNS.name} SET status = 'done', is_open = 0, finished_at = ?2, model = ?3, error = ?4"
    " WHERE run_id = ?1"
)


class LastStagesKey(NamedTuple):
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
        queue, now, ids = QUEUE.name, dialect.now, dialect.each.format("?1")
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
            f" WHERE content_id {dialect.among.format(f'SELECT value FROM {ids} AS wanted')}"
        )
        self.make_runs = make_runs(dialect, "?1", "?2", "?3", "?4", "?5")
        self.make_mind_run = _make_mind_run(dialect)
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
    first = f"greatest(0, started.first_index - {CONTEXT})"
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
    rows = (
        f"SELECT {typed_parameters(dialect, STAGES, STAGE_ROW, start)}{held}"
        for start in range(first, first + count * len(STAGE_ROW), len(STAGE_ROW))
    )
    return (
        f"INSERT INTO {STAGES.name} ({', '.join(STAGE_ROW)}) SELECT * FROM ({' UNION ALL '.join(rows)})"
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
    added = _add_stages(dialect, count, len(LastStagesKey._fields) + 1, " FROM held")
    is_added, versions = "EXISTS (SELECT 1 FROM added)", "CAST(?4 AS BIGINT)"
    advanced = (
        f"UPDATE {MEMORIES.name} SET version = version + {versions},"
        f" entries_stamp = entries_stamp + {versions}, next_position = next_position + CAST(?5 AS BIGINT),"
        f" updated_at = CASE WHEN {versions} > 0 THEN {dialect.time.format('?7')} ELSE updated_at END"
        f" WHERE memory_id = ?1 AND {versions} IS NOT NULL AND {is_added} RETURNING next_position"
    )
    closed = f"{renumber(CLOSE, 5)} AND {is_added}"
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


def _make_mind_run(dialect: Dialect) -> str:
    """Adds a run that infers, after a run that learned, over the same messages.

    It needs so many entries that were learned since the last one. One that waits already will see them too.
    """
    own = f"FROM {RUNS.name} WHERE memory_id = learned.memory_id"
    last = f"(SELECT coalesce(max(sequence), 0) {own} AND kind = '{MIND}')"
    new = (
        f"SELECT count(*) FROM {CONTENTS.name} AS entry JOIN {RUNS.name} AS source"
        " ON source.run_id = entry.run_id WHERE entry.memory_id = learned.memory_id"
        f" AND entry.content_type <> 'mind' AND source.sequence > {last}"
    )
    return (
        f"INSERT INTO {RUNS.name} (run_id, tenant, memory_id, conversation_id, first_index, last_index,"
        " created_at, status, is_open, attempts, sequence, kind) SELECT CAST(?2 AS VARCHAR), tenant,"
        f" memory_id, conversation_id, first_index, last_index, {dialect.time.format('?3')}, 'pending', 1, 0,"
        f" (SELECT max(sequence) + 1 {own}), '{MIND}' FROM {RUNS.name} AS learned WHERE run_id = ?1"
        f" AND NOT EXISTS (SELECT 1 {own} AND is_open = 1 AND kind = '{MIND}')"
        f" AND ({new}) >= CAST(?4 AS BIGINT)"
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
