"""A storage backend for the memory of CrewAI."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo

from ...items.originals import Original, originals_in
from ..blocking import run_blocking
from ..framework import FrameworkSession, FrameworkSessions
from .memories import CREWAI, Wanted, child_scopes, memory_of, normal_scope, record_of, score, vector_of


class MemoryStorage:
    """The memories of one user, exactly. For the options see `FrameworkSessions`; there is no `memory`.

    Each change is one atomic step. A search compares the query with every memory of the user.
    """

    def __init__(
        self,
        url_or_path: str | Path,
        *,
        user_id: str | None = None,
        agent_id: str = "crewai",
        **options: Any,
    ) -> None:
        self._sessions = FrameworkSessions(CREWAI, url_or_path, agent_id=agent_id, user_id=user_id, **options)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Save memories, all or none. Raises an error if their vectors have another length than before."""
        async with self._log() as log:
            last = originals_in(await log.session.get_items(limit=1))
            _check_lengths([*last, *(record_of(each) for each in records)])
            await log.append([record_of(each) for each in records])

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The nearest memories that match the filters, with their scores, the best first."""
        wanted, query = (
            Wanted(scope_prefix, categories, metadata=metadata_filter),
            np.asarray(query_embedding),
        )
        records = [each for each in await self._load() if vector_of(each) is not None]
        if records and len(vector_of(records[0])) != len(query):
            raise EmbeddingDimensionMismatchError(len(vector_of(records[0])), len(query))
        scored = [(each, score(each, query)) for each in records if wanted.has(each)]
        best = sorted((each for each in scored if each[1] >= min_score), key=lambda each: -each[1])
        return [(memory_of(record), value) for record, value in best[:limit]]

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the memories for which all given criteria hold; returns how many."""
        wanted = Wanted(scope_prefix, categories, record_ids, older_than, metadata_filter)
        counts = [0]

        def delete(records: list[Original]) -> list[Original]:
            kept = [each for each in records if not wanted.has(each)]
            counts[0] = len(records) - len(kept)
            return kept

        async with self._log() as log:
            await log.change(delete)
        return counts[0]

    def save(self, records: list[MemoryRecord]) -> None:
        """The same as `asave`."""
        run_blocking(self.asave(records))

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The same as `asearch`."""
        call = self.asearch(query_embedding, scope_prefix, categories, metadata_filter, limit, min_score)
        return run_blocking(call)

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """The same as `adelete`."""
        return run_blocking(self.adelete(scope_prefix, categories, record_ids, older_than, metadata_filter))

    def update(self, record: MemoryRecord) -> None:
        """Replace the memory with the same id, or add it."""
        new = record_of(record)
        self._change(lambda records: [*(each for each in records if each["id"] != record.id), new])

    def touch_records(self, record_ids: list[str]) -> None:
        """Note that memories were used now."""
        at = datetime.now(UTC).replace(tzinfo=None).isoformat()  # CrewAI has times without a zone
        self._change(
            lambda records: [
                {**each, "last_accessed": at} if each["id"] in record_ids else each for each in records
            ]
        )

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The memory with this id; `None` if there is none."""
        return next((memory_of(each) for each in self._found(None) if each["id"] == record_id), None)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """A page of the memories in a scope, the newest first."""
        found = sorted(self._found(scope_prefix), key=lambda each: str(each["created_at"]))[::-1]
        return [memory_of(each) for each in found[offset : offset + limit]] if min(limit, offset) >= 0 else []

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """How many memories are in a scope, their categories and times, and the scopes right below it."""
        found = self._found(scope)
        times = [memory_of(each).created_at for each in found]
        return ScopeInfo(
            path=scope.rstrip("/") or "/",
            record_count=len(found),
            categories=sorted({name for each in found for name in each["categories"]}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=child_scopes(found, scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes right below a scope."""
        return child_scopes(self._found(parent), normal_scope(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """How many memories in a scope have each category."""
        return dict(Counter(name for each in self._found(scope_prefix) for name in each["categories"]))

    def count(self, scope_prefix: str | None = None) -> int:
        """How many memories are in a scope."""
        return len(self._found(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete all memories in a scope."""
        self.delete(scope_prefix)

    def close(self) -> None:
        """Release the database. May be called more than once."""
        self._sessions.close()

    def _log(self) -> FrameworkSession:
        return self._sessions.open("memory")

    async def _load(self) -> list[Original]:
        async with self._log() as log:
            return await log.load()

    def _found(self, scope: str | None) -> list[Original]:
        wanted = Wanted(scope)
        return [each for each in run_blocking(self._load()) if wanted.has(each)]

    def _change(self, change: Any) -> None:
        async def act() -> None:
            async with self._log() as log:
                await log.change(change)

        run_blocking(act())


def _check_lengths(records: Sequence[Original]) -> None:
    lengths = [len(vector) for each in records if (vector := vector_of(each)) is not None]
    for length in lengths:
        if length != lengths[0]:
            raise EmbeddingDimensionMismatchError(lengths[0], length)
