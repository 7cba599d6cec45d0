"""Compaction stores its output through the overrides of a subclass."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    AdvancedSQLiteSession,
    EncryptedSession,
    InMemorySession,
    MissingAbilityError,
    RedisSession,
    SQLAlchemySession,
    SQLiteSession,
)
from recollect.testing.contract import in_event_loop

from .compactor import HISTORY, Compactor, compacting, stored_by_runs
from .scenarios import in_short

CARD = "4111 1111 1111 1111"
KINDS = ["in memory", "SQLite", "advanced", "SQLAlchemy", "PostgreSQL", "Redis"]


def masked(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(CARD, "[card]")
    if isinstance(value, dict):
        return {key: masked(each) for key, each in value.items()}
    return [masked(each) for each in value] if isinstance(value, list) else value


class Masking:
    async def add_items(self, items: list[Any], **context: Any) -> None:
        await super().add_items(masked(items), **context)  # type: ignore[misc]


class MaskedInMemory(Masking, InMemorySession):
    pass


class MaskedSQLite(Masking, SQLiteSession):
    pass


class MaskedAdvanced(Masking, AdvancedSQLiteSession):
    pass


class MaskedSQLAlchemy(Masking, SQLAlchemySession):
    pass


class MaskedRedis(Masking, RedisSession):
    pass


@asynccontextmanager
async def opened(kind: str, folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    session: Any
    if kind in ("SQLAlchemy", "PostgreSQL"):
        url, name = f"sqlite+aiosqlite:///{folder}/s.db", f"t{uuid.uuid4().hex[:8]}"
        if kind == "PostgreSQL":
            url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+asyncpg://")
        tables = {"sessions_table": f"{name}_sessions", "messages_table": f"{name}_messages"}
        session = MaskedSQLAlchemy.from_url("s", url=url, create_tables=True, **tables)
    elif kind == "Redis":
        prefix = f"masked-{uuid.uuid4().hex}"
        session = MaskedRedis.from_url("s", url=request.getfixturevalue("redis_url"), key_prefix=prefix)
    elif kind == "in memory":
        session = MaskedInMemory("s")
    else:
        made = MaskedSQLite if kind == "SQLite" else MaskedAdvanced
        session = made(session_id="s", db_path=folder / "s.db")
    async with session:
        yield session


@pytest.fixture
def tell_the_card(server: Compactor) -> None:
    """What the provider has seen was not masked, and its output is not either."""
    part = {"type": "input_text", "text": f"my card is {CARD}"}
    told = {"id": "m", "type": "message", "role": "user", "status": "completed", "content": [part]}
    server.also = [told]


@pytest.mark.usefixtures("tell_the_card")
@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_a_compaction_by_hand_stores_through_add_items(
    kind: str, tmp_path: Path, server: Compactor, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, tmp_path, request) as underlying:
        async with compacting(server, underlying) as session:
            await session.add_items(HISTORY)  # type: ignore[arg-type]
            await session.run_compaction({"force": True})
        stored = await underlying.get_items()
    assert in_short(stored) == "UUUUUUUK"
    assert "my card is [card]" in repr(stored)
    assert CARD not in repr(stored)


@pytest.mark.usefixtures("tell_the_card")
@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_a_compaction_by_the_runner_stores_through_add_items(
    kind: str, tmp_path: Path, server: Compactor, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, tmp_path, request) as underlying:
        stored = await stored_by_runs(server, underlying, compaction_mode="input")
    assert [in_short(items) for items in stored] == ["UCOA", "UUUK", "UUUKUA", "UUUKUAUA"]
    assert "my card is [card]" in repr(stored)
    assert CARD not in repr(stored)


class Redacting(SQLiteSession):
    """Hides a text whenever items are read."""

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return list(masked(await super().get_items(limit)))


@in_event_loop
async def test_the_provider_is_sent_what_get_items_gives(tmp_path: Path, server: Compactor) -> None:
    underlying = Redacting("s", tmp_path / "s.db")
    await underlying.add_items([{"role": "user", "content": f"my card is {CARD}"}])
    found = await stored_by_runs(server, underlying, compaction_mode="input")
    assert in_short(found[-1]).count("K") == 1
    assert len(server.requests) == 1
    assert "my card is [card]" in repr(server.requests)
    assert CARD not in repr(server.requests)
    underlying.close()


# --- a subclass of the session that encrypts ---


class MaskedEncrypted(Masking, EncryptedSession):
    pass


class RedactingEncrypted(EncryptedSession):
    async def get_items(self, *args: Any, **options: Any) -> list[Any]:
        return list(masked(await super().get_items(*args, **options)))


@pytest.mark.usefixtures("tell_the_card")
@in_event_loop
async def test_around_encryption_the_output_passes_through_add_items(server: Compactor) -> None:
    underlying = MaskedEncrypted("s", SQLiteSession("s"), "key")
    found = await stored_by_runs(server, underlying, compaction_mode="input")
    assert [in_short(items) for items in found] == ["UCOA", "UUUK", "UUUKUA", "UUUKUAUA"]
    async with compacting(server, underlying) as session:
        await session.run_compaction({"force": True})
    stored = repr([*found, await underlying.get_items()])
    assert "my card is [card]" in stored
    assert CARD not in stored
    await underlying.aclose()


@in_event_loop
async def test_around_encryption_the_provider_is_sent_what_get_items_gives(server: Compactor) -> None:
    underlying = RedactingEncrypted("s", SQLiteSession("s"), "key")
    await underlying.add_items([{"role": "user", "content": f"my card is {CARD}"}])
    await stored_by_runs(server, underlying, compaction_mode="input")
    async with compacting(server, underlying) as session:
        await session.run_compaction({"force": True})
    assert "my card is [card]" in repr(server.requests)
    assert CARD not in repr(server.requests)
    await underlying.aclose()


@pytest.mark.parametrize("kind", [MaskedEncrypted, RedactingEncrypted])
@in_event_loop
async def test_within_encryption_a_compaction_that_would_bypass_an_override_is_refused(
    kind: Any, server: Compactor
) -> None:
    store = SQLiteSession("s")
    async with compacting(server, store) as compaction:
        session = kind("s", compaction, "key")
        await session.add_items(HISTORY)
        with pytest.raises(MissingAbilityError, match=r"run_compaction\(\) would bypass its own"):
            await session.run_compaction({"force": True})
        assert server.requests == []
        assert await session.get_items() == HISTORY
    store.close()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kind", [MaskedEncrypted, RedactingEncrypted])
@in_event_loop
async def test_within_encryption_the_runner_skips_a_compaction_that_would_bypass_an_override(
    kind: Any, streamed: bool, server: Compactor, caplog: pytest.LogCaptureFixture
) -> None:
    store = SQLiteSession("s")
    found = await stored_by_runs(
        server, store, around=lambda compaction: kind("s", compaction, "key"), streamed=streamed
    )
    assert [len(items) for items in found] == [4, 10, 12, 14], "every run has ended, and kept its items"
    assert server.requests == []
    assert "automatic compaction skipped: it would bypass" in caplog.text
    store.close()
