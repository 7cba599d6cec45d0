"""Summaries: made once for a range of turns, then extended, without failing a run."""

import asyncio
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from recollect import InMemorySession, Note, SQLiteSession, estimate_tokens
from recollect.items import estimate_text_tokens
from recollect.strategies.anchors import Anchor, Claim, note_key
from recollect.strategies.events import StrategyEvent
from recollect.strategies.session import StrategySession
from recollect.strategies.summarizers import Summary, SummaryRequest
from recollect.strategies.summary_maker import shorten
from recollect.strategies.values import Summarize, Trim
from recollect.testing.contract import in_event_loop

from .sessions import PlainSession, turn, turns

Item = dict[str, Any]

STRATEGY = Summarize(4, 2, summary_prefix="Before this:", summary_max_tokens=50)


class Scribe:
    """A summarizer that names its turns and records its requests."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.requests: list[SummaryRequest] = []
        self.was_asked = asyncio.Event()
        self._seconds = seconds

    async def __call__(self, request: SummaryRequest) -> Summary:
        self.requests.append(request)
        self.was_asked.set()
        await asyncio.sleep(self._seconds)
        asked = [item["content"].split()[1] for item in request.items if item.get("role") == "user"]
        return Summary(" ".join([*([request.previous] if request.previous else []), *asked]), model="scribe")


def told(shown: list[Item]) -> str | None:
    """The summary in a view."""
    if shown[:1] != [{"role": "user", "content": "Before this:"}]:
        return None
    text: str = shown[1]["content"]
    return text


# --- made once, and extended ---


@in_event_loop
async def test_a_summary_is_extended_and_not_made_again() -> None:
    scribe = Scribe()
    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=scribe)
    for number in range(1, 13):
        await session.add_items(turn(number))
        await session.get_items()
        await session.get_items()
    assert [request.previous for request in scribe.requests] == [None, "1 2 3", "1 2 3 4 5 6"]
    assert [request.items for request in scribe.requests] == [turns(1, 3), turns(4, 6), turns(7, 9)]
    assert {(request.session_id, request.max_tokens) for request in scribe.requests} == {("s", 50)}
    assert told(await session.get_items()) == "1 2 3 4 5 6 7 8 9"


@in_event_loop
async def test_it_is_made_while_the_turn_goes_on(tmp_path: Path) -> None:
    """As soon as the message is added that makes it necessary, before the next read."""
    scribe = Scribe()
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe)
    await session.add_items(turns(1, 4))
    await session.get_items()
    await session.add_items(turn(5)[:1])
    await scribe.was_asked.wait()
    await session.add_items(turn(5)[1:])
    assert await session.get_items() == [
        {"role": "user", "content": "Before this:"},
        {"role": "assistant", "content": "1 2 3"},
        *turns(4, 5),
    ]
    assert len(scribe.requests) == 1
    await session.aclose()


@in_event_loop
async def test_a_budget_makes_it_necessary_too() -> None:
    scribe = Scribe()
    session = StrategySession(
        InMemorySession("s"), Summarize(token_budget=300, keep_last_user_turns=1), summarizer=scribe
    )
    await session.get_items()
    for number in range(1, 20):
        await session.add_items(turn(number))
    await scribe.was_asked.wait()
    await session.aclose()


@pytest.mark.parametrize("kind", ["in memory", "sqlite", "with the contract alone"])
@in_event_loop
async def test_concurrent_readers_make_one(tmp_path: Path, kind: str) -> None:
    inner: Any = {
        "in memory": lambda: InMemorySession("s"),
        "sqlite": lambda: SQLiteSession("s", tmp_path / "s.db"),
        "with the contract alone": lambda: PlainSession("s"),
    }[kind]()
    await inner.add_items(turns(1, 5))
    scribe = Scribe(0.05)
    session = StrategySession(inner, STRATEGY, summarizer=scribe)
    views = await asyncio.gather(*(session.get_items() for _ in range(8)))
    assert [told(shown) for shown in views] == ["1 2 3"] * 8
    assert len(scribe.requests) == 1


@in_event_loop
async def test_concurrent_handles_make_one(tmp_path: Path) -> None:
    scribe = Scribe(0.05)
    handles = [
        StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe) for _ in range(6)
    ]
    await handles[0].add_items(turns(1, 5))
    views = await asyncio.gather(*(handle.get_items() for handle in handles))
    assert [told(shown) for shown in views] == ["1 2 3"] * 6
    assert len(scribe.requests) == 1
    for handle in handles:
        await handle.aclose()


def test_threads_make_one(tmp_path: Path) -> None:
    scribe = Scribe(0.05)
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe)
    asyncio.run(session.add_items(turns(1, 5)))
    views: list[list[Item]] = []
    threads = [
        threading.Thread(target=lambda: views.append(asyncio.run(session.get_items()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [told(shown) for shown in views] == ["1 2 3"] * 4
    assert len(scribe.requests) == 1
    asyncio.run(session.aclose())


def test_processes_make_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    asyncio.run(SQLiteSession("s", path).add_items(turns(1, 5)))
    worker = Path(__file__).with_name("summary_worker.py")
    calls = tmp_path / "calls"
    workers = [
        subprocess.Popen([sys.executable, worker, path, calls], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    found = [worker.communicate(timeout=60)[0].strip() for worker in workers]
    assert len(set(found)) == 1
    assert found[0].startswith("summary by ")
    assert len(calls.read_text().split()) == 1


# --- failures ---


async def raise_error(_request: SummaryRequest) -> str:
    raise RuntimeError("a secret")


async def hang(_request: SummaryRequest) -> str:
    await asyncio.sleep(3600)
    return "never"


async def be_cancelled(_request: SummaryRequest) -> str:
    raise asyncio.CancelledError


async def await_what_is_cancelled(_request: SummaryRequest) -> str:
    task = asyncio.ensure_future(asyncio.sleep(3600, "never"))
    task.cancel()
    return await task


async def return_nothing(_request: SummaryRequest) -> str:
    return "  \n"


async def return_none(_request: SummaryRequest) -> Any:
    return None


async def return_a_number(_request: SummaryRequest) -> Any:
    return 7


def fail_at_once(_request: SummaryRequest) -> Any:
    raise ValueError("a secret")


FAILING: list[Callable[[SummaryRequest], Awaitable[Any]]] = [
    raise_error,
    hang,
    be_cancelled,
    await_what_is_cancelled,
    return_nothing,
    return_none,
    return_a_number,
    fail_at_once,
]


@pytest.mark.parametrize("failing", FAILING, ids=lambda failing: failing.__name__)
@in_event_loop
async def test_a_summarizer_that_fails_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failing: Any
) -> None:
    inner = SQLiteSession("s", tmp_path / "s.db")
    session = StrategySession(inner, STRATEGY, summarizer=failing, summary_timeout=0.1)
    await session.add_items(turns(1, 5))
    with caplog.at_level(logging.WARNING, logger="recollect"):
        assert await session.get_items() == turns(4, 5), "as if it were trimmed"
    assert session.summary_failures == 1
    assert "no summary was made" in caplog.text
    assert "a secret" not in caplog.text
    assert "question" not in caplog.text
    assert await inner.get_items() == turns(1, 5)
    await session.aclose()


@in_event_loop
async def test_the_next_turn_tries_again_with_all_that_is_missing() -> None:
    scribe = Scribe()
    weather = iter([False, False, True])

    async def moody(request: SummaryRequest) -> Summary:
        if not next(weather):
            raise ConnectionError
        return await scribe(request)

    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=moody)
    await session.add_items(turns(1, 5))
    assert await session.get_items() == turns(4, 5)
    await session.add_items(turn(6))
    assert await session.get_items() == turns(4, 6)
    await session.add_items(turns(7, 8))
    shown = await session.get_items()
    assert (told(shown), shown[2:]) == ("1 2 3 4 5 6", turns(7, 8))
    assert session.summary_failures == 2
    assert [request.items for request in scribe.requests] == [turns(1, 6)]


@in_event_loop
async def test_an_older_summary_is_shown_while_there_is_no_newer_one() -> None:
    scribe = Scribe()
    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=scribe)
    await session.add_items(turns(1, 5))
    await session.get_items()
    scribe.requests = []
    broken = StrategySession(session.wrapped, STRATEGY, summarizer=raise_error)
    await broken.add_items(turns(6, 8))
    shown = await broken.get_items()
    assert (told(shown), shown[2:]) == ("1 2 3", turns(7, 8))
    shown = await session.get_items()
    assert (told(shown), shown[2:]) == ("1 2 3 4 5 6", turns(7, 8))


@in_event_loop
async def test_nobody_waits_twice_for_one_that_hangs() -> None:
    asked = 0

    async def count_and_hang(request: SummaryRequest) -> str:
        nonlocal asked
        asked += 1
        return await hang(request)

    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=count_and_hang, summary_timeout=1)
    await session.add_items(turns(1, 5))
    for _ in range(6):
        assert await session.get_items() == turns(4, 5)
    await asyncio.sleep(0)
    assert asked == 2, "the first was waited for to its end, the second goes on, and nobody waits"
    await session.clear_session()


@in_event_loop
async def test_one_that_comes_late_is_used_later() -> None:
    may_go_on = asyncio.Event()

    async def stubborn(_request: SummaryRequest) -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await may_go_on.wait()
        return "too late"

    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=stubborn, summary_timeout=0.5)
    await session.add_items(turns(1, 5))
    assert await session.get_items() == turns(4, 5)
    may_go_on.set()
    await session.add_items(turn(6))
    shown = await session.get_items()
    assert (told(shown), shown[2:]) == ("too late", turns(4, 6))


@in_event_loop
async def test_ten_megabytes_are_held_within_the_limit() -> None:
    async def flood(_request: SummaryRequest) -> str:
        return "all work and no play " * 500_000

    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=flood)
    await session.add_items(turns(1, 5))
    text = told(await session.get_items())
    assert text is not None
    assert text.startswith("all work and no play")
    assert estimate_text_tokens(text) <= 50


LONG_AND_SHORT = ["short", "多" * 300, "word " * 300, "x" * 5000, "a\0b \ud83d c", "  trimmed  "]


@pytest.mark.parametrize("text", LONG_AND_SHORT)
@pytest.mark.parametrize("limit", [1, 7, 50])
def test_a_text_is_shortened_to_the_limit(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert estimate_text_tokens(short) <= limit
    assert short
    assert "\0" not in short
    short.encode()
    if estimate_text_tokens(text) <= limit:
        assert short == text.strip().replace("\0", "").replace("\ud83d", "?")
    assert len(shorten(text, limit, tokenizer=len)) <= limit


@in_event_loop
async def test_a_summarizer_may_be_an_ordinary_function() -> None:
    plainly: Any = lambda request: f"{len(request.items)} items"  # noqa: E731
    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=plainly)
    await session.add_items(turns(1, 5))
    assert told(await session.get_items()) == "12 items"


@in_event_loop
async def test_without_a_summarizer_there_is_one_that_needs_no_model() -> None:
    session = StrategySession(InMemorySession("s"), STRATEGY)
    await session.add_items(turns(1, 5))
    text = told(await session.get_items())
    assert text
    assert estimate_tokens({"role": "assistant", "content": text}) <= 60


# --- changes that invalidate it, and concurrent makers ---


@in_event_loop
async def test_an_undo_of_what_it_covers_makes_it_void(tmp_path: Path) -> None:
    scribe = Scribe()
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe)
    await session.add_items(turns(1, 5))
    assert told(await session.get_items()) == "1 2 3"
    for _ in range(3 * 4):
        await session.pop_item()
    await session.add_items(turns(13, 15))
    assert told(await session.get_items()) == "1 2 13"
    assert [request.previous for request in scribe.requests] == [None, None]


@in_event_loop
async def test_turns_that_changed_before_they_were_summarized(tmp_path: Path) -> None:
    """The items before the cut are gone: the cut is computed again from the remaining ones."""
    inner, scribe = SQLiteSession("s", tmp_path / "s.db"), Scribe()
    failing = StrategySession(inner, STRATEGY, summarizer=raise_error)
    await failing.add_items(turns(1, 5))
    await failing.get_items()
    await inner.revise_items(lambda items: [None if n < 4 else item for n, item in enumerate(items)])
    session = StrategySession(inner, STRATEGY, summarizer=scribe)
    assert await session.get_items() == turns(2, 5), "four turns are not too many"
    await session.add_items(turn(6))
    assert told(await session.get_items()) == "2 3 4"
    assert scribe.requests[-1].items == turns(2, 4)


async def anchor_of(session: Any, strategy: Summarize) -> tuple[str, Note, Anchor]:
    key = note_key(strategy, None)
    note = await session.get_note(key)
    anchor = Anchor.from_note(note.data)
    assert anchor is not None
    return key, note, anchor


@in_event_loop
async def test_who_was_about_to_make_it_and_died_is_not_waited_for_long() -> None:
    inner, scribe = InMemorySession("s"), Scribe()
    failing = StrategySession(inner, STRATEGY, summarizer=raise_error)
    await failing.add_items(turns(1, 5))
    await failing.get_items()
    key, note, anchor = await anchor_of(inner, STRATEGY)
    assert anchor.claim is None, "who failed has given up its claim"
    dead = replace(anchor, claim=Claim("another process", time.time() + 0.3))
    assert await inner.set_note(key, dead.to_note(), note.version)
    session = StrategySession(inner, STRATEGY, summarizer=scribe)
    assert told(await session.get_items()) == "1 2 3"
    assert time.time() >= dead.claim.until if dead.claim else False


@in_event_loop
async def test_a_claim_that_lasts_longer_is_not_waited_for_to_the_end() -> None:
    inner = InMemorySession("s")
    await StrategySession(inner, STRATEGY, summarizer=raise_error).add_items(turns(1, 5))
    await StrategySession(inner, STRATEGY, summarizer=raise_error).get_items()
    key, note, anchor = await anchor_of(inner, STRATEGY)
    alive = replace(anchor, claim=Claim("another process", time.time() + 3600))
    await inner.set_note(key, alive.to_note(), note.version)
    scribe = Scribe()
    session = StrategySession(inner, STRATEGY, summarizer=scribe, summary_timeout=0.1)
    assert await session.get_items() == turns(4, 5)
    assert scribe.requests == []


@in_event_loop
async def test_a_note_of_another_kind_is_made_again() -> None:
    inner, scribe = InMemorySession("s"), Scribe()
    await inner.set_note(note_key(STRATEGY, None), {"format": 99, "cut": "?"}, 0)
    session = StrategySession(inner, STRATEGY, summarizer=scribe)
    await session.add_items(turns(1, 5))
    assert told(await session.get_items()) == "1 2 3"
    for broken in ({"format": 1}, {"format": 1, "head": "x", "cut": {}, "summary": 3, "claim": None}):
        key, note, _ = await anchor_of(inner, STRATEGY)
        await inner.set_note(key, broken, note.version)
        fresh = StrategySession(inner, STRATEGY, summarizer=scribe)
        assert told(await fresh.get_items()) == "1 2 3"


def test_an_event_loop_that_ends_leaves_nothing_behind(tmp_path: Path) -> None:
    """The summary is started in one event loop, which ends. The next loop makes it."""
    scribe = Scribe(0.2)
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe)
    asyncio.run(session.add_items(turns(1, 4)))
    asyncio.run(session.get_items())

    async def begin() -> None:
        await session.add_items(turn(5))
        await scribe.was_asked.wait()

    asyncio.run(begin())
    assert told(asyncio.run(session.get_items())) == "1 2 3"
    assert len(scribe.requests) == 2
    assert session.summary_failures == 0, "to be given up is no failure"
    asyncio.run(session.aclose())


def test_an_event_loop_that_stands_still_is_not_waited_for(tmp_path: Path) -> None:
    scribe = Scribe(0.01)
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe)
    still = asyncio.new_event_loop()
    still.run_until_complete(session.add_items(turns(1, 4)))
    still.run_until_complete(session.get_items())
    still.run_until_complete(session.add_items(turn(5)))
    assert told(asyncio.run(session.get_items())) == "1 2 3"
    asyncio.run(session.aclose())
    pending = asyncio.all_tasks(still)
    for task in pending:
        task.cancel()
    still.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    still.close()


@in_event_loop
async def test_closing_waits_for_what_is_being_made(tmp_path: Path) -> None:
    scribe = Scribe(0.05)
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=scribe)
    await session.get_items()
    for number in range(1, 6):
        await session.add_items(turn(number))
    await session.aclose()
    again = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=raise_error)
    assert told(await again.get_items()) == "1 2 3"
    await again.aclose()
    assert len(asyncio.all_tasks()) == 1


@in_event_loop
async def test_clearing_gives_up_what_is_being_made(tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=hang)
    await session.get_items()
    for number in range(1, 6):
        await session.add_items(turn(number))
    await asyncio.sleep(0.02)
    await session.clear_session()
    assert len(asyncio.all_tasks()) == 1
    assert await session.get_items() == []
    assert session.summary_failures == 0


@in_event_loop
async def test_a_reader_that_is_cancelled_leaves_the_summary_to_others() -> None:
    scribe = Scribe(0.05)
    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=scribe)
    await session.add_items(turns(1, 5))
    reader = asyncio.create_task(session.get_items())
    await asyncio.sleep(0.01)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert told(await session.get_items()) == "1 2 3"
    assert len(scribe.requests) == 1


# --- callbacks ---


@in_event_loop
async def test_a_summary_is_told_once_with_counts(tmp_path: Path) -> None:
    events: list[StrategyEvent] = []
    handles = [
        StrategySession(
            SQLiteSession("s", tmp_path / "s.db"), STRATEGY, summarizer=Scribe(), on_summary=events.append
        )
        for _ in range(2)
    ]
    for number in range(1, 9):
        await handles[0].add_items(turn(number))
        await asyncio.gather(*(handle.get_items() for handle in handles))
    for handle in handles:
        await handle.aclose()
    first, second = events
    assert (first.kind, first.trigger, first.turns, first.call_ids) == (
        "summary",
        "turns",
        range(1, 4),
        ("c1", "c2", "c3"),
    )
    assert (first.turns_before, first.turns_after, first.items_before, first.items_after) == (5, 2, 20, 10)
    assert first.tokens_before == estimate_tokens(turns(1, 5))
    assert first.tokens_after < first.tokens_before
    assert first.summary is not None
    assert (first.summary.text, first.summary.version, first.summary.model) == ("1 2 3", 1, "scribe")
    assert (second.turns, second.summary and second.summary.version) == (range(4, 7), 2)
    assert "1 2 3" not in repr(first), "what is logged by mistake holds no contents"


@in_event_loop
async def test_a_callback_that_fails_breaks_nothing() -> None:
    async def fail(_event: StrategyEvent) -> None:
        raise RuntimeError

    session = StrategySession(InMemorySession("s"), STRATEGY, summarizer=Scribe(), on_summary=fail)
    await session.add_items(turns(1, 5))
    assert told(await session.get_items()) == "1 2 3"
    assert session.summary_failures == 0


@in_event_loop
async def test_only_strategies_that_summarize_have_failures() -> None:
    assert StrategySession(InMemorySession("s"), Trim(4)).summary_failures == 0
