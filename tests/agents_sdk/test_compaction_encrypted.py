"""Compaction and encryption, either way around: what has expired is not sent, what no key opens stays."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.extensions.memory import EncryptedSession as TheirEncrypted

from recollect import EncryptedSession, InMemorySession, SQLAlchemySession, SQLiteSession, WrongKeyError
from recollect.testing.contract import in_event_loop, message, texts

from ..sessions.encryption.tools import KEY, encrypted, envelope
from .compactor import HISTORY, Compactor, compacting, stored_by_runs
from .scenarios import both_sessions, in_short


def ours(inner: Any, **options: Any) -> Any:
    return EncryptedSession("s", inner, KEY, **options)


def theirs(inner: Any, **options: Any) -> Any:
    return TheirEncrypted("s", inner, KEY, **options)


def of_another_key(stored: list[Any]) -> list[Any]:
    return [item for item in stored if item in FOREIGN]


FOREIGN = [envelope(message(f"another's {n}"), key="another key") for n in range(2)]
EXPIRED = [envelope(message(f"expired {n}"), age=700) for n in range(2)]
STORES: dict[str, Callable[[Path], Any]] = {
    "in memory": lambda _: InMemorySession("s"),
    "SQLite": lambda folder: SQLiteSession("s", folder / "s.db"),
    "SQLAlchemy": lambda folder: SQLAlchemySession.from_url(
        "s", url=f"sqlite+aiosqlite:///{folder}/s.db", create_tables=True
    ),
}
EACH_STORE = pytest.mark.parametrize("kind", STORES)
EACH_CIPHER = pytest.mark.parametrize("encrypt", [ours, theirs], ids=["our encryption", "the SDK's"])


@EACH_CIPHER
@EACH_STORE
@in_event_loop
async def test_runs_compact_within_encryption_and_keep_what_no_key_opens(
    kind: str, encrypt: Any, tmp_path: Path, server: Compactor
) -> None:
    underlying = STORES[kind](tmp_path)
    await underlying.add_items([*EXPIRED, *FOREIGN])
    found = await stored_by_runs(server, underlying, around=encrypt, compaction_mode="input")
    assert len(server.requests) == 1
    assert in_short(server.requests[0]["input"]) == "UCOAUCCOOA"
    assert of_another_key(found[-1]) == FOREIGN
    assert in_short(await ours(underlying).get_items()) == "UUKUAUA"
    assert all("__enc__" in item for item in found[-1])
    await underlying.aclose()


@EACH_CIPHER
@EACH_STORE
@in_event_loop
async def test_runs_compact_around_encryption_and_keep_what_no_key_opens(
    kind: str, encrypt: Any, tmp_path: Path, server: Compactor
) -> None:
    store = STORES[kind](tmp_path)
    await store.add_items([*EXPIRED, *FOREIGN])
    found = await stored_by_runs(server, encrypt(store), compaction_mode="input")
    assert in_short(server.requests[0]["input"]) == "UCOAUCCOOA"
    assert in_short(found[-1]) == "UUKUAUA"
    assert of_another_key(await store.get_items()) == FOREIGN
    await store.aclose()


@in_event_loop
async def test_the_sdks_encryption_removes_an_expired_prefix_as_on_its_own_session(
    tmp_path: Path, server: Compactor
) -> None:
    left = []
    with both_sessions(tmp_path) as sessions:
        for store in sessions:
            await store.add_items([*EXPIRED, envelope(message("a"))])
            await stored_by_runs(server, theirs(store), compaction_mode="input")
            stored = await store.get_items()
            left.append((len(stored), [item for item in stored if item in EXPIRED]))
    assert left[0] == left[1]
    assert left[0][1] == []


@pytest.mark.parametrize("streamed", [False, True])
@in_event_loop
async def test_within_encryption_runs_compact_as_with_the_sdks_classes(
    tmp_path: Path, server: Compactor, streamed: bool
) -> None:
    with both_sessions(tmp_path) as (store, their_store):
        await stored_by_runs(server, store, around=ours, streamed=streamed, compaction_mode="input")
        requests, server.requests = server.requests, []
        await stored_by_runs(server, their_store, around=theirs, streamed=streamed, compaction_mode="input")
        assert requests == server.requests
        assert len(requests) == 1
        assert await ours(store).get_items() == await theirs(their_store).get_items()


@in_event_loop
async def test_expired_items_are_not_sent_from_a_cache(tmp_path: Path, server: Compactor) -> None:
    with both_sessions(tmp_path) as (store, _):
        await store.add_items([envelope(message("soon to expire"), age=500)])
        session = ours(store, ttl=600)
        async with compacting(server, session) as compaction:
            await compaction.add_items([message("new")])  # type: ignore[list-item]
            await compaction.run_compaction({})  # reads the candidates, and may keep them
            session.ttl = 400
            await compaction.run_compaction({"force": True})
    assert [request["input"] for request in server.requests] == [[message("new")]]


# --- compaction by hand ---


@EACH_STORE
@in_event_loop
async def test_by_hand_within_encryption(kind: str, tmp_path: Path, server: Compactor) -> None:
    store = STORES[kind](tmp_path)
    await store.add_items([*EXPIRED, *FOREIGN])
    async with compacting(server, store) as compaction:
        session = ours(compaction)
        await session.add_items(HISTORY)
        await session.run_compaction({"force": True})
        assert server.requests[0]["input"] == HISTORY
        assert in_short(await session.get_items()) == "UUUUUUK"
        assert of_another_key(await store.get_items()) == FOREIGN
        assert all("__enc__" in item for item in await store.get_items())
    await store.aclose()


@in_event_loop
async def test_by_hand_around_encryption_a_session_that_would_be_cleared_is_left_alone(
    server: Compactor,
) -> None:
    store: Any = agents.SQLiteSession("s")
    await store.add_items([*EXPIRED, *FOREIGN])
    session = ours(store)
    async with compacting(server, session) as compaction:
        await compaction.add_items(HISTORY)  # type: ignore[arg-type]
        before = await store.get_items()
        with pytest.raises(WrongKeyError, match="compaction would remove them"):
            await compaction.run_compaction({"force": True})
        assert await store.get_items() == before
    store.close()


# --- what else a session that compacts has ---


@in_event_loop
async def test_what_the_wrapped_session_is_set_to_can_be_read(server: Compactor) -> None:
    store = SQLiteSession("s")
    async with compacting(server, store, model="gpt-5", max_rollback_items=7) as compaction:
        session = ours(compaction)
        assert session.model == "gpt-5"
        assert session.compaction_mode == "auto"
        assert session.max_rollback_items == 7
        assert ours(store).db_path == ":memory:"
        for absent in ("should_trigger_compaction", "_session_items", "nothing"):
            assert not hasattr(session, absent)
    store.close()


@in_event_loop
async def test_a_session_that_does_not_compact_says_so() -> None:
    session = encrypted(SQLiteSession("s"))
    for name in ("run_compaction", "_defer_compaction", "_get_items_with_generation"):
        assert not hasattr(session, name)
    await session.aclose()


@in_event_loop
async def test_methods_of_the_wrapped_session_that_take_contents_are_not_passed_on() -> None:
    class Noting(SQLiteSession):
        async def add_remark(self, text: str) -> None:
            await self.add_items([message(text)])

    inner = Noting("s")
    assert not hasattr(encrypted(inner), "add_remark")
    await inner.add_remark("in clear")
    assert texts(await inner.get_items()) == ["in clear"]
    inner.close()
