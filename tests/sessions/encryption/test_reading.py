"""What is read, what is left out and how that is told, and that nobody is kept waiting."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from recollect import InMemorySession, RecollectError, SessionSettings, SQLiteSession
from recollect.errors import WrongKeyError
from recollect.sessions.encryption import reader as reader_module
from recollect.sessions.encryption.vault import BLOCK
from recollect.testing.contract import ODD_ITEMS, in_event_loop, message, texts

from .tools import CIPHERS, KEY, all_stored, encrypted, envelope, truncated


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_nothing_of_an_item_is_stored_as_it_is(tmp_path: Path, cipher: Any) -> None:
    path = tmp_path / "sessions.db"
    async with encrypted(SQLiteSession("s", path), cipher=cipher) as session:
        await session.add_items([message("the password is sesame")])
        await session.add_batch([message("sesame again")], "batch")
        assert await session.set_note("summary", {"text": "about sesame"}, 0)
        for stored in await all_stored(session):
            assert list(stored) == ["__enc__", "v", "kid", "payload"]
            assert stored["__enc__"] == 1
        files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"sesame" not in files
    assert b"hkdf-v" in files


@in_event_loop
async def test_envelopes_say_how_they_are_made() -> None:
    inner = InMemorySession("s")
    await encrypted(inner).add_items([message("a")])
    await encrypted(inner, cipher="aes-gcm").add_items([message("b")])
    first, second = await inner.get_items()
    assert (first["v"], first["kid"]) == (1, "hkdf-v1")
    assert (second["v"], second["kid"]) == (2, "hkdf-v2-aes-gcm")


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_histories_of_both_ciphers_and_several_keys_are_read(cipher: Any) -> None:
    inner = InMemorySession("s")
    expected = []
    for number in range(40):
        keys = ["one", "two", "three"]
        first = keys.pop(number % 7 % 3)
        writer = encrypted(inner, [first, *keys], cipher=CIPHERS[number % 5 % 2])
        await writer.add_items([*ODD_ITEMS, message(number)])
        expected += [*ODD_ITEMS, message(number)]
    reader = encrypted(inner, ["three", "one", "two"], cipher=cipher)
    assert repr(await reader.get_items()) == repr(expected)
    assert repr(await reader.get_items(30)) == repr(expected[-30:])


# --- time ---


@in_event_loop
async def test_what_is_older_than_the_time_to_live_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    inner = InMemorySession("s")
    await inner.add_items([envelope(message(f"{age} s"), age) for age in (5000, 601, 590, 0)])
    session = encrypted(inner, ttl=600)
    for _ in range(3):
        assert texts(await session.get_items()) == ["590 s", "0 s"]
    assert [record.getMessage() for record in caplog.records] == [
        "session 's': 2 items omitted, older than the time to live"
    ], "told once"
    assert texts(await encrypted(inner, ttl=None).get_items()) == ["5000 s", "601 s", "590 s", "0 s"]
    assert texts(await encrypted(inner, ttl=1000).get_items()) == ["601 s", "590 s", "0 s"]
    assert len(await all_stored(session)) == 4, "reading removes nothing"


@in_event_loop
async def test_the_default_is_ten_minutes_as_in_the_sdk_and_can_be_changed() -> None:
    inner = InMemorySession("s")
    await inner.add_items([envelope(message("old"), 700), envelope(message("new"))])
    session = encrypted(inner, ttl=600)
    assert session.ttl == 600
    session.ttl = None
    assert texts(await session.get_items()) == ["old", "new"]
    with pytest.raises(ValueError, match="ttl"):
        session.ttl = 0
    assert session.ttl is None


@in_event_loop
async def test_what_comes_from_the_future_is_fresh() -> None:
    """A clock went back, or another machine's is ahead."""
    inner = InMemorySession("s")
    await inner.add_items([envelope(message("ahead"), -100_000), envelope(message("now"))])
    session = encrypted(inner, ttl=60)
    assert texts(await session.get_items()) == ["ahead", "now"]
    assert await session.purge_expired() == 0
    assert await session.pop_item() == message("now")
    assert await session.pop_item() == message("ahead")


# --- limits ---


@in_event_loop
async def test_a_limit_counts_what_can_be_read() -> None:
    inner = InMemorySession("s")
    for number in range(50):
        await inner.add_items(
            [
                envelope(message(number)),
                envelope(message("old"), 1000),
                truncated(envelope(message("broken"))),
                message("not encrypted"),
                envelope(message("another's"), key="another key"),
            ]
        )
    session = encrypted(inner, ttl=600)
    for limit in (1, 2, 7, 49, 50):
        assert texts(await session.get_items(limit)) == [str(n) for n in range(50 - limit, 50)]
    assert texts(await session.get_items(51)) == [str(n) for n in range(50)]
    session.session_settings = SessionSettings(limit=3)
    assert texts(await session.get_items()) == ["47", "48", "49"]
    rows = await session.read_before(None, 4)
    assert texts([row.item for row in rows]) == ["46", "47", "48", "49"]
    assert await session.read_before(rows[0].position, 2) == (await session.read_before(None, 6))[:2]
    assert texts([row.item for row in await session.read_after(0, 3)]) == ["0", "1", "2"]
    assert texts([row.item for row in await session.read_after(rows[1].position)]) == ["48", "49"]


# --- keys that do not fit ---


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_a_wrong_key_is_an_error_and_no_empty_history(cipher: Any) -> None:
    inner = InMemorySession("s")
    await encrypted(inner, cipher=cipher).add_items([message(n) for n in range(300)])
    before = await inner.get_items()
    wrong = encrypted(inner, "wrong", cipher=cipher)
    for use in (
        wrong.get_items,
        lambda: wrong.get_items(1),
        lambda: wrong.get_items(1000),
        wrong.pop_item,
        lambda: wrong.read_after(0),
        lambda: wrong.read_before(None, 2),
        lambda: wrong.transform_items(lambda items: items),
        lambda: wrong.replace_items([message("new")]),
        lambda: wrong.revise_items(lambda items: items),
        lambda: wrong.pop_checked(lambda _: True),
        wrong.rotate,
        lambda: wrong.rotate(include_plaintext=True),
        encrypted(inner, "wrong", ttl=5).purge_expired,
    ):
        with pytest.raises(WrongKeyError, match=r"session 's': no key decrypts .*; nothing was changed"):
            await use()
    assert await inner.get_items() == before
    assert issubclass(WrongKeyError, ValueError)
    assert issubclass(WrongKeyError, RecollectError)


@in_event_loop
async def test_keys_belong_to_a_session_id() -> None:
    inner = InMemorySession("s")
    await encrypted(inner).add_items([message("a")])
    other = encrypted(InMemorySession("other"))
    await other.underlying_session.add_items(await inner.get_items())
    assert texts(await other.get_items()) == ["a"], "the id is the wrapper's"
    moved = type(other)("another id", other.underlying_session, KEY)
    with pytest.raises(WrongKeyError):
        await moved.get_items()


@in_event_loop
async def test_what_no_key_opens_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    inner = InMemorySession("s")
    await inner.add_items([envelope(message("a")), truncated(envelope(message("b"))), message("plain")])
    session = encrypted(inner)
    for _ in range(2):
        assert texts(await session.get_items()) == ["a"]
    await inner.add_items(
        [envelope(message("c"), key="another"), {"__enc__": 1, "payload": "half an envelope"}]
    )
    assert texts(await session.get_items()) == ["a"]
    assert [record.getMessage() for record in caplog.records] == [
        "session 's': 1 items omitted, not decrypted by any key",
        "session 's': 1 items omitted, not encrypted",
        "session 's': 2 items omitted, not decrypted by any key",
        "session 's': 2 items omitted, not encrypted",
    ], "again when they become more"
    assert all(record.levelno == logging.WARNING for record in caplog.records)


@in_event_loop
async def test_a_history_that_is_not_encrypted_reads_as_empty(caplog: pytest.LogCaptureFixture) -> None:
    inner = InMemorySession("s")
    await inner.add_items([message("a"), message("b")])
    session = encrypted(inner)
    assert await session.get_items() == []
    assert "2 items omitted, not encrypted" in caplog.text
    await session.add_items([message("c")])
    assert texts(await session.get_items()) == ["c"]


@pytest.mark.parametrize(
    "payload",
    [None, 7, "", "gAAAAA", ["list"], {"a": 1}, '","', "\ud83d", "x" * 500_000],
    ids=lambda p: repr(p)[:20],
)
@pytest.mark.parametrize("kid", ["hkdf-v1", "hkdf-v2-aes-gcm", "of the future", None])
@in_event_loop
async def test_a_broken_envelope_hides_no_other(kid: Any, payload: Any) -> None:
    inner = InMemorySession("s")
    await encrypted(inner).add_items([message(n) for n in range(3)])
    await inner.add_items([{"__enc__": 1, "v": 1, "kid": kid, "payload": payload}])
    await encrypted(inner, cipher="aes-gcm").add_items([message(n) for n in range(3, 6)])
    assert texts(await encrypted(inner).get_items()) == ["0", "1", "2", "3", "4", "5"]
    assert texts(await encrypted(inner).get_items(4)) == ["2", "3", "4", "5"]


@pytest.mark.parametrize("plaintext", ["7", "[1]", "null", "{", "", "{},{}", '"text"', "\xff"], ids=repr)
@in_event_loop
async def test_what_was_encrypted_and_is_no_item_hides_no_other(plaintext: str) -> None:
    from .tools import fernet

    inner = InMemorySession("s")
    token = fernet().encrypt(plaintext.encode("latin-1")).decode()
    await encrypted(inner).add_items([message("a")])
    await inner.add_items([{"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": token}] * 2)
    await encrypted(inner).add_items([message("b")])
    session = encrypted(inner)
    assert texts(await session.get_items()) == ["a", "b"]
    assert await session.pop_item() == message("b")
    assert await session.pop_item() == message("a"), "what is no item goes, as a corrupt row does"


@in_event_loop
async def test_what_others_encrypted_of_odd_numbers_is_read() -> None:
    """The SDK stores what is not quite JSON."""
    from .tools import fernet

    token = fernet().encrypt(b'{"role":"user","content":NaN,"n":[Infinity]}').decode()
    inner = InMemorySession("s")
    await inner.add_items([{"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": token}])
    await encrypted(inner).add_items([message("b")])
    first, second = await encrypted(inner).get_items()
    assert json.dumps(first) == '{"role": "user", "content": NaN, "n": [Infinity]}'
    assert second == message("b")


# --- the event loop ---


async def _count_turns(work: Any) -> int:
    """How often others had their turn while something was done."""
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.create_task(take_turns())
    await asyncio.sleep(0)
    turns = 0
    await work
    others.cancel()
    return turns


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_others_have_their_turn_during_long_reads_and_writes(
    cipher: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "_LONGEST_BLOCKING", 0.0)
    session = encrypted(InMemorySession("s"), cipher=cipher)
    items = [message(n) for n in range(20 * BLOCK)]
    assert await _count_turns(session.add_items(items)) >= 20
    assert await _count_turns(session.get_items()) >= 20
    assert await session.get_items() == items


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_large_items_are_opened_on_a_thread(cipher: Any) -> None:
    session = encrypted(InMemorySession("s"), cipher=cipher)
    items = [{**message(n), "image": "x" * 600_000} for n in range(3)]
    await session.add_items(items)
    assert await _count_turns(session.get_items()) > 1
    assert await session.get_items() == items


@in_event_loop
async def test_a_bad_item_far_down_a_long_batch_is_named_and_nothing_is_written() -> None:
    session = encrypted(InMemorySession("s"))
    items: list[Any] = [message(n) for n in range(1000)]
    items[777] = {"content": float("nan")}
    with pytest.raises(TypeError, match="item 777"):
        await session.add_items(items)
    assert await all_stored(session) == []
