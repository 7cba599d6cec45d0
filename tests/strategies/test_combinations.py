"""Strategies combined with encryption, branches and the tools around sessions."""

import asyncio
import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message
from cryptography.fernet import Fernet

from recollect import (
    AdvancedSQLiteSession,
    Compact,
    EncryptedSession,
    InMemorySession,
    Session,
    SQLiteSession,
    StrategySession,
    Summarize,
    SummaryRequest,
    Trim,
    WrongKeyError,
    compress_history,
    export_session,
    import_session,
    undo_turn,
    view_of,
)
from recollect.sessions.encryption.ciphers import derive_key
from recollect.testing.contract import in_event_loop, message, texts

KEY = "a key of some length"


def turn(number: int) -> list[dict[str, Any]]:
    return [message(f"q{number}"), {"role": "assistant", "content": f"a{number}"}]


def open_plain(path: Path) -> Session:
    return SQLiteSession("s", path)


def open_in_memory(_: Path) -> Session:
    return InMemorySession("s")


def open_stack(path: Path) -> Session:
    return EncryptedSession("s", AdvancedSQLiteSession(session_id="s", db_path=path), KEY, ttl=None)


SESSIONS = {"sqlite": open_plain, "in memory": open_in_memory, "encrypted, advanced": open_stack}


@pytest.mark.parametrize("kind", list(SESSIONS))
@pytest.mark.parametrize("strategy", [Trim(8, 4), Summarize(8, 4)], ids=["trim", "summarize"])
@in_event_loop
async def test_an_undo_back_to_the_cut_shows_what_is_left(kind: str, strategy: Any, tmp_path: Path) -> None:
    inner = SESSIONS[kind](tmp_path / "s.db")
    session = StrategySession(inner, strategy)
    for number in range(1, 10):
        await session.add_items(turn(number))
    assert len(await session.get_items()) < 18
    for left in (8, 7, 6, 5):
        await undo_turn(inner)
        assert await session.get_items() == view_of(await inner.get_items(), strategy)
        assert len(await session.get_items()) == 2 * left
    await session.aclose()


@pytest.mark.parametrize(
    "strategy", [Trim(2), Summarize(2), Compact(2, keep=1)], ids=["trim", "sum", "compact"]
)
@in_event_loop
async def test_an_export_is_of_the_log_and_not_of_the_view(strategy: Any, tmp_path: Path) -> None:
    session = StrategySession(SQLiteSession("s", tmp_path / "s.db"), strategy)
    for number in range(10):
        await session.add_items(turn(number))
    assert await export_session(session, tmp_path / "s.json") == 20
    await import_session(session, tmp_path / "s.json")
    assert len(await session.wrapped.get_items()) == 20
    await session.aclose()


def envelope(item: dict[str, Any], seconds_ago: int) -> dict[str, Any]:
    """An item as the SDK encrypted it at that time."""
    key = derive_key(KEY.encode(), "s", b"agents.session-store.hkdf.v1")
    made_at = int(time.time()) - seconds_ago
    token = Fernet(urlsafe_b64encode(key)).encrypt_at_time(json.dumps(item).encode(), made_at)
    return {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": token.decode()}


@in_event_loop
async def test_what_expires_takes_its_partner_with_it() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    inner = InMemorySession("s")
    await inner.add_items([envelope(message("q"), 101), envelope(call, 101)])
    await inner.add_items([envelope(output, 5), envelope({"role": "assistant", "content": "done"}, 5)])
    session = EncryptedSession("s", inner, KEY, ttl=100)
    assert texts(await session.get_items()) == ["done"]
    assert len(await session.get_items(4)) == 2, "a limit is literal"


@in_event_loop
async def test_a_strategy_inside_the_encryption_is_refused() -> None:
    with pytest.raises(TypeError, match="wrap the encrypted session in the strategy"):
        EncryptedSession("s", StrategySession(InMemorySession("s"), Trim(2)), KEY)


@in_event_loop
async def test_a_wrong_key_does_not_write() -> None:
    inner = InMemorySession("s")
    await EncryptedSession("s", inner, KEY).add_items(turn(1))
    before = await inner.get_items()
    wrong = EncryptedSession("s", inner, "another key")
    with pytest.raises(WrongKeyError):
        await wrong.add_items(turn(2))
    assert await inner.get_items() == before


async def telling(request: SummaryRequest) -> str:
    said = " ".join(text for text in texts(request.items) if text)
    return f"{request.previous or ''} {said}"


@pytest.mark.parametrize("how", ["revised", "branch deleted", "branch cleared"])
@in_event_loop
async def test_a_summary_does_not_outlive_what_was_taken_away(how: str, tmp_path: Path) -> None:
    inner = AdvancedSQLiteSession(session_id="s", db_path=tmp_path / "s.db")
    await inner.add_items(turn(0))
    await inner.create_branch_from_turn(1, "side")
    session = StrategySession(inner, Summarize(1), summarizer=telling)
    await session.add_items([message("the secret word"), *turn(1), *turn(2)])
    assert "the secret word" in str(await session.get_items())
    if how == "revised":
        await inner.revise_items(lambda items: [None if "secret" in str(item) else item for item in items])
        assert "the secret word" not in str(await session.get_items())
    elif how == "branch deleted":
        await inner.switch_to_branch("main")
        await inner.delete_branch("side")
    else:
        await inner.clear_session()
    await session.aclose()
    async with AdvancedSQLiteSession(session_id="s", db_path=tmp_path / "s.db") as again:
        rows = await again._engine.fetch(
            f'SELECT data FROM "{again._queries.tables.notes}"', (), lambda rows: [row[0] for row in rows]
        )
    assert all("secret" not in data for data in rows)


@in_event_loop
async def test_usage_stays_with_its_turn_when_the_history_is_compressed() -> None:
    session = AdvancedSQLiteSession(session_id="s", store_usage=True)
    answers = [[assistant_message("yes", item_id=f"msg_{number}")] for number in range(5)]
    agent = Agent(name="Assistant", model=ScriptedModel(answers))
    for number in range(5):
        await Runner.run(agent, f"q{number}", session=session)
    expected = await session.get_turn_usage(5)
    before = await session.get_turn_usage()
    await compress_history(session, target_count=4)
    turns = await session.get_conversation_turns()
    assert [(each["turn"], each["content"]) for each in turns] == [(1, "q3"), (2, "q4")]
    after = await session.get_turn_usage()
    assert [each["user_turn_number"] for each in after] == [1, 2]
    assert await session.get_turn_usage(2) == expected
    assert len(before) == 5
    await session.aclose()


def test_summaries_are_made_although_the_event_loop_stands_still_between_runs() -> None:
    made: list[int] = []

    async def slow(request: SummaryRequest) -> str:
        await asyncio.sleep(0.05)
        made.append(len(request.items))
        return "so far"

    inner = InMemorySession("s")
    session = StrategySession(inner, Summarize(2, 1), summarizer=slow, summary_timeout=0.3)
    loop = asyncio.new_event_loop()
    for number in range(8):
        loop.run_until_complete(session.get_items())
        loop.run_until_complete(session.add_items(turn(number)))
        time.sleep(0.35)  # a pause of the user, longer than a summary may take
    view = loop.run_until_complete(session.get_items())
    assert made
    assert "so far" in texts(view)
    loop.run_until_complete(session.aclose())
    loop.close()


@in_event_loop
async def test_what_the_wrapped_session_takes_is_passed_on() -> None:
    session = StrategySession(AdvancedSQLiteSession(session_id="s"), Trim(2))
    for number in range(5):
        await session.add_items(turn(number))
    assert len(await session.get_items(branch_id="main")) == 10
    assert len(await session.get_items(at_turn=1)) == 2
    await session.create_branch_from_turn(3, "side")
    await session.clear_branch()
    assert [branch["branch_id"] for branch in await session.list_branches()] == ["main", "side"]
    await session.clear_session()
    assert await session.list_branches() == []
    await session.aclose()
