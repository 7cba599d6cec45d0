"""Turns of a conversation under the run lock; as a process of its own:

python -m tests.agents_sdk.lock_worker PATH NAME TURNS
"""

import asyncio
import sys
from typing import Any

from agents import RunConfig, Runner
from agents.testing import ModelCall, ModelStep, ScriptedModel

from recollect import SQLiteSession, run_lock

from .scenarios import answer, call, desk

UNTRACED = RunConfig(tracing_disabled=True)


def slow_turn(name: str) -> list[Any]:
    """A call and an answer, with time for others to come in between."""

    async def make_call(_call: ModelCall) -> list[Any]:
        await asyncio.sleep(0.01)
        return [call("add", name, a=1, b=2)]

    async def make_answer(_call: ModelCall) -> list[Any]:
        await asyncio.sleep(0.01)
        return answer(name)

    return [ModelStep.respond(make_call), ModelStep.respond(make_answer)]


async def converse(session: Any, name: str, turns: int) -> list[Any]:
    """Run the turns, each under the lock, and return what the model was shown."""
    shown = []
    for number in range(turns):
        model = ScriptedModel(slow_turn(f"{name}-{number}"))
        async with run_lock(session, timeout=20):
            await Runner.run(desk(model), f"{name}-{number}", session=session, run_config=UNTRACED)
        shown += [call.input for call in model.calls]
    return shown


async def main(path: str, name: str, turns: int) -> None:
    async with SQLiteSession("s", path) as session:
        print("ready", flush=True)
        sys.stdin.readline()
        await converse(session, name, turns)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
