"""A process that works on an advanced session. It says `ready`, and begins once it is told to.

python advanced_worker.py TASK NAME SESSION DATABASE…
"""

import asyncio
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.sessions.advanced.database import branch_names, database_of, said

STEPS = 40
NAMES = 20


def say(*words: object) -> None:
    print(*words, flush=True)


async def tell(session: Any, _name: str) -> None:
    """Say which branch is current, and how many items it shows."""
    say(await session.current_branch(), len(await session.get_items()))


async def branch(session: Any, name: str) -> None:
    """Make a branch and say hello on it."""
    await session.create_branch_from_turn(1, name)
    await session.add_items([said("user", "hello")])


async def mix(session: Any, name: str) -> None:
    """Add, pop, branch and switch at random; say what was added and what was popped."""
    chance = random.Random(name)
    for number in range(STEPS):
        match chance.choice(["add", "add", "add", "pop", "branch", "switch"]):
            case "add":
                roles = ("user", "assistant", "assistant")
                batch = [said(role, f"{name}/{number}/{n}") for n, role in enumerate(roles)]
                await session.add_items(batch)
                say("added", f"{name}/{number}")
            case "pop":
                item = await session.pop_item()
                say("popped", item and item["content"])
            case "branch":
                with suppress(ValueError):  # others may have popped the turn, or switched
                    await session.create_branch_from_turn(chance.randint(1, 4), f"{name}-{number}")
            case "switch":
                await session.switch_to_branch(chance.choice(await branch_names(session)))


async def race(session: Any, _name: str) -> None:
    """Try to make branches of names that others try to make too; say which were made."""
    for number in range(NAMES):
        wanted = f"branch {number}"
        while wanted not in await branch_names(session):
            await session.switch_to_branch("main")
            with suppress(ValueError):  # others made it, or switched to one without such a turn
                say(await session.create_branch_from_turn(2, wanted))


async def branches(session: Any, _name: str) -> None:
    """Make branches of a long history, for ever, and say how many there are."""
    for number in range(1, 10**6):
        await session.switch_to_branch("main")
        await session.create_branch_from_turn(number % 500 + 1, f"{number % 500} {number}")
        say(number)


TASKS = {task.__name__: task for task in (tell, branch, mix, race, branches)}


async def main(task: str, name: str, session_id: str, *arguments: str) -> None:
    async with database_of(list(arguments)).open(session_id) as session:
        await session.current_branch()
        say("ready")
        sys.stdin.readline()
        await TASKS[task](session, name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
