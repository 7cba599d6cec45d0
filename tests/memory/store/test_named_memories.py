"""A conversation may name the id of the memory that is created for its agent and user."""

import asyncio

import pytest

from recollect import ConflictError
from recollect.testing.contract import in_event_loop

from ..databases import Place

SAID = [{"role": "user", "content": "I sail."}]


@in_event_loop
async def test_a_memory_gets_the_id_that_the_first_conversation_names(place: Place) -> None:
    async with place.open() as store:
        first = await store.record_conversation("agent_001", "user_001", SAID, memory_id="mem_uuid_123")
        again = await store.record_conversation("agent_001", "user_001", SAID, memory_id="mem_uuid_123")
        unnamed = await store.record_conversation("agent_001", "user_001", SAID)
        assert {first.memory_id, again.memory_id, unnamed.memory_id} == {"mem_uuid_123"}
        memory = await store.get_memory("agent_001", "user_001")
        assert memory is not None
        assert memory.memory_id == "mem_uuid_123"


@in_event_loop
async def test_another_id_and_the_id_of_others_are_conflicts_that_store_nothing(place: Place) -> None:
    async with place.open() as store:
        await store.record_conversation("agent", "ada", SAID, memory_id="adas")
        for agent, user, memory_id in (
            ("agent", "ada", "another"),
            ("agent", "bob", "adas"),
            ("other", "ada", "adas"),
        ):
            with pytest.raises(ConflictError, match="memory_id is not that of this agent and user"):
                await store.record_conversation(agent, user, SAID, memory_id=memory_id)
        assert [memory.memory_id for memory in await store.list_memories()] == ["adas"]
        assert len(await store.list_conversations()) == 1


@in_event_loop
async def test_of_two_who_name_the_same_new_id_at_once_one_gets_it(shared_place: Place) -> None:
    async with shared_place.open() as store:
        outcomes = await asyncio.gather(
            *(store.record_conversation("agent", f"user {n}", SAID, memory_id="wanted") for n in range(6)),
            return_exceptions=True,
        )
        refused = [each for each in outcomes if isinstance(each, ConflictError)]
        assert len(refused) == 5
        assert [memory.memory_id for memory in await store.list_memories()] == ["wanted"]
