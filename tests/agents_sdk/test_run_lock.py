"""Runs that take the lock do not interleave their turns: tasks, threads and processes alike."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from agents import Runner
from agents.testing import ModelCall, ModelStep, ScriptedModel

from recollect import SQLiteSession, find_orphans, run_lock, split_turns
from recollect.testing.contract import in_event_loop

from .lock_worker import UNTRACED, converse
from .scenarios import Item, answer, call, desk, in_short, outage

ROOT = Path(__file__).parents[2]
TURNS = 4


def names_of_whole_turns(items: list[Item]) -> list[str]:
    """The names of the turns, after a check that each is whole and of one name."""
    names = []
    for user, called, returned, answered in (turn for turn in split_turns(items)[1:]):
        name = user["content"]
        assert called["call_id"] == returned["call_id"] == answered["content"][0]["text"] == name
        names.append(name)
    return names


def names_of(*conversations: str) -> list[str]:
    return sorted(f"{name}-{number}" for name in conversations for number in range(TURNS))


async def as_tasks(one: Any, other: Any) -> list[Any]:
    shown = await asyncio.gather(converse(one, "a", TURNS), converse(other, "b", TURNS))
    return [*shown[0], *shown[1]]


async def as_threads(one: Any, other: Any) -> list[Any]:
    """Each with an event loop of its own."""
    shown = await asyncio.gather(
        asyncio.to_thread(asyncio.run, converse(one, "a", TURNS)),
        asyncio.to_thread(asyncio.run, converse(other, "b", TURNS)),
    )
    return [*shown[0], *shown[1]]


@pytest.mark.parametrize("handles", [1, 2])
@pytest.mark.parametrize("side_by_side", [as_tasks, as_threads])
@in_event_loop
async def test_runs_in_one_process(tmp_path: Path, side_by_side: Callable[..., Any], handles: int) -> None:
    with ExitStack() as stack:
        path = tmp_path / "sessions.db"
        sessions = [stack.enter_context(closing(SQLiteSession("s", path))) for _ in range(handles)]
        shown = await side_by_side(sessions[0], sessions[-1])
        found = await sessions[0].get_items()
    assert sorted(names_of_whole_turns(found)) == names_of("a", "b")
    for items in shown:
        assert in_short(items).removesuffix("CO") == "UCOA" * (len(items) // 4) + "U"
        assert find_orphans(items, spare_newest_turn=False) == []


@in_event_loop
async def test_without_the_lock_they_would_interleave(tmp_path: Path) -> None:
    """So that the tests beside it say something."""
    meeting = asyncio.Barrier(2)

    async def meet(_call: ModelCall) -> list[Any]:
        await meeting.wait()
        return answer("hello")

    async with SQLiteSession("s", tmp_path / "sessions.db") as session:
        models = [ScriptedModel([ModelStep.respond(meet)]) for _ in range(2)]
        await asyncio.gather(
            *(Runner.run(desk(model), "hi", session=session, run_config=UNTRACED) for model in models)
        )
        assert in_short(await session.get_items()) == "UUAA"


@pytest.mark.proof
def test_runs_in_two_processes(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    command = [sys.executable, "-m", "tests.agents_sdk.lock_worker", str(path), "a", str(TURNS)]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker,
        closing(SQLiteSession("s", path)) as session,
    ):
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        worker.stdin.write("go\n")
        worker.stdin.flush()
        asyncio.run(converse(session, "b", TURNS))
        _, errors = worker.communicate(timeout=60)
        assert worker.returncode == 0, errors
        found = asyncio.run(session.get_items())
    assert sorted(names_of_whole_turns(found)) == names_of("a", "b")


@pytest.mark.parametrize("ending", ["error", "cancelled"])
@in_event_loop
async def test_a_run_that_ends_badly_gives_the_lock_up(tmp_path: Path, ending: str) -> None:
    asked = asyncio.Event()

    async def answer_late(_call: ModelCall) -> Any:
        asked.set()
        await asyncio.sleep(0 if ending == "error" else 60)
        return outage()

    model = ScriptedModel([[call("add", a=1, b=2)], ModelStep.respond(answer_late), answer("hello")])
    async with SQLiteSession("s", tmp_path / "sessions.db") as session:

        async def run_locked(text: str) -> None:
            async with run_lock(session, timeout=5):
                await Runner.run(desk(model), text, session=session, run_config=UNTRACED)

        run = asyncio.create_task(run_locked("1+2?"))
        await asked.wait()
        if ending == "cancelled":
            run.cancel()
        with pytest.raises((RuntimeError, asyncio.CancelledError)):
            await run
        await run_locked("hi")
        assert in_short(await session.get_items()) == "UCOUA"
