"""The measures of this suite, and how large and how often each is run."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from ..harness import Measure, Metric, Sample, Sampler, Suite, timed
from ..sessions.histories import Workspace
from ..shared.items import SESSION, make_turn
from ..shared.stores import short
from .contenders import ADVANCED, BASELINES, EVERYBODY, OURS, give_structure, make_session, on_histories

TIME = (Metric("time"),)
Take: TypeAlias = Callable[[Any], Awaitable[float]]
_TURN_OF_ITEMS = 5
_NEWEST = 50


@dataclass(frozen=True)
class Scale:
    """Sizes, and how often things are repeated that take microseconds, milliseconds, and longer."""

    sizes: tuple[int, ...]
    large: int
    many: int
    some: int


FULL = Scale(sizes=(100, 10_000, 100_000), large=10_000, many=60, some=10)
QUICK = Scale(sizes=(100, 1000), large=1000, many=5, some=3)


def build(directory: Path, quick: bool) -> Suite:
    """The suite, with its files in a directory."""
    workspace, scale = Workspace(directory), QUICK if quick else FULL
    large = short(scale.large)

    def measure(name: str, what: str, size: int, take: Take, repeats: int, who: tuple[str, ...]) -> Measure:
        opening = partial(_samplers, workspace, who, size, take)
        return Measure(name, what, TIME, repeats, opening, BASELINES)

    measures = [
        Measure(
            "make",
            "make a session, another is open",
            TIME,
            scale.many,
            partial(_makers, workspace),
            BASELINES,
        )
    ]
    for size in scale.sizes:
        of = short(size)
        measures += [
            measure(
                f"newest-{of}", f"newest {_NEWEST} of {size:,} items", size, _newest, scale.many, EVERYBODY
            ),
            measure(
                f"add-turn-{of}", f"add a turn of 5 to {size:,} items", size, _add, scale.many, EVERYBODY
            ),
            measure(f"pop-{of}", f"pop the newest of {size:,} items", size, _pop, scale.many, EVERYBODY),
        ]
    middle = partial(_branch, turn=scale.large // _TURN_OF_ITEMS // 2)
    for name, what, take in (
        (f"branch-{large}", "branch from the middle", middle),
        (f"turns-{large}", "all user turns", _turns),
        (f"tools-{large}", "tools used, by turn", _tools),
        (f"find-{large}", "turns that contain a text", _find),
        (f"read-{large}", "read the whole branch", _read),
    ):
        measures.append(
            measure(name, f"{what}, {scale.large:,} items", scale.large, take, scale.some, ADVANCED)
        )
    return Suite("advanced", OURS, EVERYBODY, BASELINES, measures)


@asynccontextmanager
async def _samplers(
    workspace: Workspace, contenders: tuple[str, ...], size: int, take: Take
) -> AsyncIterator[Mapping[str, Sampler]]:
    def sampler(session: Any) -> Sampler:
        async def sample() -> Sample:
            return {"time": await take(session)}

        return sample

    async with on_histories(workspace, contenders, size) as sessions:
        yield {contender: sampler(session) for contender, session in sessions.items()}


@asynccontextmanager
async def _makers(workspace: Workspace) -> AsyncIterator[Mapping[str, Sampler]]:
    """Samplers that make a session on a file that another session has open."""
    path = workspace.copy_of({SESSION: 100})
    await give_structure(path)

    def sampler(contender: str) -> Sampler:
        async def sample() -> Sample:
            made: list[Any] = []

            async def make() -> None:
                made.append(make_session(contender, path))

            seconds = await timed(make)
            made[0].close()
            return {"time": seconds}

        return sample

    held = {contender: make_session(contender, path) for contender in EVERYBODY}
    for session in held.values():
        await session.get_items(1)
    yield {contender: sampler(contender) for contender in EVERYBODY}
    for session in held.values():
        session.close()


# --- what is timed ---

_names = count(1)


async def _newest(session: Any) -> float:
    return await timed(lambda: session.get_items(_NEWEST), 5)


async def _add(session: Any) -> float:
    """Taken off again outside the clock, so that the history stays as long as it was."""
    seconds = await timed(lambda: session.add_items(make_turn(1)))
    for _ in range(_TURN_OF_ITEMS):
        await session.pop_item()
    return seconds


async def _pop(session: Any) -> float:
    await session.add_items(make_turn(1)[:1])
    return await timed(session.pop_item)


async def _branch(session: Any, turn: int) -> float:
    name = f"branch-{next(_names)}"
    seconds = await timed(lambda: session.create_branch_from_turn(turn, name))
    await session.delete_branch(name, force=True)
    return seconds


async def _turns(session: Any) -> float:
    return await timed(session.get_conversation_turns)


async def _tools(session: Any) -> float:
    return await timed(session.get_tool_usage)


async def _find(session: Any) -> float:
    return await timed(lambda: session.find_turns_by_content("order 42?"))


async def _read(session: Any) -> float:
    return await timed(session.get_items)
