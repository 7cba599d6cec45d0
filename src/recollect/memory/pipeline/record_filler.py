"""Makes the search records of messages that have none, without vectors.

A store without an embedder has no other records. With one, `EmbeddingBackfill` makes them with the vectors,
and this makes those that it leaves: while the embedder does not answer.
"""

import asyncio
from functools import partial

from ..database.access import MemoryDatabase
from ..database.records import RecordQueries, Said, StoredRecord, said_or_empty_from, write_unmade

_AT_ONCE = 64


class RecordFiller:
    """Makes the missing records of a tenant, or of all tenants if it is `None`."""

    def __init__(self, database: MemoryDatabase, tenant: str | None) -> None:
        self._database = database
        self._tenant = tenant
        self._queries = RecordQueries(database.dialect)

    async def step(self) -> int:
        """Make some records; returns how many were stored, 0 if none is missing."""
        key = (self._tenant, _AT_ONCE)
        said = await self._database.fetch(self._queries.to_make, key, said_or_empty_from)
        if not said:
            return 0
        made = await asyncio.to_thread(_records_of, said)
        owners = {each.key: each.memory_id for each in said}
        return await self._database.write(partial(write_unmade, self._queries, made, owners))


def _records_of(said: list[Said]) -> list[StoredRecord]:
    return [each.record for each in said]
