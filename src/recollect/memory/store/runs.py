"""Runs and the progress of learning: reading runs, retrying them, their cost, coverage, and waiting."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from time import monotonic
from typing import Any, cast

from ...errors import ConflictError, InvalidValueError
from ...sessions.settings import check_limit
from ...sql.columns import check_id, time_from_column
from ...sql.scripts import Row, Script
from ..database import memories, pages, removal, runs
from ..database.access import MemoryDatabase
from ..database.corruption import (
    Page,
    fill_page,
    or_none,
    page_from,
    readable,
    stored_count,
    stored_text,
    stored_time,
)
from ..database.memories import MemoryRow
from ..database.pages import Edge
from ..database.run_queries import STATUSES, by_run, spent_by_day
from ..database.runs import RunRow, StageRecord
from ..database.schema import FAILURES, RUNS
from ..operations.lists import ListNewestRuns, ListRuns
from ..operations.runs import GetRun, RetryRun
from ..pipeline.embedding_backfill import EmbeddingBackfill
from ..pipeline.results import count_dropped, count_left_out, count_masked
from ..pipeline.stages import STAGES
from ..run import Coverage, Days, Run, RunFailure, RunStage, RunStatus, Spent, SpentBy, spent_from
from .lookup import MemoryLookup, check_after, check_seconds

_ORDER: dict[str, int] = {stage: place for place, stage in enumerate(STAGES)}
# Seconds between two polls. Other processes may do the work, so nothing here is notified of its end.
_SHORTEST_POLL_OF_RUNS = 0.005
_LONGEST_POLL_OF_RUNS = 0.1
_SHORTEST_POLL_OF_MEMORY = 0.02
_LONGEST_POLL_OF_MEMORY = 0.25
_POLL_OF_VECTORS = 0.02
_LONGEST_TITLE = 200  # characters


class RunRepository:
    """The runs of one tenant. `on_work` is called when a run has become due."""

    def __init__(self, database: MemoryDatabase, tenant: str, on_work: Callable[[], None]) -> None:
        self._database = database
        self._tenant = tenant
        self._on_work = on_work

    async def get_run(self, request: GetRun) -> Run | None:
        """A run with its finished stages and its failures; `None` if it does not exist."""
        key = (request.run_id, self._tenant)
        found = await self._with_details(await self._database.fetch(runs.READ, key, _runs_from))
        return found[0] if found else None

    async def list_runs(self, request: ListRuns) -> list[Run]:
        """A page of runs, in the order of their ids."""
        _check_status(request.status)
        queries, edge = self._database.runs, check_after(request.after)
        sql = queries.listed(request.status)
        key: tuple[str | None, ...] = (self._tenant,)
        if request.conversation_id is not None:
            sql = queries.of_conversation
            key = (request.conversation_id, self._tenant, request.status)

        async def fetch(edge: str, limit: int) -> Page[Run, str]:
            decode = partial(page_from, _runs_from, itemgetter(0))
            return await self._database.fetch(sql, (*key, edge, limit), decode)

        return await self._with_details(await fill_page(fetch, edge, request.limit))

    async def list_newest_runs(self, request: ListNewestRuns) -> list[Run]:
        """A page of runs, newest first."""
        status, conversation_id = request.status, request.conversation_id
        _check_status(status)
        edge = pages.parse_position(request.before)
        whose = () if conversation_id is None else (conversation_id,)

        async def fetch(edge: Edge | None, limit: int) -> Page[Run, Edge | None]:
            sql = self._database.runs.newest(status, of_conversation=bool(whose), has_edge=edge is not None)
            page = (self._tenant, *whose, *(edge or ()), limit)
            return await self._database.fetch(sql, page, partial(page_from, _runs_from, _newest_edge))

        return await self._with_details(await fill_page(fetch, edge, request.limit))

    async def spent_by_day(self, days: Days, by: SpentBy = "model", limit: int = 10_000) -> list[Spent]:
        """The tokens that learning has cost, by day and by model or agent, `limit` rows at most."""
        page = (self._tenant, *days.bounds, check_limit(limit))
        return await self._database.fetch(spent_by_day(self._database.dialect, by), page, spent_from)

    async def list_runs_of(self, conversation_id: str) -> list[Run]:
        """The runs of a conversation, in their order."""
        key = (check_id("conversation_id", conversation_id), self._tenant)
        return await self._with_details(await self._database.fetch(runs.OF_CONVERSATION, key, _runs_from))

    async def retry_run(self, request: RetryRun) -> None:
        """Retry a failed run. Any other run is a `ConflictError`."""
        if not await self._database.write(partial(_reopen, self._database, self._tenant, request.run_id)):
            raise ConflictError("there is no failed run with this run_id")
        self._on_work()

    async def _with_details(self, found: Sequence[Run]) -> list[Run]:
        """The runs with their stages, failures and subjects, each read in one query for all runs."""
        if not found:
            return []
        ids = (json.dumps([run.run_id for run in found]),)
        stages = await self._database.fetch(self._database.runs.stages, ids, by_run)
        failures = await self._database.fetch(self._database.runs.failures, ids, by_run)
        subjects = await self._database.fetch(self._database.runs.subjects, ids, _subjects_from)
        return [
            replace(
                run,
                **subjects.get(run.run_id, {}),
                stages=_stages_from(run.run_id, stages.get(run.run_id, [])),
                failures=_failures_from(run.run_id, failures.get(run.run_id, [])),
            )
            for run in found
        ]


class LearningProgress:
    """Counts, and waits for, the work of one tenant, or of all tenants if `counted_tenant` is `None`.

    `on_work` wakes the workers. `waits_for_vectors` says whether workers of this process make vectors.
    """

    def __init__(
        self,
        database: MemoryDatabase,
        lookup: MemoryLookup,
        counted_tenant: str | None,
        backfill: EmbeddingBackfill | None,
        on_work: Callable[[], None],
        *,
        waits_for_vectors: bool,
    ) -> None:
        self._database = database
        self._lookup = lookup
        self._tenant = lookup.tenant
        self._counted_tenant = counted_tenant
        self._backfill = backfill
        self._on_work = on_work
        self._waits_for_vectors = waits_for_vectors

    async def coverage(self, agent_id: str | None = None, user_id: str | None = None) -> Coverage:
        """The number of conversations that are remembered, pending, failed, and remembered in part.

        Count all of them, or those of one user, of one agent, or of one agent and user. A conversation that
        has not been quiet for long enough is pending.
        """
        if user_id is not None or agent_id is not None:
            return await self._coverage_of(agent_id, user_id)
        tenant = self._counted_tenant
        return await self._database.fetch(self._database.runs.coverage(tenant), (tenant,), _coverage_from)

    async def _coverage_of(self, agent_id: str | None, user_id: str | None) -> Coverage:
        agent = None if agent_id is None else check_id("agent_id", agent_id)
        user = None if user_id is None else check_id("user_id", user_id)
        condition = "agent_id = ?1 AND tenant = ?2"
        key: tuple[object, ...] = (agent, self._tenant)
        if user is not None and agent is None:
            condition, key = "user_key = ?1", (memories.user_key(self._tenant, user),)
        elif user is not None and agent is not None:
            condition, key = "owner_key = ?1", (memories.owner_key(self._tenant, agent, user),)
        return await self._database.fetch(self._database.runs.coverage_of(condition), key, _coverage_from)

    async def drain(self, timeout: float | None = None) -> Coverage:
        """Wait until nothing is pending, neither runs nor vectors, and return the coverage.

        Vectors are not waited for while the embedder fails. Conversations that must be quiet first are not
        waited for. A `TimeoutError` if it takes longer than `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            coverage = await self._drain_runs()
            while await self._has_to_embed():  # noqa: ASYNC110 - other processes may make the vectors
                await asyncio.sleep(_POLL_OF_VECTORS)
        return coverage

    async def _drain_runs(self) -> Coverage:
        self._on_work()
        tenant = self._counted_tenant
        any_open = self._database.runs.any_open(tenant)
        wait = _SHORTEST_POLL_OF_RUNS
        while await self._database.fetch(any_open, (tenant,), bool):
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST_POLL_OF_RUNS)
        return await self.coverage()

    async def wait_until_learned(self, agent_id: str | None, user_id: str, *, timeout: float = 30.0) -> bool:
        """Wait until all recorded messages of an agent and a user are learned from and have vectors.

        Without an `agent_id`, it waits for all agents of the user. The result is `False` if it takes longer
        than `timeout` seconds. Failed runs, and conversations that must be quiet first, are not waited for.
        """
        waited = await self._lookup.find_all(agent_id, user_id)
        ends = monotonic() + check_seconds("timeout", timeout)
        wait = _SHORTEST_POLL_OF_MEMORY
        while await self._is_pending_in(waited):
            self._on_work()
            if monotonic() >= ends:
                return False
            await asyncio.sleep(min(wait, max(ends - monotonic(), 0)))
            wait = min(wait * 1.5, _LONGEST_POLL_OF_MEMORY)
        return True

    async def embed_pending(self) -> int:
        """Embed all texts that have no vector, here and now; returns the number of vectors made.

        Workers do this on their own.
        """
        count = 0
        while self._backfill is not None and (some := await self._backfill.step()):
            count += some
        return count

    async def _is_pending_in(self, waited: Sequence[MemoryRow]) -> bool:
        open_now = self._database.runs.open_in_memory
        for memory in waited:
            key = (memory.memory_id,)
            if await self._database.fetch(open_now, key, lambda rows: bool(rows[0][0])):
                return True
            if self._backfill is not None and await self._backfill.is_pending_in(memory.memory_id):
                return True
        return False

    async def _has_to_embed(self) -> bool:
        """Whether workers of this process still have vectors to make. A failing embedder has none to make."""
        backfill = self._backfill
        if not self._waits_for_vectors or backfill is None or backfill.last_error is not None:
            return False
        return await backfill.is_pending(self._counted_tenant)


# --- transactions ---


def _reopen(database: MemoryDatabase, tenant: str, run_id: str) -> Script[bool]:
    """Make a failed run due again. Lock order: the queue row first, as in every transaction."""
    memory_id = yield from runs.memory_of_failed(tenant, run_id)
    if memory_id is None or not (
        yield from removal.lock_queue(database.removal, database.queue.enqueue, tenant, memory_id)
    ):
        return False
    return (yield from runs.reopen(database.queue, tenant, run_id, memory_id))


# --- arguments and rows ---


def _check_status(status: object) -> None:
    if status is not None and status not in STATUSES:
        raise InvalidValueError(f"status must be one of {', '.join(STATUSES)}")


def _runs_from(rows: list[Row]) -> list[Run]:
    """The runs of rows, without their stages and failures. Corrupt rows are skipped."""
    return readable(RUNS.name, rows, lambda row: _run(RunRow(*row)))


def _newest_edge(row: Row) -> Edge:
    run = RunRow(*row)
    return Edge(run.created_at, run.run_id)


def _run(row: RunRow) -> Run:
    _check_status(row.status)
    return Run(
        row.run_id,
        row.memory_id,
        row.conversation_id,
        stored_count(row.first_index),
        stored_count(row.last_index),
        cast(RunStatus, row.status),
        stored_count(row.attempts),
        stored_time(row.created_at),
        or_none(stored_time)(row.started_at),
        or_none(stored_time)(row.finished_at),
        or_none(stored_text)(row.error),
        row.model,
        kind="mind" if row.infers else "learning",
    )


def _subjects_from(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """By the ids of runs: whose they are, what they read first, and how many entries they have added."""
    return dict(readable(RUNS.name, rows, _subject_from))


def _subject_from(row: Row) -> tuple[str, dict[str, Any]]:
    run_id, agent_id, user_id, said, learned = row
    title = (or_none(stored_text)(said) or "")[:_LONGEST_TITLE]
    return run_id, {"agent_id": agent_id, "user_id": user_id, "title": title, "learned": learned}


def _stages_from(run_id: str, rows: list[Row]) -> tuple[RunStage, ...]:
    kept = sorted(runs.stages_from(run_id, rows), key=lambda stage: _ORDER.get(stage.stage, len(STAGES)))
    return tuple(map(_stage_from, kept))


def _stage_from(kept: StageRecord) -> RunStage:
    finished = time_from_column(kept.finished_at)
    tokens = (kept.prompt_tokens, kept.completion_tokens)
    left_out, dropped, masked = count_left_out(kept), count_dropped(kept), count_masked(kept)
    return RunStage(kept.stage, kept.model, finished, *tokens, left_out, dropped, masked)


def _failures_from(run_id: str, rows: list[Row]) -> tuple[RunFailure, ...]:
    return tuple(readable(FAILURES.name, ((run_id, *row) for row in rows), _failure_from, key=(0, 1)))


def _failure_from(row: Row) -> RunFailure:
    _, attempt, stage, at, error, raw, *tokens = row
    details = (stored_time(at), stored_text(error), stored_text(raw))
    return RunFailure(attempt, stage, *details, *map(stored_count, tokens))


def _coverage_from(rows: list[Row]) -> Coverage:
    return Coverage(**dict(rows))
