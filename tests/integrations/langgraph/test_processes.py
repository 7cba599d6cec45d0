"""Several processes on one thread, processes that are killed, forks, and calls that are cancelled."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recollect.integrations.langgraph import Checkpointer
from recollect.testing.contract import in_event_loop

from .graphs import approval_graph, ask, chat_graph, config_of
from .test_storage import messages_at, put, talk
from .worker import steps_graph

ROOT = Path(__file__).parents[3]


@contextmanager
def worker(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A process of its own, which ends with the block."""
    command = [sys.executable, "-m", "tests.integrations.langgraph.worker", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@in_event_loop
async def test_another_process_resumes_an_interrupted_run(shared_url: str, thread_id: str) -> None:
    async with Checkpointer(shared_url, create_tables=True) as checkpointer:
        await approval_graph(checkpointer).ainvoke(ask("a"), config_of(thread_id))
    with worker("resume", shared_url, thread_id) as process:
        printed, _ = await asyncio.to_thread(process.communicate)
    assert printed.strip() == "asked a|approved yes|answered a"


@in_event_loop
async def test_two_processes_on_one_thread_lose_no_checkpoint(shared_url: str, thread_id: str) -> None:
    """Each run begins from the newest checkpoint, so runs at the same time are branches. None is damaged."""
    turns = 8
    async with Checkpointer(shared_url, create_tables=True) as checkpointer:
        graph = chat_graph(checkpointer)
        with worker("turns", shared_url, thread_id, str(turns)) as process:
            for number in range(turns):
                await graph.ainvoke(ask(f"here {number}"), config_of(thread_id))
            assert await asyncio.to_thread(process.wait) == 0
        history = [each async for each in graph.aget_state_history(config_of(thread_id))]
        assert len(history) == 2 * turns * 3
        by_id = {each.config["configurable"]["checkpoint_id"]: each.values for each in history}
        for each in history:
            if each.parent_config is not None:
                before = by_id[each.parent_config["configurable"]["checkpoint_id"]].get("messages", [])
                assert each.values.get("messages", [])[: len(before)] == before


async def kill_and_resume(url: str, thread_id: str, kills: int, count: int, chance: random.Random) -> None:
    """Kill a process in the middle of supersteps, so many times, and let this one finish the run."""
    begun = 0
    for attempt in range(kills):
        with worker("steps" if attempt == 0 else "steps-on", url, thread_id, str(count)) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 6)):
                begun = int(await asyncio.to_thread(process.stdout.readline) or begun)
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(process.wait)
        async with Checkpointer(url) as checkpointer:
            newest = await checkpointer.aget_tuple(config_of(thread_id))
            assert newest is not None
            assert (
                len(newest.checkpoint["channel_values"].get("numbers", [])) >= begun
            )  # nothing stored is lost
            async for found in checkpointer.alist(config_of(thread_id)):
                values = found.checkpoint["channel_values"]
                numbers = [each["number"] for each in values.get("numbers", [])]
                assert numbers == list(range(len(numbers)))
                assert values.get("total", 0) == sum(numbers)  # both channels are of the same step
    async with Checkpointer(url) as checkpointer:
        config = {**config_of(thread_id), "recursion_limit": count + 5}
        done = await steps_graph(checkpointer, count).ainvoke(None, config)
        assert [each["number"] for each in done["numbers"]] == list(range(count))
        assert done["total"] == sum(range(count))


@in_event_loop
async def test_a_killed_run_is_resumed_from_a_whole_checkpoint(shared_url: str, thread_id: str) -> None:
    await kill_and_resume(shared_url, thread_id, 1, 30, random.Random(1))


@pytest.mark.proof
@pytest.mark.timeout(600)
@in_event_loop
async def test_a_run_that_is_killed_again_and_again_is_finished(shared_url: str, thread_id: str) -> None:
    await kill_and_resume(shared_url, thread_id, 8, 120, random.Random(2))


def test_a_forked_child_uses_the_same_checkpointer(shared_url: str, thread_id: str) -> None:
    with Checkpointer(shared_url, create_tables=True) as checkpointer:
        graph = chat_graph(checkpointer)
        graph.invoke(ask("parent"), config_of(thread_id))
        child = os.fork()
        if child == 0:
            try:
                graph.invoke(ask("child"), config_of(thread_id))
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        graph.invoke(ask("parent again"), config_of(thread_id))
        messages = graph.get_state(config_of(thread_id)).values["messages"]
        assert [each.content for each in messages][::2] == ["parent", "child", "parent again"]


@in_event_loop
async def test_a_cancelled_put_stores_all_or_nothing(url: str, thread_id: str) -> None:
    async with Checkpointer(url, create_tables=True) as checkpointer:
        config = await put(checkpointer, config_of(thread_id), talk(3))
        for step in range(1, 20):
            messages = talk(3 + step)
            storing = asyncio.ensure_future(put(checkpointer, config, messages, step=step))
            for _ in range(step % 6):
                await asyncio.sleep(0)
            storing.cancel()
            try:
                config = await storing
            except asyncio.CancelledError:
                found = await checkpointer.aget_tuple(config_of(thread_id))
                assert found is not None
                config = found.config
            stored = await messages_at(checkpointer, config_of(thread_id))
            assert stored == talk(len(stored))
        whole = [found async for found in checkpointer.alist(config_of(thread_id))]
        assert all(each.checkpoint["channel_values"]["messages"] for each in whole)
