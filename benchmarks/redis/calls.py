"""Single calls: the request cycle, adding, reading, popping."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TypeAlias

from recollect.testing.servers.redis import RedisServer

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler, timed
from ..sessions.calls import short
from ..sessions.contenders import Session, check_read
from ..sessions.histories import SESSION, make_items, make_turn
from .contenders import BASELINES, CONTENDERS, Contender, Operation, fill, live_session, used

MakeSampler: TypeAlias = Callable[[Session], Sampler]

TIME = (Metric("time"),)
_CYCLE_HISTORY = 1000
_NEWEST = 50
_TURN = make_turn(1)


def request_cycles(repeats: int) -> list[Measure]:
    """Make a session, read, add, close: all that a request does."""
    what = f"make a session of {_CYCLE_HISTORY:,} items, read the newest {_NEWEST}, add 5, close"
    alone, held = _cycles(hold=False), _cycles(hold=True)
    return [
        Measure("cycle-alone", f"{what}; one after the other", TIME, repeats, alone, BASELINES),
        Measure("cycle-held", f"{what}; another session is open", TIME, repeats, held, BASELINES),
    ]


def _cycles(hold: bool) -> OpenMeasure:
    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers: dict[str, Sampler] = {}
            for name in CONTENDERS:
                url = stack.enter_context(RedisServer()).url
                await fill(url, SESSION, make_items(_CYCLE_HISTORY))
                server = await stack.enter_async_context(used(name, url))
                if hold:
                    await stack.enter_async_context(live_session(server, "another"))
                samplers[name] = _sampler(partial(_cycle, server))
            yield samplers

    return open_all


async def _cycle(server: Contender) -> None:
    session = server.session(SESSION)
    await session.get_items(_NEWEST)
    await session.add_items(_TURN)
    await server.close_session(session)


def _sampler(operation: Operation, burst: int = 1) -> Sampler:
    """A sampler for calls of one operation, some in a row where one is too short for the clock."""

    async def sample() -> Sample:
        return {"time": await timed(operation, burst)}

    return sample


def add(number: int, repeats: int) -> Measure:
    """Append a batch to a session that is open."""
    items = make_items(number)

    def make_sampler(session: Session) -> Sampler:
        return _sampler(lambda: session.add_items(items), 5)

    what = f"add {number:,} item{'s' if number > 1 else ''}"
    return Measure(f"add-{number}", what, TIME, repeats, _on_session(1000, make_sampler), BASELINES)


def read_all(size: int, repeats: int) -> Measure:
    """Read a whole history."""

    def make_sampler(session: Session) -> Sampler:
        return _sampler(session.get_items)

    what = f"read all of {size:,} items"
    opening = _on_session(size, make_sampler)
    return Measure(f"read-{short(size)}", what, TIME, repeats, opening, BASELINES, collect=size >= 10_000)


def read_newest(size: int, repeats: int) -> Measure:
    """Read the end of a history."""

    def make_sampler(session: Session) -> Sampler:
        return _sampler(lambda: session.get_items(_NEWEST), 5)

    what = f"read the newest {_NEWEST} of {size:,} items"
    opening = _on_session(size, make_sampler)
    return Measure(f"newest-{_NEWEST}-of-{short(size)}", what, TIME, repeats, opening, BASELINES)


def pop(repeats: int) -> Measure:
    """Take the newest item off. What was taken is put back outside the clock."""

    def make_sampler(session: Session) -> Sampler:
        async def sample() -> Sample:
            await session.add_items(_TURN)
            return {"time": await timed(session.pop_item, len(_TURN))}

        return sample

    opening = _on_session(1000, make_sampler)
    return Measure("pop", "pop the newest of 1,000 items", TIME, repeats, opening, BASELINES)


def _on_session(size: int, make_sampler: MakeSampler) -> OpenMeasure:
    """Samplers that each work on one open session with a history of that size, on a server of its own."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers: dict[str, Sampler] = {}
            for name in CONTENDERS:
                url = stack.enter_context(RedisServer()).url
                await fill(url, SESSION, make_items(size))
                server = await stack.enter_async_context(used(name, url))
                session = await stack.enter_async_context(live_session(server, SESSION))
                check_read(name, await session.get_items(), size)
                samplers[name] = make_sampler(session)
            yield samplers

    return open_all
