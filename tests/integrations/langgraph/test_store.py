"""The store: items, filters, namespaces, meaning, time to live, and entries of memory."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from recollect import MemoryStore
from recollect.errors import InvalidTypeError, InvalidValueError
from recollect.integrations.langgraph import Store
from recollect.integrations.langgraph.store.namespaces import user_of_label
from recollect.memory.rights.langgraph_data import label_of_user
from recollect.sql.scripts import Statement
from recollect.testing.contract import in_event_loop

from .graphs import Chat, ask


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[tuple[Store, str]]:
    """A store, and a label that no other test uses."""
    async with Store(url, create_tables=True, **{"embedder": None, **options}) as store:
        yield store, uuid4().hex


@in_event_loop
async def test_items_are_put_read_replaced_and_deleted(url: str) -> None:
    async with opened(url) as (store, own):
        value = {"text": "tea", "n": [1, 2.5, None, True], "odd": "nul\0 \ud800", "nested": {"a": {"b": 1}}}
        await store.aput((own, "drinks"), "1", value)
        item = await store.aget((own, "drinks"), "1")
        assert item is not None
        assert item.value == value
        assert (item.namespace, item.key) == ((own, "drinks"), "1")
        await store.aput((own, "drinks"), "1", {"text": "coffee"})
        again = await store.aget((own, "drinks"), "1")
        assert again is not None
        assert again.value == {"text": "coffee"}
        assert again.created_at == item.created_at
        assert again.updated_at > item.updated_at
        await store.adelete((own, "drinks"), "1")
        assert await store.aget((own, "drinks"), "1") is None


@in_event_loop
async def test_random_operations_give_what_langgraphs_own_store_gives(url: str) -> None:
    chance, reference = random.Random(7), InMemoryStore()
    async with opened(url) as (store, own):
        places = [
            ((own, *chance.sample(["a", "b", "c", "d e", "ü"], chance.randrange(1, 4))), f"k{n % 8}")
            for n in range(80)
        ]
        for number, (namespace, key) in enumerate(places):
            value = {"n": number, "even": number % 2 == 0, "tags": [number % 3]}
            for each in (store, reference):
                await each.aput(namespace, key, value)
        for options in (
            {"prefix": (own,)},
            {"prefix": (own, "*"), "max_depth": 2},
            {"suffix": ("a",), "prefix": (own,)},
            {"prefix": (own,), "limit": 3, "offset": 2},
        ):
            assert await store.alist_namespaces(**options) == await reference.alist_namespaces(**options)
        for namespace, key in places[::5]:
            for each in (store, reference):
                await each.adelete(namespace, key)
        for prefix in ((own,), (own, "a"), (own, "a", "b"), (own, "d e"), (own, "none")):
            for wanted in (None, {"even": True}, {"n": {"$gte": 30, "$lt": 90}}, {"tags": [1]}, {"none": 1}):
                both = [await each.asearch(prefix, filter=wanted, limit=1000) for each in (store, reference)]
                found, expected = (
                    {(item.namespace, item.key, item.value["n"]) for item in some} for some in both
                )
                assert found == expected


@in_event_loop
async def test_a_page_of_a_search_follows_the_one_before(url: str) -> None:
    async with opened(url) as (store, own):
        for number in range(10):
            await store.aput((own,), f"{number}", {"n": number})
        pages = [await store.asearch((own,), limit=4, offset=offset) for offset in (0, 4, 8)]
        assert [item.key for page in pages for item in page] == [f"{n}" for n in range(9, -1, -1)]


@in_event_loop
async def test_a_batch_reads_first_and_writes_all_or_nothing(url: str) -> None:
    async with opened(url) as (store, own):
        await store.aput((own,), "a", {"n": 1})
        put, got, found = await store.abatch(
            [PutOp((own,), "a", {"n": 2}), GetOp((own,), "a"), SearchOp((own,), limit=5)]
        )
        assert (put, got.value, [item.value for item in found]) == (None, {"n": 1}, [{"n": 1}])
        with pytest.raises(InvalidTypeError, match="JSON"):
            await store.abatch([PutOp((own,), "a", {"n": 3}), PutOp((own,), "b", {"n": object()})])
        now = await store.aget((own,), "a")
        assert now is not None
        assert now.value == {"n": 2}


@in_event_loop
async def test_items_are_found_by_meaning_without_a_key(url: str) -> None:
    async with opened(url, embedder="local") as (store, own):
        facts = {
            "pet": "Ada has a small dog called Rex",
            "food": "Ada never eats meat or fish",
            "job": "Ada writes compilers for a living",
        }
        for key, text in facts.items():
            await store.aput((own, "ada"), key, {"text": text, "kind": key})
        await store.aput((own, "ada"), "hidden", {"text": "Ada keeps a puppy"}, index=False)
        found = await store.asearch((own,), query="Is she a vegetarian?", limit=2)
        assert found[0].key == "food"
        assert found[0].score is not None
        assert (await store.asearch((own,), query="animals at home", filter={"kind": "pet"}))[0].key == "pet"
        everything = await store.asearch((own,), query="dog", limit=10)
        assert everything[0].key == "pet"
        assert everything[-1].key == "hidden"  # which was not embedded, and has no score
        assert everything[-1].score is None
        await store.aput((own, "ada"), "pet", {"text": "Ada plays the violin"})
        assert (await store.asearch((own,), query="music", limit=1))[0].key == "pet"


@in_event_loop
async def test_only_the_named_fields_are_embedded(url: str) -> None:
    async with opened(url, embedder="local", fields=["title"]) as (store, own):
        await store.aput((own,), "1", {"title": "a dog", "body": "a cat"})
        await store.aput((own,), "2", {"title": "a cat", "body": "a dog"})
        assert (await store.asearch((own,), query="dog", limit=1))[0].key == "1"
        await store.aput((own,), "3", {"title": "x", "body": "a violin"}, index=["body"])
        assert (await store.asearch((own,), query="violin", limit=1))[0].key == "3"


async def let_expire(store: Store) -> None:
    """Move the time at which items expire into the past."""

    def script() -> Any:
        yield Statement(
            "UPDATE langgraph_store_items SET expires_at = created_at WHERE expires_at IS NOT NULL"
        )

    await store._tables.write(script)


@in_event_loop
async def test_items_expire(url: str) -> None:
    async with opened(url, ttl={"default_ttl": 60}) as (store, own):
        await store.aput((own,), "default", {"n": 1})
        await store.aput((own,), "forever", {"n": 2}, ttl=None)
        assert await store.aget((own,), "default") is not None
        await let_expire(store)
        assert await store.aget((own,), "default") is None
        assert [item.key for item in await store.asearch((own,))] == ["forever"]
        assert await store.delete_expired() >= 1
        await store.aput((own,), "read", {"n": 3}, ttl=5)
        await let_expire(store)
        assert await store.aget((own,), "read", refresh_ttl=True) is None  # too late
        with pytest.raises(InvalidValueError, match="positive"):
            await store.aput((own,), "x", {}, ttl=-1)


@in_event_loop
async def test_reading_an_item_lets_it_live_longer(url: str) -> None:
    async def expiry(store: Store, own: str) -> Any:
        sql = "SELECT expires_at FROM langgraph_store_items WHERE key = ?1"
        return await store._tables.fetch(sql, (own,), lambda rows: str(rows[0][0]))

    async with opened(url) as (store, own):
        await store.aput((own,), own, {"n": 1}, ttl=5)
        first = await expiry(store, own)
        await store.aget((own,), own, refresh_ttl=False)
        assert await expiry(store, own) == first
        await store.asearch((own,), refresh_ttl=True)
        assert await expiry(store, own) > first


@in_event_loop
async def test_entries_of_memory_are_items_with_their_evidence(tmp_path: Path) -> None:
    url = str(tmp_path / "memory.db")
    user, other = f"ada.{uuid4().hex}@example.com", uuid4().hex
    async with MemoryStore(url, workers=1, embedder=None, create_tables=True) as memory:
        for name, text in ((user, "I am a vegetarian and I live in Oslo."), (other, "I live in Rome.")):
            messages = [{"role": "user", "content": text}]
            await memory.record_conversation("agent", name, messages=messages)
        await memory.drain(timeout=60)
        async with opened(url, memory=memory, agent_id="agent") as (store, _):
            namespace = ("memories", label_of_user(user))
            assert user_of_label(namespace[1]) == user
            entries = await memory.list_entries("agent", user)
            assert entries
            items = await store.asearch(namespace, limit=100)
            assert [item.key for item in items] == [entry.content_id for entry in entries]
            found = await store.asearch(namespace, query="where does she live?", limit=1)
            assert "Oslo" in found[0].value["content_text"]
            assert found[0].value["evidence"][0]["message_id"]
            assert (await store.aget(namespace, found[0].key)).value == found[0].value
            assert await store.aget(("memories", other), found[0].key) is None  # another user's
            assert await store.asearch(namespace, filter={"content_type": "none"}) == []
            assert namespace in await store.alist_namespaces(prefix=("memories",), limit=10_000)
            with pytest.raises(InvalidValueError, match="read-only"):
                await store.aput(namespace, "x", {"text": "planted"})
            assert await memory.list_entries("agent", user) == entries


@in_event_loop
async def test_bad_input_is_refused(url: str) -> None:
    async with opened(url) as (store, own):
        with pytest.raises(InvalidValueError, match="at most 1000 characters"):
            await store.aput((own,), "k" * 10_000, {})
        with pytest.raises(InvalidValueError, match="at most 2000 bytes"):
            await store.aput((own, "n" * 3000), "k", {})
        with pytest.raises(InvalidNamespaceError):
            await store.abatch([PutOp((own, "a.b"), "k", {})])
        with pytest.raises(InvalidValueError, match="no operator"):
            await store.asearch((own,), filter={"a": {"$like": 1}})
        with pytest.raises(InvalidTypeError, match="mapping"):
            await store.abatch([PutOp((own,), "k", "text")])  # type: ignore[arg-type]
        assert await store.asearch((own,), filter={"missing": {"$gt": 1}}) == []
        assert await store.asearch((own,)) == []
    with pytest.raises(InvalidValueError, match="both"):
        Store(":memory:", embedder=None, agent_id="agent")


def test_a_node_of_a_graph_uses_the_store(url: str) -> None:
    with Store(url, embedder=None, create_tables=True) as store:
        own = uuid4().hex

        def remember(state: Chat, runtime: Runtime[None]) -> dict[str, Any]:
            assert runtime.store is not None
            runtime.store.put((own,), "last", {"text": state["messages"][-1].content})
            return {"log": [str(len(runtime.store.search((own,))))]}

        builder = StateGraph(Chat)
        builder.add_node("remember", remember)
        builder.add_edge(START, "remember")
        graph = builder.compile(store=store)
        assert graph.invoke(ask("hello"))["log"] == ["asked hello", "1"]
        assert asyncio.run(graph.ainvoke(ask("again")))["log"] == ["asked again", "1"]
        item = store.get((own,), "last")
        assert item is not None
        assert item.value == {"text": "again"}
