"""Runs: how far the learning has come, and what went wrong."""

import asyncio
from functools import partial
from typing import cast

from ...errors import ConflictError
from ...sessions.settings import check_limit
from ...sessions.sql.columns import check_id, text_from_column, time_from_column
from ...sessions.sql.scripts import Row
from ..database import runs
from ..database.runs import KeptStage, RunRow
from ..run import Coverage, Run, RunFailure, RunStage, RunStatus
from .part import Part

_STATUSES = ("pending", "running", "done", "failed")
_SHORTEST_LOOK = 0.005  # seconds between two looks at whether all is done
_LONGEST_LOOK = 0.1


class Working(Part):
    """The runs of a tenant."""

    async def get_run(self, run_id: str) -> Run | None:
        """A run with its finished stages and its failures; `None` if there is none."""
        key = (check_id("run_id", run_id), self._tenant)
        found = await self._database.fetch(runs.READ, key, runs.runs_from)
        return await self._whole(found[0]) if found else None

    async def list_runs(
        self, *, status: RunStatus | None = None, after: str | None = None, limit: int = 50
    ) -> list[Run]:
        """A page of runs, in the order of their ids; `after` is the last id on the page before."""
        if status is not None and status not in _STATUSES:
            raise ValueError(f"status must be one of {', '.join(_STATUSES)}")
        page = (self._tenant, status, after or "", check_limit(limit))
        found = await self._database.fetch(runs.LIST, page, runs.runs_from)
        return [await self._whole(row) for row in found]

    async def list_runs_of(self, conversation_id: str) -> list[Run]:
        """The runs over a conversation, in their order."""
        key = (check_id("conversation_id", conversation_id), self._tenant)
        found = await self._database.fetch(runs.OF_CONVERSATION, key, runs.runs_from)
        return [await self._whole(row) for row in found]

    async def retry_run(self, run_id: str) -> None:
        """Have a failed run tried again, from the stage at which it failed."""
        check_id("run_id", run_id)
        if not await self._database.write(partial(runs.reopen, self._database.queue, self._tenant, run_id)):
            raise ConflictError("there is no failed run with this run_id")
        self._on_work()

    async def coverage(self) -> Coverage:
        """How many conversations are remembered, pending and failed."""
        return await self._database.fetch(runs.COVERAGE, (self._tenant,), _coverage_from)

    async def drain(self, timeout: float | None = None) -> Coverage:
        """Wait until nothing is pending; a `TimeoutError` if that takes longer than `timeout` seconds."""
        self._on_work()
        async with asyncio.timeout(timeout):
            wait = _SHORTEST_LOOK
            while await self._database.fetch(runs.ANY_OPEN, (self._tenant,), bool):
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, _LONGEST_LOOK)
        return await self.coverage()

    async def _whole(self, row: RunRow) -> Run:
        stages = await self._database.fetch(runs.READ_STAGES, (row.run_id,), _stages_from)
        failures = await self._database.fetch(runs.READ_FAILURES, (row.run_id,), _failures_from)
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
    kept = sorted(runs.stages_from(rows), key=lambda stage: stage.finished_at)
    return tuple(_told(stage) for stage in kept)


def _told(kept: KeptStage) -> RunStage:
    finished = time_from_column(kept.finished_at)
    return RunStage(kept.stage, kept.model, finished, kept.prompt_tokens, kept.completion_tokens)


def _failures_from(rows: list[Row]) -> tuple[RunFailure, ...]:
    return tuple(
        RunFailure(
            attempt, stage, time_from_column(at), text_from_column(error), text_from_column(raw), *tokens
        )
        for attempt, stage, at, error, raw, *tokens in rows
    )


def _coverage_from(rows: list[Row]) -> Coverage:
    return Coverage(**dict(rows))
