"""Limits of the proxy itself: recalls at the same time, and the time to record at the end."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from recollect.memory.hits import Recalled
from recollect.memory.prompting import PromptOptions
from recollect.memory.store import MemoryStore
from recollect.server.proxy.chat_completions import ChatCompletions
from recollect.server.proxy.recalling import DeadlineRecall
from recollect.server.proxy.recording import Turn
from recollect.server.proxy.speakers import Speaker
from recollect.server.proxy.values import Said, Thread
from recollect.server.service import open_service
from recollect.testing.contract import in_event_loop

from .conftest import proxy_settings

ADA = Speaker("ada", "assistant")
SAID = [Said("user", "What is my dog called?")]
ANSWER = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Rex!"}}]}).encode()


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
        recall = DeadlineRecall(20, PromptOptions())
        messages = [{"role": "user", "content": "My dog is called Rex."}]
        await store.record_conversation("assistant", "ada", messages)
        await store.drain(30)
        recalled = await asyncio.gather(*(recall(store, ADA, SAID, Thread()) for _ in range(12)))
        assert [each.state for each in recalled] == ["added"] * 12


@in_event_loop
async def test_late_recalls_are_few_also_those_of_calls_that_were_given_up(tmp_path: Path) -> None:
    async with _Hanging(str(tmp_path / "recollect.db"), embedder=None, workers=0) as store:
        hasty, patient = DeadlineRecall(0.001, PromptOptions()), DeadlineRecall(20, PromptOptions())
        for _ in range(6):
            assert (await hasty(store, ADA, SAID, Thread())).state == "slow"
        assert store.asked == 4
        given_up = [asyncio.create_task(patient(store, ADA, SAID, Thread())) for _ in range(4)]
        while store.asked < 8:  # noqa: ASYNC110 - they ask at once
            await asyncio.sleep(0)
        for task in given_up:
            task.cancel()
        await asyncio.wait(given_up)
        assert (await patient(store, ADA, SAID, Thread())).state == "slow"
        assert store.asked == 8
        await hasty.aclose()
        await patient.aclose()


@in_event_loop
async def test_a_turn_is_recorded_also_if_requests_used_up_the_grace_period(tmp_path: Path) -> None:
    settings = proxy_settings(tmp_path, "http://127.0.0.1:9", "http://127.0.0.1:9")
    service = open_service(settings)
    assert service.proxy is not None
    service.stops_at = time.monotonic() - 1
    turn = Turn(service.memory.for_tenant("default"), ADA, Thread(), SAID, ChatCompletions(), "", ANSWER)
    service.proxy.recorder.add(turn)
    await service.aclose()
    async with MemoryStore(settings.database.url, embedder=None, workers=0) as store:
        (outline,) = await store.list_conversations("assistant", "ada")
        conversation = await store.get_conversation(outline["conversation_id"])
    assert conversation is not None
    assert [message.content for message in conversation.messages] == ["What is my dog called?", "Rex!"]
