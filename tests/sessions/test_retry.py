"""Retrying: a fault that passes is not seen, one that stays is raised, and no batch is stored twice."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    DatabaseBusyError,
    InMemorySession,
    RetryingSession,
    SessionClosedError,
    SessionSettings,
    SQLiteSession,
    StorageError,
    TransientError,
)
from recollect.testing.contract import in_event_loop, message, texts

Use = Callable[[Any], Awaitable[Any]]


class Faulty:
    """A session with the four methods, whose calls fail as told: before or after they take effect."""

    session_settings = None

    def __init__(self, *faults: Exception, after: bool = False) -> None:
        self.session_id = "faulty"
        self.store = InMemorySession("store")
        self.faults = list(faults)
        self.after = after
        self.calls: list[float] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return await self._call(lambda: self.store.get_items(limit))

    async def add_items(self, items: list[Any]) -> None:
        await self._call(lambda: self.store.add_items(items))

    async def pop_item(self) -> Any:
        return await self._call(self.store.pop_item)

    async def clear_session(self) -> None:
        await self._call(self.store.clear_session)

    async def _call(self, effect: Callable[[], Awaitable[Any]]) -> Any:
        self.calls.append(time.monotonic())
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not self.after:
            raise fault
        result = await effect()
        if fault is not None:
            raise fault
        return result


class FaultyWithBatches(Faulty):
    """One that recognises a batch it already has."""

    async def add_batch(self, items: list[Any], batch_id: str) -> bool:
        appended: bool = await self._call(lambda: self.store.add_batch(items, batch_id))
        return appended


def get(session: Any) -> Awaitable[Any]:
    return session.get_items()


def add(session: Any) -> Awaitable[Any]:
    return session.add_items([message("added")])


def pop(session: Any) -> Awaitable[Any]:
    return session.pop_item()


def clear(session: Any) -> Awaitable[Any]:
    return session.clear_session()


EFFECTS = [
    pytest.param(get, ["a", "b"], [message("a"), message("b")], id="get"),
    pytest.param(add, ["a", "b", "added"], None, id="add"),
    pytest.param(pop, ["a"], message("b"), id="pop"),
    pytest.param(clear, [], None, id="clear"),
]
USES = [pytest.param(use, id=use.__name__) for use in (get, add, pop, clear)]
LOST = [ConnectionError("lost"), ConnectionResetError("lost"), BrokenPipeError("lost"), TimeoutError("late")]


async def filled(faulty: Faulty) -> Faulty:
    await faulty.store.add_items([message("a"), message("b")])
    return faulty


async def stored(faulty: Faulty) -> list[str]:
    return texts(await faulty.store.get_items())


# --- faults after which nothing was written ---


@pytest.mark.parametrize("make", [Faulty, FaultyWithBatches])
@pytest.mark.parametrize("fault", [TransientError("busy"), DatabaseBusyError("busy")], ids=repr)
@pytest.mark.parametrize(("use", "left", "result"), EFFECTS)
@in_event_loop
async def test_a_fault_that_passes_is_not_seen(
    make: type[Faulty], fault: Exception, use: Use, left: list[str], result: Any
) -> None:
    faulty = await filled(make(fault, fault))
    assert await use(RetryingSession(faulty, delay=0)) == result
    assert await stored(faulty) == left
    assert len(faulty.calls) == 3


@pytest.mark.parametrize("make", [Faulty, FaultyWithBatches])
@pytest.mark.parametrize("tries", [1, 2, 5])
@pytest.mark.parametrize("use", USES)
@in_event_loop
async def test_the_last_error_is_raised_when_all_tries_failed(
    make: type[Faulty], tries: int, use: Use
) -> None:
    faults = [TransientError(f"fault {n}") for n in range(1, 10)]
    faulty = await filled(make(*faults))
    with pytest.raises(TransientError, match=f"fault {tries}") as error:
        await use(RetryingSession(faulty, tries=tries, delay=0))
    assert error.value is faults[tries - 1], "as the session raised it"
    assert len(faulty.calls) == tries
    assert await stored(faulty) == ["a", "b"]


@in_event_loop
async def test_three_tries_are_made_unless_told() -> None:
    faulty = Faulty(*(TransientError("busy") for _ in range(10)))
    with pytest.raises(TransientError):
        await RetryingSession(faulty, delay=0).get_items()
    assert len(faulty.calls) == 3


@pytest.mark.parametrize("make", [Faulty, FaultyWithBatches])
@pytest.mark.parametrize("fault", [StorageError("broken"), ValueError("bad"), OSError("disk")], ids=repr)
@pytest.mark.parametrize("use", USES)
@in_event_loop
async def test_what_is_no_passing_fault_is_raised_at_once(
    make: type[Faulty], fault: Exception, use: Use
) -> None:
    faulty = await filled(make(fault))
    with pytest.raises(type(fault)) as error:
        await use(RetryingSession(faulty, delay=0))
    assert error.value is fault
    assert len(faulty.calls) == 1


# --- faults after which it may have been written ---


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@in_event_loop
async def test_a_batch_is_stored_once_whenever_the_connection_was_lost(fault: Exception, after: bool) -> None:
    faulty = await filled(FaultyWithBatches(fault, fault, after=after))
    await RetryingSession(faulty, delay=0).add_items([message("c"), message("d")])
    assert await stored(faulty) == ["a", "b", "c", "d"]
    assert len(faulty.calls) == 3


@in_event_loop
async def test_the_same_items_added_twice_are_two_batches() -> None:
    faulty = FaultyWithBatches(ConnectionError("lost"), after=True)
    session = RetryingSession(faulty, delay=0)
    await session.add_items([message("yes")])
    await session.add_items([message("yes")])
    assert await stored(faulty) == ["yes", "yes"]


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize(("after", "left"), [(False, ["a", "b"]), (True, ["a", "b", "added"])])
@in_event_loop
async def test_a_session_that_cannot_tell_batches_apart_is_not_asked_again(
    fault: Exception, after: bool, left: list[str]
) -> None:
    faulty = await filled(Faulty(fault, after=after))
    with pytest.raises(type(fault)) as error:
        await add(RetryingSession(faulty, delay=0))
    assert error.value is fault
    assert len(faulty.calls) == 1
    assert await stored(faulty) == left


@pytest.mark.parametrize("make", [Faulty, FaultyWithBatches])
@pytest.mark.parametrize("fault", LOST, ids=repr)
@in_event_loop
async def test_pop_is_never_repeated_after_a_lost_connection(make: type[Faulty], fault: Exception) -> None:
    faulty = await filled(make(fault, after=True))
    with pytest.raises(type(fault)):
        await pop(RetryingSession(faulty, delay=0))
    assert len(faulty.calls) == 1
    assert await stored(faulty) == ["a"], "one item went, not two"


@pytest.mark.parametrize("fault", LOST, ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@in_event_loop
async def test_reading_and_clearing_are_repeated_after_a_lost_connection(
    fault: Exception, after: bool
) -> None:
    faulty = await filled(Faulty(fault, fault, after=after))
    session = RetryingSession(faulty, delay=0)
    assert texts(await session.get_items()) == ["a", "b"]
    faulty.faults = [fault, fault]
    await session.clear_session()
    assert await stored(faulty) == []
    assert len(faulty.calls) == 6


# --- waiting ---


@in_event_loop
async def test_the_waits_double(caplog: pytest.LogCaptureFixture) -> None:
    faulty = Faulty(*(TransientError("my-secret-word") for _ in range(3)))
    with caplog.at_level(logging.WARNING):
        await RetryingSession(faulty, tries=4, delay=0.01).get_items()
    waited = [later - earlier for earlier, later in zip(faulty.calls, faulty.calls[1:], strict=False)]
    assert [wait >= least for wait, least in zip(waited, [0.01, 0.02, 0.04], strict=True)] == [True] * 3
    assert caplog.messages == [
        "try 1 failed (TransientError), retrying in 0.01 s",
        "try 2 failed (TransientError), retrying in 0.02 s",
        "try 3 failed (TransientError), retrying in 0.04 s",
    ]


@in_event_loop
async def test_the_first_wait_is_a_second_and_can_be_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    faulty = Faulty(TransientError("busy"))
    with caplog.at_level(logging.WARNING), pytest.raises(TimeoutError):
        await asyncio.wait_for(RetryingSession(faulty).get_items(), 0.05)
    assert caplog.messages == ["try 1 failed (TransientError), retrying in 1 s"]
    assert len(faulty.calls) == 1


# --- as a session ---


@pytest.mark.parametrize("tries", [0, -1])
def test_there_must_be_a_try(tries: int) -> None:
    with pytest.raises(ValueError, match=f"tries must be at least 1, not {tries}"):
        RetryingSession(InMemorySession("s"), tries=tries)


def test_a_wait_cannot_be_negative() -> None:
    with pytest.raises(ValueError, match=r"delay must be 0 or more, not -0\.1"):
        RetryingSession(InMemorySession("s"), delay=-0.1)


@in_event_loop
async def test_limits_are_kept_on_every_try() -> None:
    faulty = await filled(Faulty(TransientError("busy"), TransientError("busy")))
    session = RetryingSession(faulty, delay=0)
    assert texts(await session.get_items(limit=1)) == ["b"]
    session.session_settings = SessionSettings(limit=1)
    assert texts(await session.get_items()) == ["b"]
    with pytest.raises(ValueError, match="negative"):
        await session.get_items(limit=-1)


@in_event_loop
async def test_an_empty_batch_writes_nothing() -> None:
    async with SQLiteSession("s") as store:
        await RetryingSession(store).add_items([])
        assert await store.get_items() == []
        with pytest.raises(TypeError):
            await RetryingSession(store, delay=0).add_items("text")  # type: ignore[arg-type]


@in_event_loop
async def test_closing_closes_the_session_it_wraps() -> None:
    store = InMemorySession("s")
    async with RetryingSession(store) as session:
        await session.add_items([message("a")])
    assert store.closed
    for use in (get, add, pop, clear):
        with pytest.raises(SessionClosedError, match="'s' is closed"):
            await use(session)
    await session.aclose()


# --- with a real database ---


@in_event_loop
async def test_a_database_that_is_busy_for_a_while_is_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    async with RetryingSession(SQLiteSession("s", path, busy_timeout=0.02), tries=50, delay=0) as session:
        await session.add_items([message("before")])
        other = sqlite3.connect(path, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.15, lambda: (other.rollback(), other.close()))
        release.start()
        await session.add_items([message("after")])
        release.join()
        assert texts(await session.get_items()) == ["before", "after"]


class Forgetful(SQLiteSession):
    """A session whose acknowledgements are lost on the way, all but every third."""

    calls = 0

    async def add_batch(self, items: list[Any], batch_id: str) -> bool:
        appended = await super().add_batch(items, batch_id)
        self.calls += 1
        if self.calls % 3:
            raise ConnectionError("the acknowledgement was lost")
        return appended


@in_event_loop
async def test_sqlite_stores_each_batch_once(tmp_path: Path) -> None:
    async with RetryingSession(Forgetful("s", tmp_path / "s.db"), delay=0) as session:
        for n in range(5):
            await session.add_items([message(n), message(n)])
        assert texts(await session.get_items()) == [str(n) for n in range(5) for _ in range(2)]
