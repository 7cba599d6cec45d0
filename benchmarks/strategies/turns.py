"""The cost of a turn, and of a view alone, by the length of the history."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

from ..harness import Measure, Metric, OpenMeasure, Sample, Sampler, timed
from ..sessions.histories import Workspace
from ..shared.items import SESSION, make_turn
from ..shared.stores import short
from .contenders import COMPACT, CONTENDERS, PLAIN, SUMMARIZE, TRIM, TRIM_BY_TOKENS

Operation: TypeAlias = Callable[[Any], Any]

TIME = (Metric("time"),)
SHOWN = "read what trim shows"
SHOWN_AFTER = "read it by position"
_SAID = [make_turn(1)[0], make_turn(1)[-1]]
_LARGE = 10_000
SHORT = (TRIM, TRIM_BY_TOKENS, SUMMARIZE)


def turn(workspace: Workspace, size: int, repeats: int) -> Measure:
    """See what the model is to see, and add a question and an answer."""

    async def take_turn(session: Any) -> None:
        await session.get_items()
        await session.add_items(_SAID)

    what = f"a turn in a history of {size:,} items: get_items(), and add 2 items"
    opening = _open(workspace, size, dict(CONTENDERS), take_turn)
    return Measure(f"turn-{short(size)}", what, TIME, repeats, opening, (PLAIN,), collect=size >= _LARGE)


def view(workspace: Workspace, size: int, repeats: int) -> Measure:
    """See what the model is to see, where that is the end of the history: against reading as many items."""
    what = f"a view of {size:,} items: get_items() alone"
    contenders = {name: CONTENDERS[name] for name in (PLAIN, *SHORT)}
    opening = _open(workspace, size, contenders, _view, burst=10)
    return Measure(f"view-{short(size)}", what, TIME, repeats, opening, (SHOWN, SHOWN_AFTER))


def compact(workspace: Workspace, size: int, repeats: int) -> Measure:
    """See what the model is to see, where that is all, compacted: against reading all."""
    what = f"a compacted view of {size:,} items: get_items() alone"
    contenders = {name: CONTENDERS[name] for name in (PLAIN, COMPACT)}
    opening = _open(workspace, size, contenders, _view, burst=max(1, 1000 // size))
    large = size >= _LARGE
    return Measure(f"compact-{short(size)}", what, TIME, repeats, opening, (PLAIN,), collect=large)


async def _view(session: Any) -> None:
    await session.get_items()


def new_handle(workspace: Workspace, size: int, repeats: int) -> Measure:
    """As a request does it: make a session, see what the model is to see, add, close."""
    names = (TRIM, SUMMARIZE)

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers = {}
            for name in names:
                path = workspace.copy_of({SESSION: size})
                held = CONTENDERS[name](path)
                stack.push_async_callback(held.aclose)
                await held.get_items()
                samplers[name] = _sampler(lambda name=name, path=path: _request(name, path))
            yield samplers

    what = (
        f"a new handle on a history of {size:,} items that was cut before: make it, view, add 2 items, close"
    )
    return Measure(f"request-{short(size)}", what, TIME, repeats, open_all, (TRIM,))


async def _request(name: str, path: Any) -> None:
    session = CONTENDERS[name](path)
    await session.get_items()
    await session.add_items(_SAID)
    await session.aclose()


def _open(
    workspace: Workspace,
    size: int,
    contenders: Mapping[str, Callable[[Any], Any]],
    operation: Operation,
    burst: int = 1,
) -> OpenMeasure:
    """Samplers on histories of that size, which have been looked at once."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            sessions: dict[str, Any] = {}
            for name, make in contenders.items():
                sessions[name] = make(workspace.copy_of({SESSION: size}))
                stack.push_async_callback(sessions[name].aclose)
                await sessions[name].get_items()
            samplers = {name: _sampler(lambda s=each: operation(s), burst) for name, each in sessions.items()}
            if operation is _view and TRIM in sessions:  # beside short views, as many items read plainly
                del samplers[PLAIN]
                samplers |= await _plain_reads(sessions[PLAIN], len(await sessions[TRIM].get_items()), burst)
            yield samplers

    return open_all


async def _plain_reads(session: Any, count: int, burst: int) -> dict[str, Sampler]:
    """The same items without a strategy: as the newest so many, and as those after a position."""
    position = (await session.read_before(None, count))[0].position - 1
    return {
        SHOWN: _sampler(lambda: session.get_items(count), burst),
        SHOWN_AFTER: _sampler(lambda: session.read_after(position), burst),
    }


def _sampler(operation: Callable[[], Any], burst: int = 1) -> Sampler:
    """A sampler for calls of one operation. Short reads come in bursts: single ones are too short."""

    async def sample() -> Sample:
        return {"time": await timed(operation, burst)}

    return sample
