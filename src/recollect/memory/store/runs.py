"""Runs: how far the learning has come, and what went wrong."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import cast

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
from ..database.pages import Edge
from ..database.run_queries import STATUSES, by_run, spent_by_day
from ..database.runs import RunRow, StageRecord
from ..database.schema import FAILURES, RUNS
from ..pipeline.results import count_left_out
from ..pipeline.stages import STAGES
from ..run import Coverage, Days, Run, RunFailure, RunStage, RunStatus, Spent, SpentBy, spent_from
from .lookup import Part, check_after

_SHORTEST_LOOK = 0.005  # seconds between two looks at whether all is done
_LONGEST_LOOK = 0.1
_ORDER: dict[str, int] = {stage: place for place, stage in enumerate(STAGES)}


class Working(Part):
    """The runs of a tenant."""

    _counted_tenant: str | None
    """Whose work is counted and waited for; `None` for everybody's."""

    async def get_run(self, run_id: str) -> Run | None:
        """A run with its finished stages and its failures; `None` if there is none."""
        key = (check_id("run_id", run_id), self._tenant)
        found = await self._whole(await self._database.fetch(runs.READ, key, _runs_from))
        return found[0] if found else None

    async def list_runs(
        self,
        status: RunStatus | None = None,
        conversation_id: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """A page of runs, in the order of their ids; `after` is the last id on the page before."""
        _check_status(status)
        queries, edge, most = self._database.runs, check_after(after), check_limit(limit) or 0
        sql = queries.listed(status)
        key: tuple[str | None, ...] = (self._tenant,)
        if conversation_id is not None:
            sql = queries.of_conversation
            key = (check_id("conversation_id", conversation_id), self._tenant, status)

        async def fetch(edge: str, limit: int) -> Page[Run, str]:
            decode = partial(page_from, _runs_from, itemgetter(0))
            return await self._database.fetch(sql, (*key, edge, limit), decode)

        return await self._whole(await fill_page(fetch, edge, most))

    async def list_newest_runs(
        self,
        status: RunStatus | None = None,
        conversation_id: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """A page of runs, the newest first; `before` is the `position` of the last on the page before."""
        _check_status(status)
        edge, most = pages.parse_position(before), check_limit(limit) or 0
        whose = () if conversation_id is None else (check_id("conversation_id", conversation_id),)

        async def fetch(edge: Edge | None, limit: int) -> Page[Run, Edge | None]:
            sql = self._database.runs.newest(status, of_conversation=bool(whose), has_edge=edge is not None)
            page = (self._tenant, *whose, *(edge or ()), limit)
            return await self._database.fetch(sql, page, partial(page_from, _runs_from, _newest_edge))

        return await self._whole(await fill_page(fetch, edge, most))

    async def spent_by_day(self, days: Days, by: SpentBy = "model", limit: int = 10_000) -> list[Spent]:
        """What learning has cost, by day and by model or agent, at most so many of them."""
        page = (self._tenant, *days.bounds, check_limit(limit))
        return await self._database.fetch(spent_by_day(self._database.dialect, by), page, spent_from)

    async def list_runs_of(self, conversation_id: str) -> list[Run]:
        """The runs over a conversation, in their order."""
        key = (check_id("conversation_id", conversation_id), self._tenant)
        return await self._whole(await self._database.fetch(runs.OF_CONVERSATION, key, _runs_from))

    async def retry_run(self, run_id: str) -> None:
        """Have a failed run tried again, from the stage at which it failed."""
        check_id("run_id", run_id)
        if not await self._database.write(partial(_reopen, self._database, self._tenant, run_id)):
            raise ConflictError("there is no failed run with this run_id")
        self._on_work()

    async def coverage(self, agent_id: str | None = None, user_id: str | None = None) -> Coverage:
        """How many conversations are remembered, pending, failed, and remembered in part.

        They are those of all, of one user, of one agent, or of one agent and user.

        One that has not been quiet for long enough is pending.
        """
        if user_id is not None or agent_id is not None:
            return await self._coverage_of(agent_id, user_id)
        tenant = self._counted_tenant
        counting = self._database.runs.coverage(tenant)
        return await self._database.fetch(counting, (tenant,), _coverage_from)

    async def _coverage_of(self, agent_id: str | None, user_id: str | None) -> Coverage:
        agent = None if agent_id is None else check_id("agent_id", agent_id)
        user = None if user_id is None else check_id("user_id", user_id)
        condition = "agent_id = ?1 AND tenant = ?2"
        key: tuple[object, ...] = (agent, self._tenant)
        if user is not None:
            found_by = "user_key" if agent is None else "owner_key"
            name = memories.user_key(self._tenant, user)
            if agent is not None:
                name = memories.owner_key(self._tenant, agent, user)
            condition, key = f"{found_by} = ?1", (name,)
        return await self._database.fetch(self._database.runs.coverage_of(condition), key, _coverage_from)

    async def drain(self, timeout: float | None = None) -> Coverage:
        """Wait until nothing is pending; a `TimeoutError` if that takes longer than `timeout` seconds.

        Conversations that are to be quiet for a while first are not waited for.
        """
        self._on_work()
        tenant = self._counted_tenant
        open_now = self._database.runs.any_open(tenant)
        async with asyncio.timeout(timeout):
            wait = _SHORTEST_LOOK
            while await self._database.fetch(open_now, (tenant,), bool):
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, _LONGEST_LOOK)
        return await self.coverage()

    async def _whole(self, found: Sequence[Run]) -> list[Run]:
        """Runs with their stages and failures, which are read together."""
        if not found:
            return []
        ids = (json.dumps([run.run_id for run in found]),)
        stages = await self._database.fetch(self._database.runs.stages, ids, by_run)
        failures = await self._database.fetch(self._database.runs.failures, ids, by_run)
        return [
            replace(
                run,
                stages=_stages_from(run.run_id, stages.get(run.run_id, [])),
                failures=_failures_from(run.run_id, failures.get(run.run_id, [])),
            )
            for run in found
        ]


# --- transactions ---


def _reopen(database: MemoryDatabase, tenant: str, run_id: str) -> Script[bool]:
    """Let a failed run be tried again; the queue comes first, as for everybody."""
    memory_id = yield from runs.memory_of_failed(tenant, run_id)
    if memory_id is None or not (
        yield from removal.lock_queue(database.removal, database.queue.enqueue, tenant, memory_id)
    ):
        return False
    return (yield from runs.reopen(database.queue, tenant, run_id, memory_id))


# --- what callers give, and rows ---


def _check_status(status: object) -> None:
    if status is not None and status not in STATUSES:
        raise InvalidValueError(f"status must be one of {', '.join(STATUSES)}")


def _runs_from(rows: list[Row]) -> list[Run]:
    """The runs that rows hold, without corrupt ones, and as yet without their stages and failures."""
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
    )


def _stages_from(run_id: str, rows: list[Row]) -> tuple[RunStage, ...]:
    kept = sorted(runs.stages_from(run_id, rows), key=lambda stage: _ORDER.get(stage.stage, len(STAGES)))
    return tuple(_told(stage) for stage in kept)


def _told(kept: StageRecord) -> RunStage:
    finished = time_from_column(kept.finished_at)
    tokens = (kept.prompt_tokens, kept.completion_tokens)
    return RunStage(kept.stage, kept.model, finished, *tokens, count_left_out(kept))


def _failures_from(run_id: str, rows: list[Row]) -> tuple[RunFailure, ...]:
    return tuple(readable(FAILURES.name, ((run_id, *row) for row in rows), _failure_from, key=(0, 1)))


def _failure_from(row: Row) -> RunFailure:
    _, attempt, stage, at, error, raw, *tokens = row
    told = (stored_time(at), stored_text(error), stored_text(raw))
    return RunFailure(attempt, stage, *told, *map(stored_count, tokens))


def _coverage_from(rows: list[Row]) -> Coverage:
    return Coverage(**dict(rows))
