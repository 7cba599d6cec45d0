"""Erasing while others record, append, learn and embed: nobody waits for one who waits for them."""

import asyncio
from collections.abc import Awaitable, Callable

from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by, sql
from .kit import AGENT, Somewhere, Store, said
from .people import rows_of

DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
TIMES = 12


async def often(act: Callable[[int], Awaitable[object]]) -> None:
    for turn in range(TIMES):
        await act(turn)


def acts_of(store: Store) -> list[Callable[[int], Awaitable[object]]]:
    """What is done at once: much of it to the same two memories."""

    async def record(turn: int) -> None:
        await store.record_conversation(AGENT, "bob", said(f"home: lives in street {turn}"))

    async def append(turn: int) -> None:
        await store.append_messages("c1", said(f"pet: has tortoise {turn}", prefix=f"{turn} "))

    async def append_quietly(turn: int) -> None:
        await store.append_messages(
            "c1", said(f"pet: has cat {turn}", prefix=f"quiet {turn} "), learn_after=0
        )

    async def close(turn: int) -> None:
        await store.open_conversation(AGENT, "ann", conversation_id=f"quiet {turn}")
        await store.append_messages(f"quiet {turn}", said("home: has a boat"), learn_after=0)
        await store.close_conversation(f"quiet {turn}")

    async def erase_message(turn: int) -> None:
        await store.erase_message("c1", f"{max(0, turn - 2)} 0")

    async def erase_conversation(turn: int) -> None:
        await store.record_conversation(AGENT, "ann", said(f"job: mends {turn} clocks"), conversation_id="c2")
        await store.erase_conversation("c2")

    async def delete_memory(_: int) -> None:
        memory = await store.get_memory(AGENT, "ann")
        assert memory is not None
        await store.delete_memory(memory.memory_id)

    async def erase_user(_: int) -> None:
        await store.erase_user("bob")

    async def embed(_: int) -> None:
        await store.embed_pending()

    talking = [record, record, append, append_quietly, close]
    return [*talking, erase_message, erase_conversation, delete_memory, erase_user, embed]


@in_event_loop
async def test_whoever_erases_never_waits_in_a_circle_with_others(cleared_postgres: str) -> None:
    before = sql(cleared_postgres, DEADLOCKS)
    somewhere = Somewhere(by("asyncpg", cleared_postgres), create_tables=True)
    async with somewhere.open(workers=3, embeds=True) as store:
        await store.record_conversation(AGENT, "ann", said("home: lives in Ghent"), conversation_id="c1")
        await asyncio.gather(*(often(act) for act in acts_of(store)))
        await store.drain(timeout=60)
        for user in ("ann", "bob"):
            await store.erase_user(user)
    sql(cleared_postgres, "SELECT pg_stat_force_next_flush()")
    assert sql(cleared_postgres, DEADLOCKS) == before
    left = {name for name, rows in rows_of(somewhere.url).items() if rows}
    assert left <= {"memory_keys", "memory_embedders"}
