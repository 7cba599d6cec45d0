"""Pages are complete and in order, also during erasures, and each takes a few indexed queries."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from recollect.memory.database import pages
from recollect.memory.store import MemoryStore
from recollect.testing.contract import in_event_loop

from ...sessions.postgres.database import by, sql
from ..databases import Place


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


async def record(store: MemoryStore, number: int, user: str = "user", **more: Any) -> None:
    created = f"2024-01-{number % 28 + 1:02d}T00:00:00Z"
    await store.record_conversation(
        "agent", user, said(f"number {number}"), conversation_id=f"c{number:02d}", created_at=created, **more
    )


@contextmanager
def counted(store: MemoryStore) -> Iterator[list[str]]:
    """The queries that a store makes."""
    queries: list[str] = []
    database = store._database
    fetch = database.fetch

    async def counting(query: str, *rest: Any) -> Any:
        queries.append(query)
        return await fetch(query, *rest)

    database.fetch = counting  # type: ignore[method-assign]
    try:
        yield queries
    finally:
        database.fetch = fetch  # type: ignore[method-assign]


@in_event_loop
async def test_the_conversations_of_a_tenant_are_listed_whoever_had_them(lasting_place: Place) -> None:
    async with lasting_place.open() as store, lasting_place.open(tenant="other") as stranger:
        for number in range(6):
            await record(store, number, user=f"user {number % 2}", session_id=f"s{number % 3}")
        await stranger.record_conversation("agent", "user 0", said("not theirs"), session_id="s0")
        listed = [told["conversation_id"] for told in await store.list_conversations()]
        assert listed == ["c05", "c04", "c03", "c02", "c01", "c00"]
        of_user = await store.list_conversations("agent", "user 1")
        assert [told["conversation_id"] for told in of_user] == ["c05", "c03", "c01"]
        of_session = await store.list_conversations(session_id="s0")
        assert [told["conversation_id"] for told in of_session] == ["c03", "c00"]
        of_both = await store.list_conversations("agent", "user 1", session_id="s0")
        assert [told["conversation_id"] for told in of_both] == ["c03"]
        assert len(await stranger.list_conversations()) == 1


@in_event_loop
async def test_a_page_goes_on_where_the_one_before_ended_though_its_last_was_erased(place: Place) -> None:
    async with place.open() as store:
        for number in range(5):
            await record(store, number)
        first = await store.list_conversations(limit=2)
        await store.erase_conversation(first[-1]["conversation_id"])
        rest = await store.list_conversations(before=first[-1]["position"])
        assert [told["conversation_id"] for told in rest] == ["c02", "c01", "c00"]


@in_event_loop
async def test_messages_are_listed_page_by_page(place: Place) -> None:
    async with place.open() as store:
        await store.record_conversation("agent", "user", said("a", "b", "c", "d"), conversation_id="c")
        await store.erase_message("c", (await messages(store))[1].message_id)
        assert [each.content for each in await messages(store, limit=2)] == ["a", "c"]
        assert [each.content for each in await messages(store, after=2)] == ["d"]
        assert [each.content for each in await messages(store, after=-1, limit=1)] == ["a"]
        assert await messages(store, after=3) == []
        assert await messages(store, after=2**70) == []


async def messages(store: MemoryStore, **page: Any) -> Any:
    found = await store.list_messages("c", **page)
    assert found is not None
    return found


@in_event_loop
async def test_the_entries_of_a_memory_are_listed_page_by_page(lasting_place: Place) -> None:
    async with lasting_place.open() as store, lasting_place.open(tenant="other") as stranger:
        kinds = ("profile", "mind", "profile", "event")
        for number, kind in enumerate(kinds):
            await store.add_entry("agent", "user", kind, f"number {number}")  # type: ignore[arg-type]
        memory = await store.get_memory("agent", "user")
        assert memory is not None
        key = memory.memory_id
        first = await store.list_entries_of(key, limit=2)
        assert first is not None
        assert [entry.text for _, entry in first] == ["number 0", "number 1"]
        rest = await store.list_entries_of(key, after=first[-1][0])
        assert rest is not None
        assert [entry.text for _, entry in rest] == ["number 2", "number 3"]
        profile = await store.list_entries_of(key, content_type="profile", limit=1, after=first[0][0])
        assert profile is not None
        assert [entry.text for _, entry in profile] == ["number 2"]
        edited = await store.edit_entry(first[0][1].content_id, "number 0 and more")
        kept = await store.list_entries_of(key, include_retired=True, limit=1)
        assert kept is not None
        assert kept[0][1].superseded_by == edited.content_id
        before = await store.list_entries_of(key, as_of=memory.updated_at, content_type="profile")
        assert before is not None
        assert [entry.text for _, entry in before] == ["number 0", "number 2"]
        assert await stranger.list_entries_of(key) is None


@in_event_loop
async def test_memories_are_listed_by_whose_they_are(lasting_place: Place) -> None:
    async with lasting_place.open() as store, lasting_place.open(tenant="other") as stranger:
        for agent, user in (("a", "ann"), ("b", "ann"), ("a", "bob")):
            await store.add_entry(agent, user, "mind", "Is calm")
        assert len(await store.list_memories()) == 3
        ann = await store.list_memories(user_id="ann")
        assert {(each.agent_id, each.user_id) for each in ann} == {("a", "ann"), ("b", "ann")}
        (one,) = await store.list_memories("b", "ann")
        assert (one.agent_id, one.version, dict(one.counts)) == (
            "b",
            2,
            {"profile": 0, "event": 0, "mind": 1, "instruction": 0},
        )
        assert one.to_dict()["counts"] == {"profile": 0, "event": 0, "mind": 1, "instruction": 0}
        assert await store.list_memories("b", "ann", after=one.memory_id) == []
        assert await stranger.list_memories() == await stranger.list_memories(user_id="ann") == []


@pytest.mark.parametrize("owner", [("agent", None), (None, "user")])
@in_event_loop
async def test_half_an_owner_is_refused(file_place: Place, owner: tuple[str | None, str | None]) -> None:
    async with file_place.open() as store:
        with pytest.raises(ValueError, match="both, or neither"):
            await store.list_conversations(*owner)
        with pytest.raises(ValueError, match="both, or neither"):
            await store.list_memories("agent")


@in_event_loop
async def test_the_runs_of_a_conversation_are_listed_by_their_status(place: Place) -> None:
    async with place.open() as store:
        for number in range(3):
            await record(store, number)
        await store.append_messages("c01", said("more"))
        found = await store.list_runs(conversation_id="c01")
        assert sorted(run.run_id for run in found) == [run.run_id for run in found]
        assert {run.conversation_id for run in found} == {"c01"}
        assert await store.list_runs("pending", "c01", found[0].run_id) == found[1:]
        assert await store.list_runs("failed", "c01") == []
        assert len(await store.list_runs("pending")) == len(await store.list_runs()) == 4


@in_event_loop
async def test_a_page_takes_the_same_few_queries_however_long_it_is(file_place: Place) -> None:
    async with file_place.open() as store:
        for number in range(12):
            await record(store, number, user=f"user {number}")
        with counted(store) as queries:
            assert len(await store.list_conversations(limit=12)) == 12
            assert len(queries) == 2
            assert len(await store.list_runs(limit=12)) == 12
            assert len(queries) == 6
            assert len(await store.list_memories(limit=12)) == 12
            assert len(queries) == 8


PAGES: list[tuple[str, tuple[Any, ...]]] = [
    pages.page_of("default", is_memory=False, session_id=None),
    pages.page_of("m", is_memory=True, session_id=None),
    pages.page_of("default", is_memory=False, session_id="s"),
    pages.page_of("m", is_memory=True, session_id="s"),
]


@pytest.mark.parametrize("page", PAGES, ids=["tenant", "memory", "session", "session of a memory"])
@in_event_loop
async def test_sqlite_finds_a_page_by_an_index_and_sorts_nothing(file_place: Place, page: Any) -> None:
    query, key = page
    async with file_place.open() as store:
        await record(store, 1)
        plan = await store._database.fetch(
            f"EXPLAIN QUERY PLAN {query}", (*key, "2024", "c", 5), lambda rows: [row[-1] for row in rows]
        )
    assert len(plan) == 1, plan
    assert "USING INDEX recollect_conversations_" in plan[0]
    assert "(created_at,conversation_id)<" in plan[0]


@in_event_loop
async def test_postgresql_finds_pages_by_an_index_and_sorts_nothing(empty_postgres: str) -> None:
    async with Place(by("asyncpg", empty_postgres)).open() as store:
        await asyncio.gather(*(record(store, number, f"user {number % 50}") for number in range(300)))
        sql(empty_postgres, "ANALYZE conversations, memory_runs")
        listed = store._database.runs.listed(None), ("default", "", 5)
        for query, key in [(page[0], (*page[1], "2024-01-20", "c", 5)) for page in PAGES] + [listed]:
            for number, value in reversed(list(enumerate(key, 1))):
                query = query.replace(f"?{number}", repr(value))
            plan = "\n".join(line for (line,) in sql(empty_postgres, f"EXPLAIN {query}"))
            assert "Seq Scan" not in plan, plan
            assert plan.count("Sort") == plan.count("Merge Append"), plan
