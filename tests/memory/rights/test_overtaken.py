"""What others do while something waits to be erased, or is being erased."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime

import psycopg
import pytest

from recollect.errors import ConflictError
from recollect.memory.rights.erasure import ErasureRequest
from recollect.sql.columns import time_to_column
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by
from ...sessions.postgres.test_faults import waiting_for_a_lock
from .kit import AGENT, Somewhere, Store, said

LATER = datetime(2999, 1, 1, tzinfo=UTC)


@contextmanager
def held_by(url: str, change: str) -> Iterator[psycopg.Connection]:
    """Another who has changed something, and not yet said whether it is to be."""
    with psycopg.connect(url) as other:
        other.execute(change.encode())
        yield other


@asynccontextmanager
async def talked_at(url: str) -> AsyncIterator[Store]:
    async with Somewhere(by("asyncpg", url), create_tables=True).open() as store:
        await store.open_conversation(AGENT, "ann", conversation_id="c1")
        await store.append_messages("c1", said("still here"), learn_after=600)
        yield store


@in_event_loop
async def test_a_conversation_that_has_gone_on_since_it_was_found_stays(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await store.record_conversation(AGENT, "ann", said("home: lives in Ghent"), conversation_id="c1")
        await store.append_messages("c1", said("pet: has a cat", prefix="n"))
        outline = await store.get_conversation_outline("c1")
        assert outline is not None
        edge = time_to_column(datetime.fromisoformat(outline["updated_at"]))
        found = ErasureRequest("default", "c1", unless_since=edge)
        rights = store._parts.rights
        assert (await rights._write(await rights._erasure_of(found))).counts == {}
        assert len(await store.list_messages("c1") or ()) == 2
        assert await store.erase_conversations_before(LATER) == 1


@in_event_loop
async def test_a_conversation_that_goes_on_while_its_erasure_waits_stays(cleared_postgres: str) -> None:
    added = f"UPDATE conversations SET updated_at = '{time_to_column(LATER)}', pipeline_result = '{{}}'"
    async with talked_at(cleared_postgres) as store:
        with held_by(cleared_postgres, added) as other:
            erasing = asyncio.create_task(store.erase_conversations_before(LATER))
            await waiting_for_a_lock(cleared_postgres)
            other.commit()
        assert await erasing == 0
        kept = await store.get_conversation("c1")
    assert kept is not None
    assert kept.pipeline_result == {}


@in_event_loop
async def test_who_adds_to_a_conversation_that_is_being_erased_hears_that_it_is_gone(
    cleared_postgres: str,
) -> None:
    async with talked_at(cleared_postgres) as store:
        with held_by(cleared_postgres, "DELETE FROM memories") as other:
            adding = asyncio.create_task(store.append_messages("c1", said("too late", prefix="n")))
            await waiting_for_a_lock(cleared_postgres)
            other.commit()
        with pytest.raises(ConflictError, match="there is no conversation"):
            await adding
