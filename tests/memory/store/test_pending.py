"""Search and coverage report pending conversations, and callers can wait for them."""

import pytest

from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore

from ..databases import Place
from ..rights.kit import AGENT, learn
from ..vectors.kit import embedder

pytestmark = pytest.mark.anyio

HOME = [{"role": "user", "content": "home: Lisbon"}]


async def _record(store: MemoryStore, user: str, agent: str = AGENT) -> str:
    return (await store.record_conversation(agent, user, HOME)).conversation_id


async def test_a_search_says_that_conversations_are_still_to_be_learned_from(shared_place: Place) -> None:
    async with shared_place.open() as store:
        await _record(store, "ada")
        await _record(store, "ada")
        await _record(store, "ben")
        found = await store.search_memories("home", AGENT, "ada")
        assert not found.hits
        (warning,) = found.warnings
        assert warning.startswith("2 of the user's conversations are still to be learned from")
        assert (await store.recall("home", AGENT, "ada")).warnings == (warning,)
        await learn(store)
        found = await store.search_memories("Lisbon", AGENT, "ada")
        assert [hit.entry.text for hit in found.hits] == ["Lisbon"]
        assert found.warnings == ()


async def test_a_conversation_that_must_be_quiet_first_is_pending_too(shared_place: Place) -> None:
    async with shared_place.open() as store:
        conversation_id = await _record(store, "ada")
        await learn(store)
        await store.append_messages(conversation_id, HOME, learn_after=3600)
        found = await store.search_memories("home", AGENT, "ada")
        assert found.warnings[0].startswith("1 of the user's conversations")
        assert await store.wait_until_learned(AGENT, "ada", timeout=0)


async def test_a_search_says_that_vectors_are_pending(shared_place: Place) -> None:
    async with shared_place.open(embedder=embedder()) as store:
        await _record(store, "ada")
        await learn(store)
        await store.add_entry(AGENT, "ada", "profile", "plays chess")
        assert not await store.wait_until_learned(AGENT, "ada", timeout=0)
        for search in (store.search_memories, store.search_conversations):
            assert "no vector yet" in (await search("home", AGENT, "ada")).warnings[0]
        await store.embed_pending()
        assert await store.wait_until_learned(AGENT, "ada", timeout=0)
        assert (await store.search_memories("home", AGENT, "ada")).warnings == ()


async def test_waiting_ends_with_the_learning_or_with_its_time(shared_place: Place) -> None:
    async with shared_place.open(workers=1, embedder=embedder()) as store:
        await _record(store, "ada")
        assert await store.wait_until_learned(AGENT, "ada", timeout=60)
        assert (await store.search_memories("home", AGENT, "ada")).warnings == ()
        assert await store.wait_until_learned(AGENT, "nobody", timeout=0)
    async with shared_place.open() as store:
        await _record(store, "ada")
        assert not await store.wait_until_learned(AGENT, "ada", timeout=0.01)
        for wrong in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="timeout must be 0 or more seconds"):
                await store.wait_until_learned(AGENT, "ada", timeout=wrong)


async def test_coverage_is_told_of_one_user(shared_place: Place) -> None:
    async with shared_place.open() as store:
        await _record(store, "ada")
        await learn(store)
        await _record(store, "ada", "other agent")
        await _record(store, "ben")
        assert await store.coverage() == Coverage(1, 2, 0)
        assert await store.coverage(user_id="ada") == Coverage(1, 1, 0)
        assert await store.coverage(AGENT, "ada") == Coverage(1, 0, 0)
        assert await store.coverage(AGENT, "nobody") == Coverage()
        assert await store.coverage(AGENT) == Coverage(1, 1, 0), "of all users of an agent"
        assert await store.coverage("nobody's agent") == Coverage()
