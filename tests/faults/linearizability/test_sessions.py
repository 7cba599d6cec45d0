"""What callers see of our sessions can be told one call after another; of broken ones it cannot."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recollect import SQLiteSession

from ..account import Account, Plan
from .callers import Callers, Crowd, Target
from .campaign import enter, prove, run
from .checker import check
from .history import Operation
from .places import PLACES, driven
from .workload import read, work

_CROWD = Crowd(sessions=4, calls=5)


@pytest.fixture
def url_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Where the sessions of a place are; servers are started for those that need them."""

    def find(place: str) -> str:
        if "postgresql" in place:
            return driven(place, request.getfixturevalue("postgres_url"))
        return request.getfixturevalue("redis_url") if place == "redis" else str(tmp_path / "sessions.db")

    return find


@pytest.fixture(scope="module")
def callers() -> Iterator[Callers]:
    """Processes that call the sessions of one place after another."""
    with Callers(_CROWD) as callers:
        yield callers


@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", PLACES)
def test_threads_and_processes_see_one_session(
    place: str, callers: Callers, url_of: Callable[[str], str]
) -> None:
    account = prove(callers, Target(place, url_of(place), seed=7), rounds=1)
    assert account.findings == []
    not_checked = _CROWD.round - account.operations.total()
    assert 0 <= not_checked <= account.faults["calls cancelled"]


# --- sessions that keep their promises not quite ---


class LosesUpdates(SQLiteSession):
    """Adds by reading all and writing it back."""

    async def add_items(self, items: list[Any]) -> None:
        held = await self.get_items()
        await self.replace_items([*held, *items])


class PopsTwice(SQLiteSession):
    """Looks at the newest item first, and removes whichever is the newest then."""

    async def pop_item(self) -> Any:
        newest = await self.get_items(1)
        await super().pop_item()
        return newest[0] if newest else None


class ReadsTheOld(SQLiteSession):
    """Reads from a cache that its own writes make new, and nobody else's."""

    _cached: list[Any] | None = None

    async def add_items(self, items: list[Any]) -> None:
        self._cached = None
        await super().add_items(items)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        if limit is not None:
            return await super().get_items(limit)
        if self._cached is None:
            self._cached = await super().get_items()
        return self._cached


class TearsBatches(SQLiteSession):
    """Adds item by item."""

    async def add_items(self, items: list[Any]) -> None:
        for item in items:
            await super().add_items([item])


async def _history_of(kind: type[SQLiteSession], path: Path, name: str) -> list[Operation]:
    """What six callers did and saw, two on each session object."""
    sessions = [kind(name, path, durability="normal") for _ in range(3)]
    working = [work(sessions[caller % 3], name, caller + 1, calls=10) for caller in range(6)]
    done = [operation for each in await asyncio.gather(*working) for operation in each]
    done.append(await read(sessions[0]))
    for session in sessions:
        session.close()
    return done


async def _has_finding(kind: type[SQLiteSession], path: Path) -> bool:
    """Whether anything is found within a few hundred calls."""
    histories = [await _history_of(kind, path, str(number)) for number in range(8)]
    return not all(check(history).linearizable for history in histories)


@pytest.mark.parametrize("kind", [LosesUpdates, PopsTwice, ReadsTheOld, TearsBatches])
def test_a_session_that_breaks_the_contract_is_caught(kind: type[SQLiteSession], tmp_path: Path) -> None:
    assert asyncio.run(_has_finding(kind, tmp_path / "sessions.db"))


def test_one_that_keeps_it_is_not(tmp_path: Path) -> None:
    assert not asyncio.run(_has_finding(SQLiteSession, tmp_path / "sessions.db"))


class GivesUp(SQLiteSession):
    """Does not wait for what it reads."""

    async def get_items(self, limit: int | None = None) -> list[Any]:  # noqa: ARG002 - as it is called
        raise TimeoutError


def test_a_session_that_gives_up_is_not_taken_for_a_cancelled_call(tmp_path: Path) -> None:
    with closing(GivesUp("s", tmp_path / "sessions.db")) as session, pytest.raises(TimeoutError):
        asyncio.run(read(session))


def test_a_cancelled_read_is_no_checked_operation_and_a_cancelled_write_is() -> None:
    account = Account("linearizability", "sqlite")
    enter(account, "a session", [Operation("get", 0, None), Operation("add", 1, None, (1,))])
    assert account.operations == {"add, cancelled": 1}
    assert account.faults == {"calls cancelled": 2}


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(ValueError, match="no place elsewhere"):
        run(Plan(7, 1, 0, "elsewhere"))
