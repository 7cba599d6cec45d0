"""Data is exchanged with the SDK's own EncryptedSession, and agents run on ours."""

import asyncio
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import OpenAIResponsesCompactionSession
from agents.extensions.memory import EncryptedSession as SDKEncryptedSession
from hypothesis import given
from hypothesis import strategies as st

from histories import histories, quick
from recollect import InMemorySession, SQLiteSession
from recollect.sessions.encryption import EncryptedSession
from recollect.testing.contract import HOSTILE_IDS, ODD_ITEMS, in_event_loop, message, texts

from ...agents_sdk.scenarios import RUNS, SCENARIOS, both_sessions, in_short, play
from .tools import CIPHERS, KEY, Item, encrypted

FERNET_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
KEYS = ["secret", FERNET_KEY, "中文密钥 😀", "a" * 43 + "="]
SURROGATE = 7  # the SDK cannot encrypt half a character


@pytest.mark.parametrize("key", KEYS, ids=["text", "Fernet", "Chinese", "padded"])
@pytest.mark.parametrize("session_id", [*HOSTILE_IDS[:4], "会话-😀"])
@in_event_loop
async def test_each_reads_what_the_other_has_written(tmp_path: Path, session_id: str, key: str) -> None:
    path = tmp_path / "sessions.db"
    items = [*ODD_ITEMS[:SURROGATE], *ODD_ITEMS[SURROGATE + 1 :]]
    theirs = SDKEncryptedSession(session_id, agents.SQLiteSession(session_id, path), key)
    ours = EncryptedSession(session_id, SQLiteSession(session_id, path), key)
    await theirs.add_items(items)  # type: ignore[arg-type]
    assert repr(await ours.get_items()) == repr(items)
    await ours.add_items([*ODD_ITEMS, message("ours")])
    assert await theirs.get_items() == [*items, *ODD_ITEMS, message("ours")]
    assert await theirs.pop_item() == message("ours")
    assert await ours.pop_item() == ODD_ITEMS[-1]
    assert await ours.get_items(limit=3) == await theirs.get_items(limit=3)
    theirs.close()
    await ours.aclose()


@pytest.mark.parametrize("cipher", CIPHERS)
@in_event_loop
async def test_the_cipher_is_that_of_the_sdk(cipher: Any) -> None:
    inner = InMemorySession("s")
    theirs = SDKEncryptedSession("s", inner, "key")  # type: ignore[arg-type]
    ours = EncryptedSession("s", inner, ["key", "old"], cipher=cipher)
    assert theirs.cipher.decrypt(ours.cipher.encrypt(b"words")) == b"words"
    await theirs.add_items([message("hello")])  # type: ignore[list-item]
    (envelope,) = await inner.get_items()
    assert json.loads(ours.cipher.decrypt(envelope["payload"])) == message("hello")


@quick
@given(histories(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_any_history_and_any_key(history: list[Item], key: str) -> None:
    @in_event_loop
    async def exchange() -> None:
        ours = EncryptedSession("s", InMemorySession("s"), key)
        await ours.add_items(history)
        theirs = SDKEncryptedSession("s", ours.underlying_session, key)  # type: ignore[arg-type]
        assert await theirs.get_items() == history
        await ours.clear_session()
        await theirs.add_items(history)  # type: ignore[arg-type]
        assert await ours.get_items() == history

    exchange()


@in_event_loop
async def test_what_we_have_rotated_the_sdk_reads() -> None:
    inner = InMemorySession("s")
    old = SDKEncryptedSession("s", inner, "old")  # type: ignore[arg-type]
    await old.add_items([message("a"), message("b")])  # type: ignore[list-item]
    await encrypted(inner, "old", cipher="aes-gcm").add_items([message("c")])
    assert await encrypted(inner, ["new", "old"]).rotate() == 3
    assert texts(await SDKEncryptedSession("s", inner, "new").get_items()) == ["a", "b", "c"]  # type: ignore[arg-type]
    assert await old.get_items() == []


@in_event_loop
async def test_the_sdk_passes_over_what_is_of_the_fast_cipher() -> None:
    inner = InMemorySession("s")
    await encrypted(inner, cipher="aes-gcm").add_items([message("fast")])
    await encrypted(inner).add_items([message("compatible")])
    theirs = SDKEncryptedSession("s", inner, KEY)  # type: ignore[arg-type]
    assert texts(await theirs.get_items()) == ["compatible"]


# --- runs ---


@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("run_kind", RUNS)
def test_a_conversation_is_what_it_is_on_the_sdks_session(tmp_path: Path, run_kind: str, cipher: Any) -> None:
    story, run_turn = SCENARIOS["a handoff and tools"], RUNS[run_kind]
    with both_sessions(tmp_path) as (ours, theirs):
        session = encrypted(ours, cipher=cipher)
        assert isinstance(session, agents.Session)
        found, expected = play(session, story, run_turn), play(theirs, story, run_turn)
        assert found == expected
        assert in_short(found.stored[-1]) == story.stored
        stored = asyncio.run(ours.get_items())
    assert all(item.keys() == {"__enc__", "v", "kid", "payload"} for item in stored)


WRAPPED: dict[str, Callable[[Path], Any]] = {
    "ours": lambda folder: SQLiteSession("s", folder / "ours.db"),
    "the SDK's": lambda folder: agents.SQLiteSession("s", folder / "sdk.db"),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
@in_event_loop
async def test_the_sdks_compaction_replaces_through_encryption(tmp_path: Path, wrapped: str) -> None:
    """In one step where the wrapped session can; where not, the SDK clears it and adds anew."""
    session = encrypted(WRAPPED[wrapped](tmp_path))
    await session.add_items([message(n) for n in range(4)])
    compaction = OpenAIResponsesCompactionSession("s", session, client=object())  # type: ignore[arg-type]
    output: Any = [message("the gist")]
    await compaction._replace_underlying_session_items(
        output_items=output, previous_items=await compaction.get_items()
    )
    assert texts(await session.get_items()) == ["the gist"]
    assert "gist" not in repr(await session.underlying_session.get_items())
    await session.aclose()


@in_event_loop
async def test_a_snapshot_for_compaction_holds_items_and_replaces_the_last_of_them() -> None:
    session = encrypted(InMemorySession("s"))
    await session.add_items([message(n) for n in range(4)])
    snapshot = await session._get_compaction_snapshot(3)
    assert texts(snapshot.items) == ["1", "2", "3"]
    assert not snapshot.complete
    assert await snapshot.replace_suffix(1, [message("the gist")])
    assert texts(await session.get_items()) == ["0", "1", "the gist"]
    assert not await snapshot.replace_suffix(1, [message("again")]), "they are no longer there"
    assert await encrypted(agents.SQLiteSession("s"))._get_compaction_snapshot(3) is None
