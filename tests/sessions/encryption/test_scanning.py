"""`max_scan_items` bounds what one read takes from the store, as in the Agents SDK."""

from typing import Any

import pytest
from agents.extensions.memory import EncryptedSession as SDKEncryptedSession

from recollect import InMemorySession, ScanLimitError, WrongKeyError
from recollect.sessions.encryption import EncryptedSession
from recollect.testing.contract import in_event_loop, message, texts

from .tools import KEY, encrypted, envelope


class Counting(InMemorySession):
    """Notes how many items each read asks for."""

    def __init__(self) -> None:
        super().__init__("s")
        self.asked: list[int | None] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        self.asked.append(limit)
        return await super().get_items(limit)


def stored(pattern: str) -> list[Any]:
    """Envelopes by letter: `r` can be read, `e` has expired, `x` is under another key."""
    made = {
        "r": lambda n: envelope(message(n)),
        "e": lambda n: envelope(message(n), age=900),
        "x": lambda n: envelope(message(n), key="another"),
    }
    return [made[letter](n) for n, letter in enumerate(pattern)]


async def outcome(session: Any, limit: int | None) -> Any:
    try:
        return texts(await session.get_items(limit))
    except RuntimeError:
        return "too many"


@pytest.mark.parametrize("max_scan_items", [1, 2, 3, 5, 7, 8, 20, None])
@pytest.mark.parametrize("limit", [None, 0, 1, 2, 3, 7, 50])
@pytest.mark.parametrize("pattern", ["", "r", "rrrr", "rrreee", "erererer", "rxxr", "reeeeeee", "rrrrrrrr"])
@in_event_loop
async def test_a_read_ends_as_the_sdks_does(
    pattern: str, limit: int | None, max_scan_items: int | None
) -> None:
    inner = Counting()
    await inner.add_items(stored(pattern))
    theirs = SDKEncryptedSession("s", inner, KEY, 600, max_scan_items)  # type: ignore[arg-type]
    ours = EncryptedSession("s", inner, KEY, 600, max_scan_items)
    expected = await outcome(theirs, limit)
    asked, inner.asked = inner.asked, []
    assert await outcome(ours, limit) == expected
    assert inner.asked == asked


@in_event_loop
async def test_the_error_says_what_to_do_and_nothing_is_lost() -> None:
    session = encrypted(InMemorySession("s"), max_scan_items=2)
    await session.add_items([message(n) for n in range(3)])
    with pytest.raises(ScanLimitError, match=r"session 's': a read needs more than max_scan_items=2"):
        await session.get_items()
    session.max_scan_items = 4
    assert texts(await session.get_items()) == ["0", "1", "2"]
    assert texts([row.item for row in await session.read_after(0, 2)]) == ["0", "1"]


@in_event_loop
async def test_adding_needs_no_more_than_the_newest_item() -> None:
    inner = InMemorySession("s")
    await inner.add_items(stored("r" + "e" * 20))
    session = encrypted(inner, ttl=600, max_scan_items=2)
    await session.add_items([message("new")])
    assert texts(await session.get_items(1)) == ["new"]


@in_event_loop
async def test_the_look_for_a_key_that_fits_is_bounded_too() -> None:
    inner = Counting()
    await inner.add_items(stored("xxxxxx"))
    with pytest.raises(WrongKeyError):
        await encrypted(inner, max_scan_items=3).add_items([message("new")])
    assert all(limit is not None and limit <= 3 for limit in inner.asked)


@pytest.mark.parametrize("bad", [0, -1, True, "3", 1.5], ids=repr)
def test_a_bound_without_sense_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="max_scan_items must be positive or None"):
        encrypted(InMemorySession("s"), max_scan_items=bad)
    session = encrypted(InMemorySession("s"))
    with pytest.raises(ValueError, match="max_scan_items must be positive or None"):
        session.max_scan_items = bad
    assert session.max_scan_items is None
