"""Single calls: the request cycle, adding, reading, popping, clearing."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler, timed
from .items import SESSION, make_items, make_turn
from .stores import Session, Setting, Store, check_read, live_session, short

MakeSampler: TypeAlias = Callable[[Session], Sampler]

TIME = (Metric("time"),)
_HISTORY = 1000
_NEWEST = 50
_LARGE = 10_000
_TURN = make_turn(1)
_ANOTHER = "another"


@dataclass(frozen=True)
class Calls:
    """The calls of one suite: where, by whom, and how many in a row make a sample.

    Writes to a disk are taken one at a time: its speed changes from one moment to the next, and the
    contenders must meet it in turns. Short reads are taken in a row: single ones are too short for the clock.
    """

    setting: Setting
    baselines: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    adds: int = 1
    newest: int = 5
    pops: int = 1

    def cycle(
        self, name: str, when: str, repeats: int, contenders: tuple[str, ...], hold: bool, pause: float = 0.0
    ) -> Measure:
        """Make a session, read, add, close: all that a request does; another is held open, or not."""
        what = f"make a session of {_HISTORY:,} items, read the newest {_NEWEST}, add 5, close; {when}"
        opening = self._on_store(contenders, hold)
        return Measure(name, what, TIME, repeats, opening, self.baselines, pause=pause)

    def add(self, number: int, repeats: int) -> Measure:
        """Append a batch to a session that is open."""
        items = make_items(number)

        def make_sampler(session: Session) -> Sampler:
            return _sampler(lambda: session.add_items(items), self.adds)

        what = f"add {number:,} item{'s' if number > 1 else ''}"
        opening = self._on_session(_HISTORY, self.writers, make_sampler)
        return Measure(f"add-{number}", what, TIME, repeats, opening, self.baselines)

    def read_all(self, size: int, repeats: int) -> Measure:
        """Read a whole history."""

        def make_sampler(session: Session) -> Sampler:
            return _sampler(session.get_items, max(1, 1000 // size))

        what = f"read all of {size:,} items"
        opening = self._on_session(size, self.readers, make_sampler)
        collect = size >= _LARGE
        return Measure(f"read-{short(size)}", what, TIME, repeats, opening, self.baselines, collect=collect)

    def read_newest(self, size: int, repeats: int) -> Measure:
        """Read the end of a history."""

        def make_sampler(session: Session) -> Sampler:
            return _sampler(lambda: session.get_items(_NEWEST), self.newest)

        what = f"read the newest {_NEWEST} of {size:,} items"
        opening = self._on_session(size, self.readers, make_sampler)
        return Measure(f"newest-{_NEWEST}-of-{short(size)}", what, TIME, repeats, opening, self.baselines)

    def pop(self, repeats: int) -> Measure:
        """Take the newest item off. What will be taken is added outside the clock."""

        def make_sampler(session: Session) -> Sampler:
            async def sample() -> Sample:
                await session.add_items(_TURN[: self.pops])
                return {"time": await timed(session.pop_item, self.pops)}

            return sample

        opening = self._on_session(_HISTORY, self.writers, make_sampler)
        return Measure("pop", "pop the newest of 1,000 items", TIME, repeats, opening, self.baselines)

    def clear(self, repeats: int) -> Measure:
        """Empty a session. It is filled again outside the clock."""
        items = make_items(100)

        def make_sampler(session: Session) -> Sampler:
            async def sample() -> Sample:
                await session.add_items(items)
                return {"time": await timed(session.clear_session)}

            return sample

        opening = self._on_session(0, self.writers, make_sampler)
        return Measure("clear", "clear a session of 100 items", TIME, repeats, opening, self.baselines)

    def _on_store(self, contenders: tuple[str, ...], hold: bool) -> OpenMeasure:
        """Samplers of whole cycles, each on a store of its own."""

        @asynccontextmanager
        async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
            async with AsyncExitStack() as stack:
                open_store = await stack.enter_async_context(self.setting())
                samplers: dict[str, Sampler] = {}
                for name in contenders:
                    opening = open_store(name, {SESSION: _HISTORY, _ANOTHER: 1})
                    store = await stack.enter_async_context(opening)
                    if hold:
                        await stack.enter_async_context(live_session(store, _ANOTHER))
                    samplers[name] = _sampler(partial(_cycle, store))
                yield samplers

        return open_all

    def _on_session(self, size: int, contenders: tuple[str, ...], make_sampler: MakeSampler) -> OpenMeasure:
        """Samplers that each work on one open session with a history of that size, in a store of its own."""

        @asynccontextmanager
        async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
            async with AsyncExitStack() as stack:
                open_store = await stack.enter_async_context(self.setting())
                samplers: dict[str, Sampler] = {}
                for name in contenders:
                    store = await stack.enter_async_context(open_store(name, {SESSION: size}))
                    session = await stack.enter_async_context(live_session(store, SESSION))
                    check_read(name, await session.get_items(), size)
                    samplers[name] = make_sampler(session)
                yield samplers

        return open_all


async def _cycle(store: Store) -> None:
    session = store.session(SESSION)
    await session.get_items(_NEWEST)
    await session.add_items(_TURN)
    await store.close_session(session)


def _sampler(operation: Callable[[], Awaitable[object]], calls: int = 1) -> Sampler:
    """A sampler for so many calls of one operation in a row."""

    async def sample() -> Sample:
        return {"time": await timed(operation, calls)}

    return sample
