"""The SDK's own Runner with a scripted model: what a session adds to a whole turn of an application."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import perf_counter
from typing import Any

from ..harness import Measure, Metric, Overhead, Sample, Sampler
from ..shared.items import SESSION, make_items
from ..shared.stores import live_session, short
from .contenders import OURS, SDK, SDK_ASYNC, opened
from .histories import Workspace

PLAIN = "plain list"
_ITEMS_PER_RUN = 2


class PlainListSession:
    """The least a session can be: the floor for what the Runner takes by itself."""

    session_settings = None

    def __init__(self, items: list[Any]) -> None:
        self.session_id = SESSION
        self._items = items

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, or the newest."""
        return self._items[:] if limit is None else self._items[-limit:]

    async def add_items(self, items: list[Any]) -> None:
        """Append."""
        self._items += items

    async def pop_item(self) -> Any:
        """Remove the newest."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Remove all."""
        self._items.clear()


def runner(workspace: Workspace, size: int, repeats: int) -> Measure:
    """A run of one turn on a history of that size."""

    @asynccontextmanager
    async def open_all() -> AsyncIterator[Mapping[str, Sampler]]:
        async with AsyncExitStack() as stack:
            samplers: dict[str, Sampler] = {PLAIN: partial(_run, PlainListSession(make_items(size)), size)}
            for name in (OURS, SDK, SDK_ASYNC):
                database = await stack.enter_async_context(opened(name, workspace.copy_of({SESSION: size})))
                session = await stack.enter_async_context(live_session(database, SESSION))
                samplers[name] = partial(_run, session, size)
            yield samplers

    metrics = (Metric("run"), Overhead("overhead", of="run", over=PLAIN))
    what = f"Runner.run with a scripted model on {size:,} items, and how much of it is above a plain list"
    return Measure(f"runner-{short(size)}", what, metrics, repeats, open_all, (PLAIN, SDK), collect=True)


async def _run(session: Any, size: int) -> Sample:
    """One run. What it stored is taken off again outside the clock, so that each has the same history."""
    from agents import Agent, Runner, set_tracing_disabled
    from agents.testing import ScriptedModel, assistant_message

    set_tracing_disabled(True)
    model = ScriptedModel([[assistant_message("It arrives on Wednesday.", item_id="msg_run")]])
    agent = Agent(name="assistant", instructions="Answer briefly.", model=model)
    started = perf_counter()
    await Runner.run(agent, "When does it arrive?", session=session)
    seconds = perf_counter() - started
    for _ in range(_ITEMS_PER_RUN):
        await session.pop_item()
    last = (await session.get_items(1))[0]
    if last != make_items(size)[-1]:
        raise AssertionError(f"a run stored more than {_ITEMS_PER_RUN} items: {last}")
    return {"run": seconds}
