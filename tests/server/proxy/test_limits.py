"""Limits of the proxy itself: recalls at the same time."""

import asyncio
from pathlib import Path
from typing import Any

from recollect.memory.hits import Recalled
from recollect.memory.store import MemoryStore
from recollect.server.proxy.recalling import DeadlineRecall
from recollect.server.proxy.speakers import Speaker
from recollect.server.proxy.values import Said
from recollect.testing.contract import in_event_loop

ADA = Speaker("ada", "assistant")
SAID = [Said("user", "What is my dog called?")]


class _Hanging(MemoryStore):
    """A store that does not answer."""

    asked = 0

    async def recall(self, *arguments: Any, **options: Any) -> Recalled:  # noqa: ARG002
        self.asked += 1
        await asyncio.Event().wait()
        raise AssertionError


@in_event_loop
async def test_calls_at_the_same_time_all_get_their_memories(tmp_path: Path) -> None:
    async with MemoryStore(str(tmp_path / "recollect.db"), embedder=None, workers=1) as store:
        recall = DeadlineRecall(20, 1000)
        messages = [{"role": "user", "content": "My dog is called Rex."}]
        await store.record_conversation("assistant", "ada", messages)
        await store.drain(30)
        recalled = await asyncio.gather(*(recall(store, ADA, SAID) for _ in range(12)))
        assert [each.state for each in recalled] == ["added"] * 12


@in_event_loop
async def test_late_recalls_are_few_also_those_of_calls_that_were_given_up(tmp_path: Path) -> None:
    async with _Hanging(str(tmp_path / "recollect.db"), embedder=None, workers=0) as store:
        hasty, patient = DeadlineRecall(0.001, 1000), DeadlineRecall(20, 1000)
        for _ in range(6):
            assert (await hasty(store, ADA, SAID)).state == "slow"
        assert store.asked == 4
        given_up = [asyncio.create_task(patient(store, ADA, SAID)) for _ in range(4)]
        while store.asked < 8:  # noqa: ASYNC110 - they ask at once
            await asyncio.sleep(0)
        for task in given_up:
            task.cancel()
        await asyncio.wait(given_up)
        assert (await patient(store, ADA, SAID)).state == "slow"
        assert store.asked == 8
        await hasty.aclose()
        await patient.aclose()
