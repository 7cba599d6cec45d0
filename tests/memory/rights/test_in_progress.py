"""Erasing while a run is being done: whatever was on its way is not written."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest

from recollect.errors import LeaseLostError
from recollect.memory.database import runs
from recollect.memory.entry import Entry
from recollect.memory.pipeline.runner import Runner, RunOptions
from recollect.memory.pipeline.stages import Answer, Candidate, Excerpt, Modification, Stage, Update
from recollect.testing.contract import in_event_loop

from .kit import AGENT, Rules, Somewhere, Store, known, learn, runner_of, said
from .people import marked, rows_of


class Slow(Rules):
    """Answers in one stage when it is allowed to, and tells when it was asked."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.asked = asyncio.Event()
        self.allowed = asyncio.Event()

    async def modification(self, excerpt: Excerpt) -> Answer[Modification]:
        await self._wait("modification")
        return await super().modification(excerpt)

    async def update(
        self, excerpt: Excerpt, candidates: Sequence[Candidate], known: Sequence[Entry]
    ) -> Answer[Update]:
        await self._wait("update")
        return await super().update(excerpt, candidates, known)

    async def _wait(self, stage: Stage) -> None:
        if stage == self._stage:
            self.asked.set()
            await self.allowed.wait()


async def record(store: Store) -> None:
    messages = said("home: lives in Ghent", "pet: has a tortoise named Ida")
    await store.record_conversation(AGENT, "ann", messages, conversation_id="c1")


async def erase_while_asked(store: Store, stage: Stage, *, message: bool) -> None:
    """Have a run be done up to the answer of a stage, erase, and let the answer come."""
    slow = Slow(stage)
    runner = Runner(store._database, slow, RunOptions(attempts=1))
    task = await runner.claim("slow")
    assert task is not None
    doing = asyncio.create_task(runner.execute(task))
    await slow.asked.wait()
    await (store.erase_message("c1", "m0") if message else store.erase_user("ann"))
    slow.allowed.set()
    await doing


@in_event_loop
async def test_a_run_of_an_erased_user_has_lost_its_lease_and_writes_nothing(somewhere: Somewhere) -> None:
    async with somewhere.open() as store:
        await record(store)
        task = await runner_of(store).claim("mine")
        assert task is not None
        await store.erase_user("ann")
        with pytest.raises(LeaseLostError):
            await store._database.write(partial(runs.extend, store._database.queue, task, 60))


@pytest.mark.parametrize("stage", ["modification", "update"])
@in_event_loop
async def test_an_answer_that_comes_after_its_user_was_erased_leaves_no_trace(
    shared: Somewhere, stage: Stage
) -> None:
    async with shared.open() as store:
        await record(store)
        await erase_while_asked(store, stage, message=False)
        assert marked(rows_of(shared.url), "Ghent") == {}
        assert await store.list_runs() == []


@pytest.mark.parametrize("stage", ["modification", "update"])
@in_event_loop
async def test_an_answer_that_quotes_an_erased_message_is_not_kept_and_all_is_asked_for_again(
    somewhere: Somewhere, stage: Stage
) -> None:
    async with somewhere.open() as store:
        await record(store)
        await erase_while_asked(store, stage, message=True)
        assert await known(store) == []
        (run,) = await store.list_runs()
        assert run.stages == ()
        await learn(store)
        assert await known(store) == ["has a tortoise named Ida"]
        assert "Ghent" not in repr(await store.export_user("ann"))


@in_event_loop
async def test_a_worker_goes_on_with_others_after_its_user_was_erased(shared: Somewhere) -> None:
    async with shared.open(workers=1) as store:
        await record(store)
        await store.erase_user("ann")
        await store.record_conversation(AGENT, "bob", said("home: lives in Oslo"), conversation_id="c2")
        await store.drain(timeout=30)
        assert await known(store, "bob") == ["lives in Oslo"]
        exported = await store.export_user("ann")
        assert not any(exported[kind] for kind in ("memories", "entries", "conversations", "runs"))
