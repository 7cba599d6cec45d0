"""Single calls: the request cycle, adding, reading, popping."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler, timed
from ..sessions.calls import short
from ..sessions.contenders import Session, check_read
from ..sessions.histories import SESSION, make_items, make_turn
from .contenders import BASELINES, CONTENDERS, OURS_GIVEN, SDK_BY_URL, Database, live_session
from .databases import Databases

MakeSampler: TypeAlias = Callable[[Session], Sampler]

TIME = (Metric("time"),)
_CYCLE_HISTORY = 1000
_NEWEST = 50
_TURN = make_turn(1)


def request_cycle(databases: Databases, repeats: int) -> Measure:
    """Make a session, read, add, close: all that a request does."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(databases.server())
            samplers: dict[str, Sampler] = {}
            for name in (*CONTENDERS, OURS_GIVEN, SDK_BY_URL):
                histories = {SESSION: _CYCLE_HISTORY, "another": 1}
                database = await stack.enter_async_context(databases.filled(name, server, histories))
                await stack.enter_async_context(live_session(database, "another"))
                samplers[name] = _sampler(partial(_cycle, database))
            yield samplers

    what = f"make a session of {_CYCLE_HISTORY:,} items, read the newest {_NEWEST}, add 5, close"
    return Measure("cycle", f"{what}; another session is open", TIME, repeats, open_all, BASELINES)


async def _cycle(database: Database) -> None:
    session = database.session(SESSION)
    await session.get_items(_NEWEST)
    await session.add_items(_TURN)
    await database.close_session(session)


def _sampler(operation: Callable[[], object], burst: int = 1) -> Sampler:
    """A sampler for calls of one operation, reads some in a row."""

    async def sample() -> Sample:
        return {"time": await timed(operation, burst)}  # type: ignore[arg-type]

    return sample


def add(databases: Databases, number: int, repeats: int) -> Measure:
    """Append a batch to a session that is open."""
    items = make_items(number)

    def make_sampler(session: Session) -> Sampler:
        return _sampler(lambda: session.add_items(items))

    what = f"add {number:,} item{'s' if number > 1 else ''}"
    opening = _on_session(databases, 1000, CONTENDERS, make_sampler)
    return Measure(f"add-{number}", what, TIME, repeats, opening, BASELINES)


def read_all(databases: Databases, size: int, repeats: int) -> Measure:
    """Read a whole history."""

    def make_sampler(session: Session) -> Sampler:
        return _sampler(session.get_items, max(1, 1000 // size))

    opening = _on_session(databases, size, CONTENDERS, make_sampler)
    what = f"read all of {size:,} items"
    return Measure(f"read-{short(size)}", what, TIME, repeats, opening, BASELINES, collect=size >= 10_000)


def read_newest(databases: Databases, size: int, repeats: int) -> Measure:
    """Read the end of a history."""

    def make_sampler(session: Session) -> Sampler:
        return _sampler(lambda: session.get_items(_NEWEST), 5)

    opening = _on_session(databases, size, CONTENDERS, make_sampler)
    what = f"read the newest {_NEWEST} of {size:,} items"
    return Measure(f"newest-{_NEWEST}-of-{short(size)}", what, TIME, repeats, opening, BASELINES)


def pop(databases: Databases, repeats: int) -> Measure:
    """Take the newest item off. What was taken is put back outside the clock."""

    def make_sampler(session: Session) -> Sampler:
        async def sample() -> Sample:
            await session.add_items(_TURN[:1])
            return {"time": await timed(session.pop_item)}

        return sample

    opening = _on_session(databases, 1000, CONTENDERS, make_sampler)
    return Measure("pop", "pop the newest of 1,000 items", TIME, repeats, opening, BASELINES)


def _on_session(
    databases: Databases, size: int, contenders: Sequence[str], make_sampler: MakeSampler
) -> OpenMeasure:
    """Samplers that each work on one open session with a history of that size."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(databases.server())
            samplers: dict[str, Sampler] = {}
            for name in contenders:
                filling = databases.filled(name, server, {SESSION: size})
                database = await stack.enter_async_context(filling)
                session = await stack.enter_async_context(live_session(database, SESSION))
                check_read(name, await session.get_items(), size)
                samplers[name] = make_sampler(session)
            yield samplers

    return open_all
