"""Single calls: the request cycle, adding, reading, popping, clearing."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler, timed
from .contenders import (
    RAW_FULL,
    RAW_OWN,
    READERS,
    SDK,
    WRITERS,
    Database,
    Session,
    check_read,
    live_session,
    opened,
)
from .histories import SESSION, Workspace, make_items, make_turn

MakeSampler: TypeAlias = Callable[[Session], Sampler]

BASELINES = (RAW_FULL, SDK)
TIME = (Metric("time"),)
_CYCLE_HISTORY = 1000
_NEWEST = 50
_IDLE = 0.4  # longer than our engine lingers after the last session of a file has gone
_LARGE = 10_000
_TURN = make_turn(1)


def request_cycles(workspace: Workspace, repeats: int, cold_repeats: int) -> list[Measure]:
    """Make a session, read, add, close: all that a request does."""
    what = f"make a session of {_CYCLE_HISTORY:,} items, read the newest {_NEWEST}, add 5, close"
    alone = _on_file(workspace, hold=False)
    held = _on_file(workspace, hold=True)
    cold = f"{what}; after {_IDLE} s without any"
    return [
        Measure("cycle-alone", f"{what}; one after the other", TIME, repeats, alone, BASELINES),
        Measure("cycle-cold", cold, TIME, cold_repeats, alone, BASELINES, pause=_IDLE),
        Measure("cycle-held", f"{what}; another session is open", TIME, repeats, held, BASELINES),
    ]


def _on_file(workspace: Workspace, hold: bool) -> OpenMeasure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers = {}
            for name in (*WRITERS, RAW_OWN):
                path = workspace.copy_of({SESSION: _CYCLE_HISTORY, "another": 1})
                database = await stack.enter_async_context(opened(name, path))
                if hold:
                    await stack.enter_async_context(live_session(database, "another"))
                samplers[name] = _sampler(partial(_cycle, database))
            yield samplers

    return open_all


async def _cycle(database: Database) -> None:
    session = database.session(SESSION)
    await session.get_items(_NEWEST)
    await session.add_items(_TURN)
    await database.close_session(session)


def _sampler(operation: Callable[[], Awaitable[object]], burst: int = 1) -> Sampler:
    """A sampler for calls of one operation.

    Writes are taken one at a time: the disk's speed changes from one moment to the next, and the contenders
    must meet it in turns. Short reads are taken in bursts, because single ones are too short for the clock.
    """

    async def sample() -> Sample:
        return {"time": await timed(operation, burst)}

    return sample


def add(workspace: Workspace, number: int, repeats: int) -> Measure:
    """Append a batch to a session that is open."""
    items = make_items(number)

    def make_sampler(session: Session) -> Sampler:
        return _sampler(lambda: session.add_items(items))

    opening = _on_session(workspace, 1000, WRITERS, make_sampler)
    return Measure(
        f"add-{number}", f"add {number:,} item{'s' if number > 1 else ''}", TIME, repeats, opening, BASELINES
    )


def read_all(workspace: Workspace, size: int, repeats: int) -> Measure:
    """Read a whole history."""

    def make_sampler(session: Session) -> Sampler:
        return _sampler(session.get_items, max(1, 1000 // size))

    opening = _on_session(workspace, size, READERS, make_sampler)
    collect = size >= _LARGE
    return Measure(
        f"read-{short(size)}",
        f"read all of {size:,} items",
        TIME,
        repeats,
        opening,
        BASELINES,
        collect=collect,
    )


def read_newest(workspace: Workspace, size: int, repeats: int) -> Measure:
    """Read the end of a history."""

    def make_sampler(session: Session) -> Sampler:
        return _sampler(lambda: session.get_items(_NEWEST), 10)

    opening = _on_session(workspace, size, READERS, make_sampler)
    what = f"read the newest {_NEWEST} of {size:,} items"
    return Measure(f"newest-{_NEWEST}-of-{short(size)}", what, TIME, repeats, opening, BASELINES)


def pop(workspace: Workspace, repeats: int) -> Measure:
    """Take the newest item off. What was taken is put back outside the clock."""

    def make_sampler(session: Session) -> Sampler:
        async def sample() -> Sample:
            await session.add_items(_TURN[:1])
            return {"time": await timed(session.pop_item)}

        return sample

    opening = _on_session(workspace, 1000, WRITERS, make_sampler)
    return Measure("pop", "pop the newest of 1,000 items", TIME, repeats, opening, BASELINES)


def clear(workspace: Workspace, repeats: int) -> Measure:
    """Empty a session. It is filled again outside the clock."""
    items = make_items(100)

    def make_sampler(session: Session) -> Sampler:
        async def sample() -> Sample:
            await session.add_items(items)
            return {"time": await timed(session.clear_session)}

        return sample

    opening = _on_session(workspace, 0, WRITERS, make_sampler)
    return Measure("clear", "clear a session of 100 items", TIME, repeats, opening, BASELINES)


def _on_session(
    workspace: Workspace, size: int, contenders: tuple[str, ...], make_sampler: MakeSampler
) -> OpenMeasure:
    """Samplers that each work on one open session with a history of that size, in a file of its own."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers = {}
            for name in contenders:
                database = await stack.enter_async_context(opened(name, workspace.copy_of({SESSION: size})))
                session = await stack.enter_async_context(live_session(database, SESSION))
                check_read(name, await session.get_items(), size)
                samplers[name] = make_sampler(session)
            yield samplers

    return open_all


def short(size: int) -> str:
    """A size as in `10k`."""
    return f"{size // 1000}k" if size >= 1000 and size % 1000 == 0 else str(size)
