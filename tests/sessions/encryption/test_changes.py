"""Rotation, purging and rewriting: in place, with ages kept, and with what cannot be read left alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agents
import pytest

from recollect import (
    InMemorySession,
    MissingAbilityError,
    SQLAlchemySession,
    SQLiteSession,
    compress_history,
    undo_turn,
)
from recollect.sessions.protocol import Note
from recollect.sessions.redis import RedisSession
from recollect.testing.contract import in_event_loop, message, texts

from ..postgres.database import by, new_tables
from .tools import CIPHERS, Item, age_of, all_stored, encrypted, envelope, truncated

BROKEN = truncated(envelope(message("broken")))
OTHERS = envelope(message("another's"), key="another")


@pytest.fixture(params=["memory", "file", "postgres", "redis"])
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Opens a session of each kind."""
    if request.param == "memory":
        return lambda: InMemorySession("s")
    if request.param == "file":
        return lambda: SQLiteSession("s", tmp_path / "sessions.db")
    if request.param == "postgres":
        url, tables = by("asyncpg", request.getfixturevalue("postgres_url")), new_tables()
        return lambda: SQLAlchemySession.from_url("s", url=url, create_tables=True, **tables)
    url, prefix = request.getfixturevalue("redis_url"), request.getfixturevalue("prefix")
    return lambda: RedisSession.from_url("s", url=url, key_prefix=prefix)


@asynccontextmanager
async def opened(opening: Any, items: list[Item]) -> AsyncIterator[Any]:
    async with opening() as inner:
        await inner.add_items(items)
        yield inner


# --- rotation ---


@in_event_loop
async def test_rotation_brings_all_under_the_first_key_as_old_as_before(opening: Any) -> None:
    written = [envelope(message(n), age=100 * n, key=["old", "older"][n % 2]) for n in range(6)]
    async with opened(opening, written) as inner:
        session = encrypted(inner, ["new", "old", "older"])
        before = [position for position, _ in await inner.read_after(0)]
        assert await session.rotate() == 6
        after = await inner.read_after(0)
        assert [position for position, _ in after] == before, "in place"
        assert texts(await encrypted(inner, "new").get_items()) == [str(n) for n in range(6)]
        for number, row in enumerate(after):
            assert 0 <= age_of(row.item, "new") - 100 * number < 60
        assert await session.rotate() == 0, "there is nothing left to do"
        assert await inner.read_after(0) == after


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_rotation_changes_the_cipher_too(cipher: Any) -> None:
    inner = InMemorySession("s")
    for number in range(10):
        await encrypted(inner, cipher=CIPHERS[number % 2]).add_items([message(number)])
    session = encrypted(inner, cipher=cipher)
    assert await session.rotate() == 5
    assert len({stored["kid"] for stored in await inner.get_items()}) == 1
    assert texts(await session.get_items()) == [str(n) for n in range(10)]


@in_event_loop
async def test_rotation_leaves_what_no_key_opens_as_it_is(opening: Any) -> None:
    async with opened(
        opening, [BROKEN, envelope(message("a"), key="old"), OTHERS, message("plain")]
    ) as inner:
        session = encrypted(inner, ["new", "old"])
        assert await session.rotate() == 1
        first, second, third, fourth = await inner.get_items()
        assert [first, third, fourth] == [BROKEN, OTHERS, message("plain")]
        assert second != envelope(message("a"), key="old")
        assert texts(await encrypted(inner, "new").get_items()) == ["a"]


@in_event_loop
async def test_rotation_encrypts_plain_items_when_asked_to(opening: Any) -> None:
    items = [message("a"), {"type": "of_the_future", "n": 2**80}, message("b")]
    async with opened(opening, items) as inner:
        session = encrypted(inner, ttl=600)
        assert await session.rotate() == 0
        assert await session.get_items() == []
        assert await session.rotate(include_plaintext=True) == 3
        assert await session.get_items() == items
        assert all("payload" in stored and "content" not in stored for stored in await inner.get_items())
        assert await session.rotate(include_plaintext=True) == 0


@in_event_loop
async def test_expired_items_stay_expired_by_a_rotation() -> None:
    inner = InMemorySession("s")
    await inner.add_items([envelope(message("old"), 1000, key="old"), envelope(message("new"), key="old")])
    session = encrypted(inner, ["new", "old"], ttl=600)
    assert await session.rotate() == 2
    assert texts(await session.get_items()) == ["new"]
    assert await session.purge_expired() == 1
    assert texts(await encrypted(inner, "new").get_items()) == ["new"]


@in_event_loop
async def test_plain_items_that_we_would_refuse_are_encrypted_as_they_are(tmp_path: Path) -> None:
    """The SDK stores NaN; an item with it must not keep a history from being encrypted."""
    path = tmp_path / "sdk.db"
    theirs = agents.SQLiteSession("s", path)
    await theirs.add_items([{"role": "user", "content": float("nan")}, message("b")])  # type: ignore[list-item,typeddict-item]
    theirs.close()
    async with encrypted(SQLiteSession("s", path)) as session:
        assert await session.rotate(include_plaintext=True) == 2
        first, second = await session.get_items()
        assert repr(first) == "{'role': 'user', 'content': nan}"
        assert second == message("b")


# --- purging ---


@in_event_loop
async def test_purging_deletes_what_has_expired_and_nothing_else(opening: Any) -> None:
    ages = [5000, 700, 10, 900, 0]
    items = [*(envelope(message(age), age) for age in ages), BROKEN, OTHERS, message("plain")]
    async with opened(opening, items) as inner:
        assert await encrypted(inner, ttl=None).purge_expired() == 0
        session = encrypted(inner, ttl=600)
        assert await session.purge_expired() == 3
        assert await session.purge_expired() == 0
        assert (await inner.get_items())[2:] == [BROKEN, OTHERS, message("plain")]
        assert texts(await encrypted(inner).get_items()) == ["10", "0"]


@in_event_loop
async def test_rotation_and_purging_need_a_session_that_can_be_rewritten() -> None:
    session = encrypted(agents.SQLiteSession("s"), ttl=600)
    for use in (session.rotate, session.purge_expired):
        with pytest.raises(MissingAbilityError, match="Rewritable"):
            await use()
    await session.aclose()


# --- rewriting ---


@in_event_loop
async def test_what_stays_in_a_rewriting_keeps_its_envelope(opening: Any) -> None:
    written = [envelope(message(n), age=50 * (7 - n)) for n in range(6)]
    async with opened(opening, written) as inner:
        session = encrypted(inner)
        await session.transform_items(lambda items: [*items[:2], message("summary"), *items[4:]])
        stored = await inner.get_items()
        assert texts(await session.get_items()) == ["0", "1", "summary", "4", "5"]
        assert [*stored[:2], *stored[3:]] == [*written[:2], *written[4:]]
        assert age_of(stored[2]) < 60
        await session.transform_items(lambda items: items)
        assert await inner.get_items() == stored


@in_event_loop
async def test_of_equal_items_each_keeps_its_age() -> None:
    inner = InMemorySession("s")
    await inner.add_items([envelope(message("yes"), age) for age in (500, 400, 300, 200, 100)])
    session = encrypted(inner)
    written = await inner.get_items()
    await session.transform_items(lambda items: items[2:])
    assert await inner.get_items() == written[2:]
    await session.transform_items(lambda items: [message("first"), *items])
    assert (await inner.get_items())[1:] == written[2:]
    await session.transform_items(lambda items: [items[0], items[1], items[3], items[2]])
    assert (await inner.get_items())[1:] == [written[2], written[4], written[3]]
    await session.transform_items(lambda items: [dict(item) for item in items[1:]])
    assert await inner.get_items() == [written[2], written[4], written[3]], "copies are the same items"
    await session.transform_items(lambda items: [items[0], items[0]])
    assert (await inner.get_items())[0] == written[2]
    assert texts(await session.get_items()) == ["yes", "yes"]


@in_event_loop
async def test_what_cannot_be_read_stays_in_its_place_when_a_history_is_rewritten(opening: Any) -> None:
    old = envelope(message("old"), 1000)
    items = [envelope(message("a")), BROKEN, envelope(message("b")), old, envelope(message("c")), OTHERS]
    async with opened(opening, items) as inner:
        session = encrypted(inner, ttl=600)
        await session.transform_items(lambda items: [items[0], items[2], message("d")])
        assert (await inner.get_items())[:-1] == [items[0], BROKEN, old, items[4], OTHERS]
        assert texts(await session.get_items()) == ["a", "c", "d"]
        await session.transform_items(lambda _: [])
        assert await inner.get_items() == [BROKEN, old, OTHERS]


@in_event_loop
async def test_replacing_leaves_only_what_no_key_opens(opening: Any) -> None:
    items = [envelope(message("a")), BROKEN, envelope(message("old"), 1000), message("plain")]
    async with opened(opening, items) as inner:
        session = encrypted(inner, ttl=600)
        await session.replace_items([message("new")])
        assert (await inner.get_items())[:2] == [BROKEN, message("plain")]
        assert len(await inner.get_items()) == 3
        assert texts(await session.get_items()) == ["new"]


@in_event_loop
async def test_a_revision_reaches_expired_items_too_and_makes_nothing_younger(opening: Any) -> None:
    items = [envelope(message("old"), 1000), BROKEN, envelope(message("a"), 300), envelope(message("b"))]
    async with opened(opening, items) as inner:
        session = encrypted(inner, ttl=600)

        def mask(items: list[Item]) -> list[Item | None]:
            assert texts(items) == ["old", "a", "b"]
            return [{**items[0], "content": "***"}, {**items[1], "content": "*"}, None]

        await session.revise_items(mask)
        first, broken, second = await inner.get_items()
        assert broken == BROKEN
        assert texts(await encrypted(inner).get_items()) == ["***", "*"]
        assert age_of(first) >= 1000
        assert 300 <= age_of(second) < 400


@in_event_loop
async def test_tools_for_histories_work_through_encryption(opening: Any) -> None:
    async with opened(opening, []) as inner:
        session = encrypted(inner, cipher="aes-gcm")
        await session.add_items([message(n) for n in range(10)])
        assert await compress_history(session, target_count=4) == (10, 4)
        assert await undo_turn(session) == [message(9)]
        assert texts(await session.get_items()) == ["6", "7", "8"]


@in_event_loop
async def test_a_change_may_give_items_one_by_one() -> None:
    session = encrypted(InMemorySession("s"))
    await session.add_items([message(n) for n in range(4)])
    await session.transform_items(lambda items: (item for item in items[1:]))
    assert texts(await session.get_items()) == ["1", "2", "3"]


# --- notes ---


@in_event_loop
async def test_a_note_that_nobody_can_open_is_as_if_it_were_not_there(opening: Any) -> None:
    async with opened(opening, []) as inner:
        assert await encrypted(inner, "old").set_note("summary", {"text": "sesame"}, 0)
        assert "sesame" not in repr(await inner.get_note("summary"))
        session = encrypted(inner, "new")
        assert await session.get_note("summary") is None
        assert not await session.set_note("summary", {"text": "mine"}, 7)
        assert await session.set_note("summary", {"text": "mine"}, 0), "it can be made anew"
        note = await session.get_note("summary")
        assert note == Note(2, {"text": "mine"})
        assert not await session.set_note("summary", {"text": "another"}, 0), "now there is one"
        assert await session.set_note("summary", {"text": "another"}, 2)
        assert await session.get_note("summary") == Note(3, {"text": "another"})


@in_event_loop
async def test_a_note_that_is_plain_or_has_expired_is_not_read() -> None:
    inner = InMemorySession("s")
    await inner.set_note("plain", {"text": "hello"}, 0)
    await inner.set_note("old", envelope({"text": "hello"}, 1000), 0)
    session = encrypted(inner, ttl=600)
    assert await session.get_note("plain") is None
    assert await session.get_note("old") is None
    assert await encrypted(inner).get_note("old") == Note(1, {"text": "hello"})
    assert await all_stored(session) == []
