"""A subclass that changes items on their way in or out is not bypassed by an inherited shortcut."""

from pathlib import Path
from typing import Any

import pytest

from recollect import (
    AdvancedSQLiteSession,
    AppendsOnce,
    EncryptedSession,
    EventLog,
    InMemorySession,
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
    repair,
)
from recollect.sessions.protocol import with_ability
from recollect.testing.contract import in_event_loop, message, texts

CARD = "4111 1111 1111 1111"


def masked(items: list[Any]) -> list[Any]:
    return [{**item, "content": item["content"].replace(CARD, "[card]")} for item in items]


class Masking:
    """Masks card numbers before they are stored."""

    async def add_items(self, items: list[Any]) -> None:
        await super().add_items(masked(items))  # type: ignore[misc]


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


class MaskedEncrypted(Masking, EncryptedSession):
    pass


class MaskedRetrying(Masking, RetryingSession):
    pass


class MaskedStrategy(Masking, StrategySession):
    pass


def sqlite_session(kind: type = SQLiteSession) -> Any:
    return kind(session_id="s")


MASKED = {
    "in memory": lambda: MaskedInMemory("s"),
    "SQLite": lambda: sqlite_session(MaskedSQLite),
    "advanced": lambda: sqlite_session(MaskedAdvanced),
    "encrypted": lambda: MaskedEncrypted("s", sqlite_session(), "key"),
    "retrying": lambda: MaskedRetrying(sqlite_session()),
    "strategy": lambda: MaskedStrategy(sqlite_session(), None),
}
OF_WRITING = [Rewritable, AppendsOnce]


@pytest.mark.parametrize("ability", OF_WRITING)
@pytest.mark.parametrize("kind", MASKED)
@in_event_loop
async def test_writing_past_add_items_is_no_ability(kind: str, ability: Any) -> None:
    session = MASKED[kind]()
    assert with_ability(session, ability) is None
    await session.aclose()


@pytest.mark.parametrize("kind", MASKED)
@in_event_loop
async def test_a_retrying_session_calls_the_override(kind: str) -> None:
    session = MASKED[kind]()
    await RetryingSession(session).add_items([message(CARD)])
    assert texts(await session.get_items()) == ["[card]"]
    await session.aclose()


@in_event_loop
async def test_an_override_of_one_object_counts_too() -> None:
    session = SQLiteSession("s")
    add_items = session.add_items

    async def add_masked(items: list[Any]) -> None:
        await add_items(masked(items))

    session.add_items = add_masked  # type: ignore[method-assign]
    await RetryingSession(session).add_items([message(CARD)])
    assert texts(await session.get_items()) == ["[card]"]
    session.close()


@in_event_loop
async def test_a_tool_that_rewrites_goes_through_the_override() -> None:
    session = MaskedInMemory("s")
    await session.add_items([message(CARD)])
    report = await repair(session)
    assert not report.atomic
    assert CARD not in str(await session.get_items())


class Reversing(SQLiteSession):
    """Stores and reads texts reversed, as a simple cipher would."""

    async def add_items(self, items: list[Any]) -> None:
        await super().add_items([message(item["content"][::-1]) for item in items])

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return [message(item["content"][::-1]) for item in await super().get_items(limit)]

    async def pop_item(self) -> Any:
        item = await super().pop_item()
        return None if item is None else message(item["content"][::-1])


@pytest.mark.parametrize("ability", [*OF_WRITING, Positioned, Noted, PopsChecked])
def test_a_session_that_also_changes_what_is_read_has_no_shortcut(ability: Any) -> None:
    session = Reversing("s")
    assert with_ability(session, ability) is None
    session.close()


@in_event_loop
async def test_a_strategy_and_a_log_read_through_the_override_and_note_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    inner = Reversing("s", path)
    session = StrategySession(inner, Summarize(max_user_turns=2))
    for number in range(6):
        await session.add_items([message(f"the secret number {number}.")])
    assert "the secret number 5." in texts(await session.get_items())
    log = EventLog(":memory:")
    await log.project(inner)
    assert {event.text for event in await log.read("s")} == {f"the secret number {n}." for n in range(6)}
    log.close()
    await session.aclose()
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("s.db*"))
    assert b"secret" not in stored
    assert b"terces" in stored


@in_event_loop
async def test_encryption_pops_through_the_override() -> None:
    popped = []

    class Watched(SQLiteSession):
        async def pop_item(self) -> Any:
            popped.append(await super().pop_item())
            return popped[-1]

    inner = Watched("s")
    session = EncryptedSession("s", inner, "key")
    await session.add_items([message("a"), message("b")])
    assert await session.pop_item() == message("b")
    assert ["__enc__" in item for item in popped] == [True]
    inner.close()


class Logged(SQLiteSession):
    """Overrides without a change to items, and says so."""

    keeps_abilities = True

    async def add_items(self, items: list[Any]) -> None:
        await super().add_items(items)


class LoggedAndMasked(Logged, MaskedSQLite):
    pass


class BothOverridden(MaskedSQLite):
    """Brings its own shortcut, which masks as well."""

    async def add_batch(self, items: list[Any], batch_id: str) -> bool:
        return await super().add_batch(masked(items), batch_id)


@in_event_loop
async def test_a_class_may_keep_its_abilities_or_bring_its_own() -> None:
    logged, both, own = Logged("s"), LoggedAndMasked("s"), BothOverridden("s")
    assert all(with_ability(logged, ability) for ability in (*OF_WRITING, Positioned, Noted))
    assert with_ability(both, AppendsOnce) is None, "the masking class below has not said so"
    assert with_ability(own, AppendsOnce)
    assert with_ability(own, Rewritable) is None
    await RetryingSession(own).add_items([message(CARD)])
    assert texts(await own.get_items()) == ["[card]"]
    for session in (logged, both, own):
        session.close()


@pytest.mark.parametrize("kind", [InMemorySession, SQLiteSession, AdvancedSQLiteSession])
def test_our_own_sessions_have_all_their_abilities(kind: Any) -> None:
    session = kind(session_id="s")
    for each in (session, RetryingSession(session), StrategySession(session, None)):
        for ability in (*OF_WRITING, Positioned, Noted, PopsChecked):
            assert with_ability(each, ability), (each, ability)
    session.close()
