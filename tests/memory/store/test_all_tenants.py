"""One store for all tenants: each view sees its own data, and the workers do the work of all tenants."""

import pytest

from recollect.errors import ConflictError
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.run import Coverage
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ..databases import Place
from ..pipeline.extractors import ScriptedExtractor
from ..vectors.kit import MODEL, embedder, vectors_of

TENANTS = ("default", "a", "b")


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


async def record_in_each(store: MemoryStore) -> None:
    for tenant in TENANTS:
        await store.for_tenant(tenant).record_conversation("agent", "user", said(f"I am of {tenant}"))


@in_event_loop
async def test_each_tenant_sees_its_own(place: Place) -> None:
    async with place.open(all_tenants=True) as store:
        await record_in_each(store)
        for tenant in TENANTS:
            view = store.for_tenant(tenant)
            (told,) = await view.list_conversations()
            assert told["summary"] == f"Conversation with 1 turns: I am of {tenant}..."
            assert await view.coverage() == Coverage(pending=1)
            found = await view.search_conversations("am", "agent", "user")
            assert [hit.message.content for hit in found.hits] == [f"I am of {tenant}"]
        assert await store.coverage() == Coverage(pending=3)
        assert len(await store.list_conversations()) == 1, "beside that, it sees its own tenant's"


@in_event_loop
async def test_the_workers_learn_and_embed_for_all(place: Place) -> None:
    options = {"workers": 2, "extractor": ScriptedExtractor(), "embedder": embedder()}
    async with place.open(all_tenants=True, **options) as store:
        await record_in_each(store)
        assert await store.drain(20) == Coverage(remembered=3)
        for tenant in TENANTS:
            memory = await store.for_tenant(tenant).get_memory("agent", "user")
            assert memory is not None
            assert memory.event_content == [f"I am of {tenant}"]
            vectors = vectors_of(store, tenant)
            assert await vectors.count_pending(MODEL) == 0
            assert await vectors.chosen() == MODEL


@in_event_loop
async def test_a_tenant_that_has_chosen_another_embedder_keeps_no_other_from_theirs(place: Place) -> None:
    async with place.open(all_tenants=True, embedder=embedder()) as store:
        await record_in_each(store)
        assert await store.embed_pending() == 3
        await vectors_of(store, "a").choose("another/8")
        await record_in_each(store)
        assert await store.embed_pending() == 2
        assert await vectors_of(store).tenants_pending(MODEL) == ["a"]


@in_event_loop
async def test_of_all_tenants_the_one_that_has_waited_longest_comes_first(shared_place: Place) -> None:
    async with shared_place.open(all_tenants=True) as store:
        await record_in_each(store)
        runner = Runner(store._database, ScriptedExtractor(), RunOptions(), None)
        taken = []
        while task := await runner.claim("lease"):
            taken.append(task.run.tenant)
        assert taken == list(TENANTS)


@in_event_loop
async def test_a_view_closes_nothing_and_starts_what_its_store_has(file_place: Place) -> None:
    async with file_place.open(all_tenants=True, workers=1, extractor=ScriptedExtractor()) as store:
        async with store.for_tenant("a") as view:
            await view.record_conversation("agent", "user", said("I sail"))
            view.start()
            assert await view.drain(20) == Coverage(remembered=1)
        await view.aclose()
        assert await view.coverage() == Coverage(remembered=1)
        assert view._shared is store._shared
        assert await view.for_tenant("b").coverage() == Coverage()


@in_event_loop
async def test_a_store_of_one_tenant_has_no_view_of_another(file_place: Place) -> None:
    async with file_place.open() as store:
        with pytest.raises(ValueError, match="all_tenants=True"):
            store.for_tenant("a")
    async with file_place.open(all_tenants=True) as store:
        with pytest.raises(ValueError, match="tenant must not be empty"):
            store.for_tenant("")


@in_event_loop
async def test_the_memory_of_another_tenant_is_refused_in_the_words_for_any_other(
    shared_place: Place,
) -> None:
    async with shared_place.open(all_tenants=True) as store:
        ours, theirs = store.for_tenant("a"), store.for_tenant("b")
        there = await ours.record_conversation("agent", "user", said("I sail"))
        for memory_id in (there.memory_id, "another"):
            with pytest.raises(ConflictError, match=r"^memory_id is not that of this agent and user$"):
                await theirs.record_conversation("agent", "user", said("I row"), memory_id=memory_id)
            assert len(await theirs.list_memories()) == (memory_id == "another")
            await theirs.add_entry("agent", "user", "profile", "The user rows.")  # which makes a memory
        again = await ours.record_conversation("agent", "user", said("I row"), memory_id=there.memory_id)
        assert again.memory_id == there.memory_id
