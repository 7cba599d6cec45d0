"""Runs: how far the learning has come, and what went wrong."""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from ...errors import ConflictError
from ...sessions.settings import check_limit
from ...sessions.sql.columns import check_id, text_from_column, time_from_column
from ...sessions.sql.scripts import Row, Script
from ..database import outlines, removal, runs
from ..database.access import MemoryDatabase
from ..database.run_queries import STATUSES, by_run, spent_by_day
from ..database.runs import KeptStage, RunRow
from ..pipeline.results import count_left_out
from ..pipeline.stages import STAGES
from ..run import Coverage, Run, RunFailure, RunStage, RunStatus
from ..spending import Days, Spent, SpentBy, spent_from
from .part import Part, check_after

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
        found = await self._database.fetch(runs.READ, key, runs.runs_from)
        told = await self._whole(found)
        return told[0] if told else None

    async def list_runs(
        self,
        status: RunStatus | None = None,
        conversation_id: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """A page of runs, in the order of their ids; `after` is the last id on the page before."""
        _check_status(status)
        queries, edge = self._database.runs, check_after(after)
        if conversation_id is None:
            page: tuple[Any, ...] = (self._tenant, edge, check_limit(limit))
            found = await self._database.fetch(queries.listed(status), page, runs.runs_from)
        else:
            check_id("conversation_id", conversation_id)
            page = (conversation_id, self._tenant, status, edge, check_limit(limit))
            found = await self._database.fetch(queries.of_conversation, page, runs.runs_from)
        return await self._whole(found)

    async def list_newest_runs(
        self,
        status: RunStatus | None = None,
        conversation_id: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """A page of runs, the newest first; `before` is the `position` of the last on the page before."""
        _check_status(status)
        edge, most = outlines.read_position(before), check_limit(limit)
        whose = () if conversation_id is None else (check_id("conversation_id", conversation_id),)
        sql = self._database.runs.newest(status, of_conversation=bool(whose), has_edge=edge is not None)
        page = (self._tenant, *whose, *(edge or ()), most)
        return await self._whole(await self._database.fetch(sql, page, runs.runs_from))

    async def spent_by_day(self, days: Days, by: SpentBy = "model", limit: int = 10_000) -> list[Spent]:
        """What learning has cost, by day and by model or agent, at most so many of them."""
        page = (self._tenant, *days.bounds, check_limit(limit))
        return await self._database.fetch(spent_by_day(by), page, spent_from)

    async def list_runs_of(self, conversation_id: str) -> list[Run]:
        """The runs over a conversation, in their order."""
        key = (check_id("conversation_id", conversation_id), self._tenant)
        found = await self._database.fetch(runs.OF_CONVERSATION, key, runs.runs_from)
        return await self._whole(found)

    async def retry_run(self, run_id: str) -> None:
        """Have a failed run tried again, from the stage at which it failed."""
        check_id("run_id", run_id)
        if not await self._database.write(partial(_reopen, self._database, self._tenant, run_id)):
            raise ConflictError("there is no failed run with this run_id")
        self._on_work()

    async def coverage(self) -> Coverage:
        """How many conversations are remembered, pending, failed, and remembered in part.

        One that has not been quiet for long enough is pending.
        """
        tenant = self._counted_tenant
        counting = self._database.runs.coverage(tenant)
        return await self._database.fetch(counting, (tenant,), _coverage_from)

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

    async def _whole(self, rows: Sequence[RunRow]) -> list[Run]:
        """Runs with their stages and failures, which are read together."""
        if not rows:
            return []
        ids = (json.dumps([row.run_id for row in rows]),)
        stages = await self._database.fetch(self._database.runs.stages, ids, by_run)
        failures = await self._database.fetch(self._database.runs.failures, ids, by_run)
        return [
            _run(row, _stages_from(stages.get(row.run_id, [])), _failures_from(failures.get(row.run_id, [])))
            for row in rows
        ]


# --- transactions ---


def _reopen(database: MemoryDatabase, tenant: str, run_id: str) -> Script[bool]:
    """Let a failed run be tried again; the queue comes first, as for everybody."""
    memory_id = yield from runs.memory_of_failed(tenant, run_id)
    if memory_id is None or not (
        yield from removal.hold_queue(database.removal, database.queue.enqueue, tenant, memory_id)
    ):
        return False
    return (yield from runs.reopen(database.queue, tenant, run_id, memory_id))


# --- what callers give, and rows ---


def _check_status(status: object) -> None:
    if status is not None and status not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(STATUSES)}")


def _run(row: RunRow, stages: tuple[RunStage, ...], failures: tuple[RunFailure, ...]) -> Run:
    return Run(
        row.run_id,
        row.memory_id,
        row.conversation_id,
        row.first_index,
        row.last_index,
        cast(RunStatus, row.status),
        row.attempts,
        time_from_column(row.created_at),
        row.started_at and time_from_column(row.started_at),  # type: ignore[arg-type]
        row.finished_at and time_from_column(row.finished_at),  # type: ignore[arg-type]
        None if row.error is None else text_from_column(row.error),
        row.model,
        stages,
        failures,
    )


def _stages_from(rows: list[Row]) -> tuple[RunStage, ...]:
    kept = sorted(runs.stages_from(rows), key=lambda stage: _ORDER.get(stage.stage, len(STAGES)))
    return tuple(_told(stage) for stage in kept)


def _told(kept: KeptStage) -> RunStage:
    finished = time_from_column(kept.finished_at)
    tokens = (kept.prompt_tokens, kept.completion_tokens)
    return RunStage(kept.stage, kept.model, finished, *tokens, count_left_out(kept))


def _failures_from(rows: list[Row]) -> tuple[RunFailure, ...]:
    return tuple(
        RunFailure(
            attempt, stage, time_from_column(at), text_from_column(error), text_from_column(raw), *tokens
        )
        for attempt, stage, at, error, raw, *tokens in rows
    )


def _coverage_from(rows: list[Row]) -> Coverage:
    return Coverage(**dict(rows))
