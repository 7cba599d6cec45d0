"""The SDK's wrappers hand on what they do not know: nothing of ours may go past their encryption by it."""

from pathlib import Path
from typing import Any

import pytest
from agents.extensions.memory import EncryptedSession as Theirs

from recollect import (
    EventLog,
    RetryingSession,
    SQLiteSession,
    StrategySession,
    Summarize,
    Trim,
    repair,
)
from recollect.testing.contract import in_event_loop, message, texts


@pytest.fixture
def inner(tmp_path: Path) -> SQLiteSession:
    return SQLiteSession("s", tmp_path / "sessions.db")


@pytest.fixture
def theirs(inner: SQLiteSession) -> Any:
    return Theirs("s", inner, "a key")


def stored_bytes(session: SQLiteSession) -> bytes:
    path = Path(session.db_path)
    return b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))


@in_event_loop
async def test_a_retrying_session_encrypts(inner: SQLiteSession, theirs: Any) -> None:
    session = RetryingSession(theirs)
    await session.add_items([message("a secret")])
    assert texts(await session.get_items()) == ["a secret"]
    assert all("__enc__" in item for item in await inner.get_items())
    assert b"a secret" not in stored_bytes(inner)
    with pytest.raises(AttributeError):
        await session.add_batch([message("a secret")], "batch")
    await inner.aclose()


@pytest.mark.parametrize("strategy", [Trim(max_user_turns=2), Summarize(max_user_turns=2)])
@in_event_loop
async def test_a_strategy_shows_what_is_decrypted_and_notes_nothing(
    inner: SQLiteSession, theirs: Any, strategy: Any
) -> None:
    session = StrategySession(theirs, strategy)
    for number in range(6):
        await session.add_items([message(f"the secret number {number}.")])
    assert "the secret number 5." in texts(await session.get_items())
    assert not any("__enc__" in item for item in await session.get_items())
    assert b"secret" not in stored_bytes(inner)
    with pytest.raises(AttributeError):
        await session.replace_items([message("a secret")])
    await session.aclose()
    await inner.aclose()


@in_event_loop
async def test_tools_and_logs_do_not_go_past_the_encryption(inner: SQLiteSession, theirs: Any) -> None:
    await theirs.add_items([message("a"), message("b")])
    unanswered = {"type": "function_call", "call_id": "c1", "name": "secret tool", "arguments": "{}"}
    await theirs.add_items([unanswered, message("c")])
    report = await repair(theirs)
    assert (report.removed, report.atomic) == (1, False)
    assert all("__enc__" in item for item in await inner.get_items())
    log = EventLog(":memory:")
    await log.project(theirs)
    assert [event.text for event in await log.read("s")] == ["a", "b", "c"]
    log.close()
    await inner.aclose()
