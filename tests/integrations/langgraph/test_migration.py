"""Threads and items of LangGraph's own savers and stores, copied: the same history before and after."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite.aio import AsyncSqliteStore
from langgraph.types import Command

from recollect import ConflictError
from recollect.integrations.langgraph import Checkpointer, Store, copy_items, copy_threads
from recollect.integrations.langgraph.store.copies import _in_utc
from recollect.testing.contract import in_event_loop

from .graphs import approval_graph, ask, config_of
from .test_graphs import delta_graph


@pytest.fixture(params=["sqlite", "postgres"])
def official(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """One of LangGraph's own savers."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        if request.param == "sqlite":
            async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "official.db")) as saver:
                yield saver
        else:
            url = request.getfixturevalue("postgres_url")
            async with AsyncPostgresSaver.from_conn_string(url) as saver:
                await saver.setup()
                yield saver

    return opened


async def history(graph: Any, thread_id: str) -> list[Any]:
    """All that a graph says of its past."""
    return [
        (each.values, each.next, each.config, each.metadata, each.parent_config, each.tasks)
        async for each in graph.aget_state_history(config_of(thread_id))
    ]


@in_event_loop
async def test_threads_have_the_same_history_and_go_on(official: Any, tmp_path: Path) -> None:
    forked, deltas = str(uuid4()), str(uuid4())
    async with official() as source, Checkpointer(tmp_path / "ours.db") as target:
        graph = approval_graph(source)
        for text in "ab":
            await graph.ainvoke(ask(text), config_of(forked))
            await graph.ainvoke(Command(resume="yes"), config_of(forked))
        middle = (await history(graph, forked))[3][2]
        await graph.aupdate_state(middle, {"messages": [HumanMessage("x")]})
        await graph.ainvoke(ask("c"), config_of(forked))  # which waits for a person
        for number in range(7):
            await delta_graph(source).ainvoke({"messages": [f"{number}"]}, config_of(deltas))

        threads = [forked, deltas]
        report = await copy_threads(source, target, threads)
        assert report.copied == report.found > 20
        assert (await copy_threads(source, target, threads)) == (report.found, 0)
        for make, thread_id in ((approval_graph, forked), (delta_graph, deltas)):
            assert await history(make(target), thread_id) == await history(make(source), thread_id)

        done = await approval_graph(target).ainvoke(Command(resume="yes"), config_of(forked))
        assert done["log"][-2:] == ["approved yes", "answered c"]
        await approval_graph(source).ainvoke(Command(resume="no"), config_of(forked))  # goes another way
        with pytest.raises(ConflictError, match="differs"):
            await copy_threads(source, target, [forked])


@in_event_loop
async def test_a_copy_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    async with (
        AsyncSqliteSaver.from_conn_string(str(tmp_path / "official.db")) as source,
        Checkpointer(tmp_path / "ours.db") as target,
    ):
        graph = approval_graph(source)
        for thread in "abc":
            await graph.ainvoke(ask(thread), config_of(thread))
        first = await copy_threads(source, target, ["a"])
        assert await copy_threads(source, target) == (3 * first.found, 2 * first.found)


@asynccontextmanager
async def opened_store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """One of LangGraph's own stores."""
    if kind == "memory":
        yield InMemoryStore()
        return
    if kind == "sqlite":
        opened: Any = AsyncSqliteStore.from_conn_string(str(tmp_path / "official.db"))
    else:
        opened = AsyncPostgresStore.from_conn_string(request.getfixturevalue("postgres_url"))
    async with opened as store:
        await store.setup()
        yield store


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
@in_event_loop
async def test_items_of_a_store_are_copied(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    own = uuid4().hex
    async with (
        opened_store(kind, tmp_path, request) as source,
        Store(":memory:", embedder=None, owners=[("{user_id}",)]) as target,
    ):
        for number in range(5):
            await source.aput((own,), f"{number}", {"n": number})
            await source.aput((own, "b"), f"{number}", {"text": f"inner {number}"})
        first = await copy_items(source, target)
        assert first.copied == first.found >= 10
        assert await copy_items(source, target) == (first.found, 0)
        found = {(item.namespace, item.key): item for item in await target.asearch((own,), limit=50)}
        assert found[(own, "b"), "3"].value == {"text": "inner 3"}
        assert len(found) == 10
        there = await source.aget((own,), "3")
        assert found[(own,), "3"].updated_at == _in_utc(there.updated_at)
        await source.aput((own,), "3", {"n": "changed"})
        assert await copy_items(source, target) == (first.found, 1)
