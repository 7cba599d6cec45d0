"""The statements that read runs: pages, open runs, coverage and spent tokens."""

from collections.abc import Sequence
from typing import Any

from ...sql.scripts import LongQuery, Row
from ..run import sum_of_tokens
from .dialect import POSTGRESQL, Dialect
from .queue_queries import COLUMNS, STAGE_COLUMNS
from .quiet_period import due_at
from .schema import (
    CONTENTS,
    CONVERSATIONS,
    FAILURES,
    MEMORIES,
    MESSAGES,
    QUEUE,
    RUNS,
    SPENT_TOKENS,
    STAGES,
    WAITING_CONVERSATIONS,
)

STATUSES = ("pending", "running", "done", "failed")

_OF_TENANT = "tenant = ?1"
_OF_ANY_TENANT = "CAST(?1 AS VARCHAR) IS NULL"
_LEARNS = "kind IS NULL"
_FAILURE_COLUMNS = "attempt, stage, failed_at, error, raw_response, prompt_tokens, completion_tokens"


class RunQueries:
    """The statements in one dialect. A tenant of `None` means all tenants."""

    def __init__(self, dialect: Dialect) -> None:
        self._now = dialect.now
        ids = dialect.each.format("?1")
        self.stages = f"SELECT run_id, {STAGE_COLUMNS} FROM {STAGES.name} WHERE run_id IN {ids}"
        self.failures = (
            f"SELECT run_id, {_FAILURE_COLUMNS} FROM {FAILURES.name} WHERE run_id IN {ids} ORDER BY attempt"
        )
        said = (
            f"SELECT content FROM {MESSAGES.name} WHERE conversation_id = run.conversation_id"
            " AND message_index >= run.first_index AND message_index <= run.last_index"
            " ORDER BY CASE WHEN role = 'user' THEN 0 ELSE 1 END, message_index LIMIT 1"
        )
        self.subjects = (
            f"SELECT run.run_id, agent_id, user_id, ({said}),"
            f" (SELECT count(*) FROM {CONTENTS.name} WHERE run_id = run.run_id)"
            f" FROM {RUNS.name} AS run JOIN {MEMORIES.name} AS memory ON memory.memory_id = run.memory_id"
            f" WHERE run.run_id IN {ids}"
        )
        """Whose runs they are, the first message that they read, and how many entries they have added."""
        self.open_in_memory = (
            f"SELECT count(DISTINCT conversation_id) FROM {RUNS.name} WHERE memory_id = ?1 AND is_open = 1"
            f" AND {_LEARNS}"
        )
        self.of_conversation = (
            f"SELECT {COLUMNS} FROM {RUNS.name} WHERE conversation_id = ?1 AND tenant = ?2"
            " AND (CAST(?3 AS VARCHAR) IS NULL OR status = ?3) AND run_id > ?4 ORDER BY run_id LIMIT ?5"
        )

    def listed(self, status: str | None) -> str:
        """A page of a tenant's runs, in the order of their ids. The index is used for any status."""
        some = [
            f"SELECT * FROM (SELECT {COLUMNS} FROM {RUNS.name} WHERE tenant = ?1 AND status = '{each}'"
            f" AND run_id > ?2 ORDER BY run_id LIMIT ?3) AS {each}"
            for each in STATUSES
            if status in (None, each)
        ]
        return f"{' UNION ALL '.join(some)} ORDER BY run_id LIMIT ?3"

    def newest(self, status: str | None, *, of_conversation: bool, has_edge: bool) -> str:
        """A page of a tenant's runs, the newest first. Parameters: tenant, conversation, edge, length."""
        within, next_ = "tenant = ?1", 2
        if of_conversation:
            within += f" AND conversation_id = ?{next_}"
            next_ += 1
        if has_edge:
            within += f" AND (created_at, run_id) < (?{next_}, ?{next_ + 1})"
            next_ += 2
        order = f"ORDER BY created_at DESC, run_id DESC LIMIT ?{next_}"
        some = [
            f"SELECT * FROM (SELECT {COLUMNS} FROM {RUNS.name} WHERE {within} AND status = '{each}'"
            f" {order}) AS {each}"
            for each in STATUSES
            if status in (None, each)
        ]
        return f"{' UNION ALL '.join(some)} {order}"

    def any_open(self, tenant: str | None) -> str:
        """Returns a row if a run is open or due. Every memory with an open run is in the queue."""
        whose = _OF_ANY_TENANT if tenant is None else _OF_TENANT
        runs = f"SELECT 1 FROM {RUNS.name} WHERE {whose} AND status IN ('pending', 'running')"
        if tenant is None:
            runs = f"SELECT 1 FROM {QUEUE.name} WHERE {whose}"
        due = f"SELECT 1 FROM {CONVERSATIONS.name} WHERE {whose} AND {due_at(self._now)}"
        return f"SELECT 1 WHERE EXISTS ({runs}) OR EXISTS ({due})"

    def coverage(self, tenant: str | None) -> LongQuery:
        """The number of conversations by state. Each counts once: as failed if a run failed, else as pending
        if a run is open or due later, else as partial or remembered.

        A run that is done has an error only if it left something out: then the conversation is partial.
        """
        whose = _OF_ANY_TENANT if tenant is None else _OF_TENANT
        return LongQuery(
            "SELECT state, count(*) FROM (SELECT CASE"
            " WHEN max(CASE WHEN status = 'failed' THEN 1 ELSE 0 END) = 1 THEN 'failed'"
            " WHEN max(is_open) = 1 THEN 'pending' WHEN max(error) IS NOT NULL THEN 'partial'"
            " ELSE 'remembered' END AS state FROM"
            f" (SELECT conversation_id, status, is_open, error FROM {RUNS.name} WHERE {whose} AND {_LEARNS}"
            " UNION ALL"
            f" SELECT conversation_id, 'pending', 1, NULL FROM {CONVERSATIONS.name}"
            f" WHERE {whose} AND {WAITING_CONVERSATIONS}) AS run"
            " GROUP BY conversation_id) AS conversations GROUP BY state"
        )

    def coverage_of(self, condition: str) -> LongQuery:
        """The same for the memories that meet a condition."""
        owned = f"memory_id IN (SELECT memory_id FROM {MEMORIES.name} WHERE {condition})"
        return LongQuery(self.coverage(None).replace(_OF_ANY_TENANT, owned))

    def seconds_to_next(self, tenant: str | None) -> str:
        """The seconds until a run is due."""
        whose = _OF_ANY_TENANT if tenant is None else _OF_TENANT
        return (
            f"SELECT min(due) - {self._now} FROM (SELECT min(available_at) AS due FROM {QUEUE.name}"
            f" WHERE {whose} UNION ALL SELECT min(learn_at) FROM {CONVERSATIONS.name}"
            f" WHERE {whose} AND {WAITING_CONVERSATIONS}) AS times"
        )


def conversations_to_learn(dialect: Dialect, memory: str) -> str:
    """A query of the number of conversations of a memory that are still to be learned from."""
    # The + keeps SQLite from the index of the memory: waiting conversations have an index of their own.
    waiting_in = "memory_id" if dialect is POSTGRESQL else "+memory_id"
    return (
        "SELECT count(*) FROM (SELECT conversation_id"
        f" FROM {RUNS.name} WHERE memory_id = {memory} AND is_open = 1 AND {_LEARNS}"
        " UNION SELECT conversation_id"
        f" FROM {CONVERSATIONS.name} WHERE {waiting_in} = {memory} AND {WAITING_CONVERSATIONS}) AS pending"
    )


def spent_by_day(dialect: Dialect, by: str) -> LongQuery:
    """The tokens of a tenant's runs between two times, by day and by model or agent."""
    name, stage_name, failure_name = ("agent_id", "owner.agent_id", "owner.agent_id")
    if by == "model":
        name, stage_name, failure_name = ("model", "part.model", "coalesce(run.model, '')")
    parts = (
        f"SELECT part.{time} AS time, {named} AS {name}, prompt_tokens, completion_tokens"
        f" FROM {table} AS part JOIN {RUNS.name} AS run ON run.run_id = part.run_id"
        f" JOIN {MEMORIES.name} AS owner ON owner.memory_id = run.memory_id"
        f" WHERE part.tenant = ?1 AND {SPENT_TOKENS} AND part.{time} >= ?2 AND part.{time} < ?3"
        for table, time, named in (
            (STAGES.name, "finished_at", stage_name),
            (FAILURES.name, "failed_at", failure_name),
        )
    )
    return LongQuery(
        f"SELECT {dialect.day.format('time')}, {name}, count(*),"
        f" {sum_of_tokens('prompt_tokens')}, {sum_of_tokens('completion_tokens')}"
        f" FROM ({' UNION ALL '.join(parts)}) AS spent GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ?4"
    )


def by_run(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows that begin with the id of a run, grouped by it."""
    found: dict[str, list[Any]] = {}
    for run_id, *rest in rows:
        found.setdefault(run_id, []).append(tuple(rest))
    return found
