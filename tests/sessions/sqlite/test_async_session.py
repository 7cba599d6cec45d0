"""`AsyncSQLiteSession` in place of the SDK's: the same arguments, the same file, an awaitable `close`."""

import inspect
from pathlib import Path

import pytest
from agents.extensions.memory import AsyncSQLiteSession as TheirSession

from recollect import AsyncSQLiteSession, SessionClosedError, SQLiteSession, run_lock
from recollect.sessions.wrappers import SessionWrapper
from recollect.testing.contract import in_event_loop, message, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


def test_it_takes_the_arguments_of_the_sdks_class() -> None:
    theirs = inspect.signature(TheirSession.__init__).parameters
    ours = inspect.signature(AsyncSQLiteSession.__init__).parameters
    assert list(ours)[: len(theirs)] == list(theirs)
    assert {name: each.default for name, each in theirs.items()}.items() <= {
        name: each.default for name, each in ours.items()
    }.items()


@in_event_loop
async def test_close_is_awaited_and_twice_is_harmless(path: Path) -> None:
    session = AsyncSQLiteSession("s", path)
    await session.add_items([message("a")])
    await session.close()
    await session.close()
    with pytest.raises(SessionClosedError):
        await session.get_items()


@in_event_loop
async def test_a_wrapper_closes_it(path: Path) -> None:
    session = AsyncSQLiteSession("s", path)
    await SessionWrapper(session).aclose()
    assert session.closed


@in_event_loop
async def test_a_file_of_the_sdk_goes_on_and_goes_back(path: Path) -> None:
    theirs = TheirSession("s", path)
    await theirs.add_items([message("theirs")])  # type: ignore[list-item]
    await theirs.close()
    async with AsyncSQLiteSession("s", path) as ours, run_lock(ours):
        await ours.add_items([message("ours")])
    async with SQLiteSession("s", path) as other:
        assert texts(await other.get_items()) == ["theirs", "ours"]
    again = TheirSession("s", path)
    assert texts(await again.get_items()) == ["theirs", "ours"]  # type: ignore[arg-type]
    await again.close()
