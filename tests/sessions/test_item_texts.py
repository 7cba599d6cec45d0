"""A subclass that overrides `_serialize_item` and `_deserialize_item` decides what is stored of an item."""

import base64
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import RedisSession as SDKRedisSession
from agents.extensions.memory import SQLAlchemySession as SDKSQLAlchemySession
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import (
    AdvancedSQLAlchemySession,
    AppendsOnce,
    EncryptedSession,
    MissingAbilityError,
    Noted,
    PopsChecked,
    Positioned,
    RedisSession,
    RetryingSession,
    Rewritable,
    SQLAlchemySession,
    SQLiteSession,
    StrategySession,
    Summarize,
)
from recollect.sessions.protocol import with_ability
from recollect.testing import SessionContract
from recollect.testing.contract import in_event_loop, message, texts

SECRET = "the secret word"


class WrongTextError(Exception):
    """The text was not made by this class."""


class Hiding:
    """Stores base64 of the JSON: a stand-in for a cipher."""

    async def _serialize_item(self, item: Any) -> str:
        return "b64:" + base64.b64encode(json.dumps(item).encode()).decode()

    async def _deserialize_item(self, item: str) -> Any:
        if item == "corrupt":
            raise json.JSONDecodeError("corrupt", "", 0)
        if not item.startswith("b64:"):
            raise WrongTextError
        return json.loads(base64.b64decode(item[4:]))


class HidingSQLite(Hiding, SQLiteSession):
    pass


class HidingSQLAlchemy(Hiding, SQLAlchemySession):
    pass


class HidingAdvanced(Hiding, AdvancedSQLAlchemySession):
    pass


class HidingRedis(Hiding, RedisSession):
    pass


class TheirHidingSQLAlchemy(Hiding, SDKSQLAlchemySession):
    pass


class TheirHidingRedis(Hiding, SDKRedisSession):
    pass


class Store:
    """One place, and the sessions in it: ours with the override, ours without, and the SDK's with it."""

    def __init__(
        self, make: Callable[[type], Any], kinds: tuple[type, type, type | None], close: Any
    ) -> None:
        self.hiding, self.plain = make(kinds[0]), make(kinds[1])
        self.theirs = make(kinds[2]) if kinds[2] else None
        self._close: Callable[[], Awaitable[None]] = close

    async def add_raw(self, text: str) -> None:
        """Store a text as it is, through a plain session."""

        async def unchanged(_: Any) -> str:
            return text

        serialize, self.plain._serialize_item = self.plain._serialize_item, unchanged
        await self.plain.add_items([message("")])
        self.plain._serialize_item = serialize

    async def raw(self) -> list[str]:
        """The stored texts."""

        async def read(text: str) -> Any:
            return {"text": text}

        deserialize, self.plain._deserialize_item = self.plain._deserialize_item, read
        found = await self.plain.get_items()
        self.plain._deserialize_item = deserialize
        return [item["text"] for item in found]

    async def close(self) -> None:
        for session in (self.hiding, self.plain):
            await session.aclose()
        await self._close()


async def _nothing() -> None:
    pass


KINDS = ["SQLite", "SQLAlchemy", "advanced", "PostgreSQL", "Redis"]


@asynccontextmanager
async def opened(kind: str, folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    if kind == "SQLite":
        store = Store(lambda each: each("s", folder / "s.db"), (HidingSQLite, SQLiteSession, None), _nothing)
    elif kind == "Redis":
        client: Any = Redis.from_url(request.getfixturevalue("redis_url"))
        prefix = f"texts-{uuid.uuid4().hex}"
        kinds = (HidingRedis, RedisSession, TheirHidingRedis)
        store = Store(lambda each: each("s", redis_client=client, key_prefix=prefix), kinds, client.aclose)
    else:
        store = _on_sqlalchemy(kind, folder, request)
    try:
        yield store
    finally:
        await store.close()


def _on_sqlalchemy(kind: str, folder: Path, request: pytest.FixtureRequest) -> Store:
    url = f"sqlite+aiosqlite:///{folder}/s.db"
    tables: dict[str, str] = {}
    if kind == "PostgreSQL":
        url = request.getfixturevalue("postgres_url").replace("postgresql://", "postgresql+asyncpg://")
        names = (f"t{uuid.uuid4().hex[:8]}_{name}" for name in ("sessions", "messages"))
        tables = dict(zip(("sessions_table", "messages_table"), names, strict=True))
    engine = create_async_engine(url)
    kinds = (HidingSQLAlchemy, SQLAlchemySession, TheirHidingSQLAlchemy)
    if kind == "advanced":
        kinds = (HidingAdvanced, AdvancedSQLAlchemySession, None)  # type: ignore[assignment]
    make = lambda each: each("s", engine=engine, create_tables=True, **tables)  # noqa: E731
    return Store(make, kinds, engine.dispose)


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_what_is_stored_is_what_the_override_made(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, tmp_path, request) as store:
        items = [message(f"{SECRET} {n}") for n in range(5)]
        await store.hiding.add_items(items[:3])
        assert await store.hiding.add_batch(items[3:], "batch")
        assert all(text.startswith("b64:") for text in await store.raw())
        assert await store.hiding.get_items() == items
        assert await store.hiding.get_items(2) == items[3:]
        assert await store.hiding.pop_item() == items[4]
        if store.theirs is not None:
            assert await store.theirs.get_items() == items[:4]
            await store.theirs.add_items([message("from the SDK")])
            assert await store.hiding.pop_item() == message("from the SDK")
            assert await store.theirs.pop_item() == items[3]
        await store.hiding.clear_session()
        assert await store.hiding.pop_item() is None


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_wrappers_do_not_bypass_it(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    async with opened(kind, tmp_path, request) as store:
        for ability in (Rewritable, Positioned, PopsChecked, Noted):
            assert with_ability(store.hiding, ability) is None
        assert with_ability(store.hiding, AppendsOnce)
        session = StrategySession(RetryingSession(store.hiding), Summarize(max_user_turns=2))
        for number in range(6):
            await session.add_items([message(f"{SECRET} {number}.")])
        assert f"{SECRET} 5." in texts(await session.get_items())
        calls: list[Any] = [
            store.hiding.transform_items(lambda _: [message(SECRET)]),
            store.hiding.replace_items([message(SECRET)]),
            store.hiding.revise_items(lambda items: items),
            store.hiding.set_note("summary", message(SECRET), 0),
            store.hiding.pop_checked(lambda _: True),
        ]
        for call in calls:
            with pytest.raises(MissingAbilityError, match=r"would bypass its own _serialize_item\(\)"):
                await call
        assert not await store.hiding._atomic_replace_items([message(SECRET)])
        assert await store.hiding._get_compaction_snapshot(10) is None
        outer = EncryptedSession("s", store.hiding, "key")
        await outer.add_items([message(SECRET)])
        assert await outer.pop_item() == message(SECRET)
        assert all(text.startswith("b64:") for text in await store.raw())


@pytest.mark.parametrize("kind", KINDS)
@in_event_loop
async def test_corrupt_texts_are_left_out_and_an_error_of_the_override_removes_nothing(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with opened(kind, tmp_path, request) as store:
        await store.hiding.add_items([message("a"), message("b")])
        await store.add_raw("corrupt")
        assert texts(await store.hiding.get_items(1)) == ["b"]
        assert texts(await store.hiding.get_items()) == ["a", "b"]
        assert await store.hiding.pop_item() == message("b")
        assert len(await store.raw()) == 1
        await store.add_raw('{"role": "user", "content": "not of this class"}')
        for use in (store.hiding.get_items, store.hiding.pop_item):
            with pytest.raises(WrongTextError):
                await use()
        assert len(await store.raw()) == 2


@in_event_loop
async def test_a_text_that_is_none_is_refused() -> None:
    class Bytes(SQLiteSession):
        async def _serialize_item(self, item: Any) -> Any:
            return json.dumps(item).encode()

    session = Bytes("s")
    with pytest.raises(TypeError, match=r"_serialize_item\(\) must return a string, not bytes"):
        await session.add_items([message(SECRET)])
    assert await session.get_items() == []
    session.close()


@in_event_loop
async def test_ensure_ascii_leaves_the_texts_of_a_subclass_as_they_are(tmp_path: Path) -> None:
    class Marked(SQLAlchemySession):
        async def _serialize_item(self, item: Any) -> str:
            return "é" + json.dumps(item)

        async def _deserialize_item(self, item: str) -> Any:
            assert item.startswith("é")
            return json.loads(item[1:])

    url = f"sqlite+aiosqlite:///{tmp_path / 'marked.db'}"
    session = Marked.from_url("s", url=url, create_tables=True, ensure_ascii=True)
    await session.add_items([message("ö")])
    assert await session.get_items() == [message("ö")]
    await session.close()


class TestHidingSQLite(SessionContract):
    """The contract holds for a session whose texts a subclass makes."""

    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> None:
        self.path = tmp_path / "s.db"

    async def open_session(self, session_id: str) -> Any:
        return HidingSQLite(session_id, self.path)
