"""Strategies over sessions on servers: the same views, at the same cost, from several handles at once."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from recollect import RedisSession, SQLAlchemySession
from recollect.strategies.session import StrategySession
from recollect.strategies.summarizers import SummaryRequest
from recollect.strategies.values import Compact, Strategy, Summarize, Trim
from recollect.strategies.views import view_of
from recollect.testing.contract import in_event_loop

from .sessions import CountingSession, turn, turns

Open = Callable[[], Any]


@pytest.fixture(params=["postgres", "redis"])
def open_inner(request: pytest.FixtureRequest) -> Open:
    """Opens handles of one session."""
    session_id = uuid.uuid4().hex
    if request.param == "redis":
        redis_url = request.getfixturevalue("redis_url")
        return lambda: RedisSession.from_url(session_id, url=redis_url)
    postgres_url = request.getfixturevalue("postgres_url")
    return lambda: SQLAlchemySession.from_url(session_id, url=postgres_url, create_tables=True)


class Scribe:
    """A summarizer that counts the turns and its calls."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, request: SummaryRequest) -> str:
        self.asked += 1
        await asyncio.sleep(0.02)
        before = int(request.previous or 0)
        return str(before + sum(item.get("role") == "user" for item in request.items))


STRATEGIES = [Trim(4, 2), Trim(token_budget=300), Summarize(4, 2), Compact(4, 2)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
@in_event_loop
async def test_several_handles_show_the_same(open_inner: Open, strategy: Strategy) -> None:
    scribe = Scribe()
    handles = [StrategySession(open_inner(), strategy, summarizer=scribe) for _ in range(3)]
    for number in range(1, 15):
        await handles[number % 3].add_items(turn(number))
        log = turns(1, number)
        shown = view_of(log, strategy)
        covered = (len(log) - len(shown)) // 4
        expected = view_of(log, strategy, summary=str(covered))
        views = await asyncio.gather(*(handle.get_items() for handle in handles))
        assert views == [expected] * 3
    assert scribe.asked == (4 if isinstance(strategy, Summarize) else 0)
    assert await handles[0].get_items(1000) == turns(1, 14)
    await handles[0].clear_session()
    assert await handles[1].get_items() == []
    for handle in handles:
        await handle.aclose()


@pytest.mark.parametrize("strategy", [Trim(4, 2), Summarize(4, 2)], ids=str)
@in_event_loop
async def test_a_new_handle_reads_what_it_shows(open_inner: Open, strategy: Strategy) -> None:
    first = StrategySession(open_inner(), strategy, summarizer=Scribe())
    await first.add_items([{"role": "system", "content": "Be brief."}, *turns(1, 300)])
    shown = await first.get_items()
    counting = CountingSession(open_inner())
    again = StrategySession(counting, strategy, summarizer=Scribe())
    assert await again.get_items() == shown
    assert counting.items_read <= len(shown) + 1
    await again.clear_session()
    await again.aclose()
    await first.aclose()


@in_event_loop
async def test_an_undo_past_the_cut(open_inner: Open) -> None:
    session = StrategySession(open_inner(), Trim(4, 2))
    await session.add_items(turns(1, 12))
    await session.get_items()
    for _ in range(10 * 4):
        await session.pop_item()
    assert await session.get_items() == turns(1, 2)
    await session.add_items(turns(20, 30))
    assert await session.get_items() == view_of([*turns(1, 2), *turns(20, 30)], Trim(4, 2))
    assert await session.checkpoint()
    assert await session.get_items(1000) == view_of([*turns(1, 2), *turns(20, 30)], Trim(4, 2))
    await session.clear_session()
    await session.aclose()
