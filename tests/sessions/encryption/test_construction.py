"""Making and closing an encrypted session: what is refused, and what is the wrapped session's own."""

import math
import subprocess
import sys
from typing import Any

import agents
import openai
import pytest
from agents.extensions.memory import AdvancedSQLiteSession

from recollect import (
    InMemorySession,
    OpenAIConversationsSession,
    RetryingSession,
    SessionClosedError,
    SessionSettings,
    SQLiteSession,
)
from recollect.sessions.encryption import EncryptedSession
from recollect.testing.contract import in_event_loop, message, texts

from .tools import KEY, encrypted


def conversations(kind: Any) -> Any:
    client = openai.AsyncOpenAI(api_key="unused", base_url="http://127.0.0.1:9")
    return kind(conversation_id="conv_1", openai_client=client)


@pytest.mark.parametrize("kind", [OpenAIConversationsSession, agents.OpenAIConversationsSession])
@pytest.mark.parametrize("wrap", [lambda session: session, RetryingSession], ids=["bare", "wrapped"])
def test_a_conversations_session_cannot_be_wrapped(kind: Any, wrap: Any) -> None:
    with pytest.raises(TypeError, match="OpenAIConversationsSession cannot be encrypted"):
        EncryptedSession("s", wrap(conversations(kind)), KEY)


@pytest.mark.parametrize("bad", [None, "a session", 7, ["list"]], ids=repr)
def test_what_is_no_session_cannot_be_wrapped(bad: Any) -> None:
    with pytest.raises(TypeError, match="underlying_session must be a session"):
        EncryptedSession("s", bad, KEY)


@pytest.mark.parametrize("bad", [0, -1, -0.5, math.nan, math.inf, True, False, "600", [600]], ids=repr)
def test_a_time_to_live_without_sense_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="ttl must be more than 0 seconds"):
        EncryptedSession("s", InMemorySession("s"), KEY, bad)


@pytest.mark.parametrize("ttl", [0.5, 1, 10**100, None])
@in_event_loop
async def test_any_other_time_to_live_is_taken(ttl: Any) -> None:
    session = EncryptedSession("s", InMemorySession("s"), KEY, ttl)
    await session.add_items([message("a")])
    assert session.ttl == ttl
    assert texts(await session.get_items()) == ["a"]


@pytest.mark.parametrize("bad", ["rot13", "", None, 7, "FERNET"], ids=repr)
def test_an_unknown_cipher_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="cipher must be one of fernet, aes-gcm"):
        EncryptedSession("s", InMemorySession("s"), KEY, cipher=bad)


@pytest.mark.parametrize("bad", ["", None, 7, "nul \0", "half \ud83d"], ids=repr)
def test_a_bad_id_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match="session_id"):
        EncryptedSession(bad, InMemorySession("s"), KEY)


def test_settings_are_those_of_the_session_underneath() -> None:
    inner = InMemorySession("inner", SessionSettings(limit=3))
    session = EncryptedSession("outer", inner, KEY)
    assert session.session_id == "outer"
    assert inner.session_id == "inner"
    assert session.underlying_session is inner
    assert session.session_settings is inner.session_settings
    session.session_settings = SessionSettings(limit=5)
    assert inner.session_settings.limit == 5


@in_event_loop
async def test_an_ability_is_there_if_the_wrapped_session_has_it() -> None:
    theirs = encrypted(agents.SQLiteSession("s"))
    ours = encrypted(InMemorySession("s"))
    names = (
        "transform_items",
        "revise_items",
        "read_after",
        "add_batch",
        "take_lease",
        "get_note",
        "pop_checked",
    )
    for name in names:
        assert hasattr(ours, name)
        assert not hasattr(theirs, name)
    for name in ("create_branch_from_turn", "find_turns_by_content", "no_such_thing", "_rows", "wrapper"):
        assert not hasattr(ours, name)
    with pytest.raises(AttributeError, match="EncryptedSession"):
        _ = ours.no_such_thing
    await theirs.aclose()


@in_event_loop
async def test_turns_are_not_looked_for_in_envelopes() -> None:
    """The SDK's advanced session searches what it stores; through encryption it would find nothing."""
    inner = AdvancedSQLiteSession(session_id="s", create_tables=True)
    session = encrypted(inner)
    await session.add_items([message("a"), message("b")])
    assert await session.create_branch_from_turn(2, "other") == "other"
    assert texts(await session.get_items(branch_id="main")) == ["a", "b"]
    assert hasattr(inner, "find_turns_by_content")
    for name in ("find_turns_by_content", "get_conversation_turns", "create_branch_from_content"):
        assert not hasattr(session, name)
    await session.aclose()


@in_event_loop
async def test_closing_closes_what_is_wrapped_the_way_it_does_it() -> None:
    inner = SQLiteSession("s")
    session = encrypted(inner)
    transform = session.transform_items
    assert session.close() is None
    session.close()
    assert session.closed
    assert inner.closed
    for use in (session.get_items, session.rotate, session.purge_expired, session.get_metadata):
        with pytest.raises(SessionClosedError):
            await use()
    with pytest.raises(SessionClosedError):
        await transform(lambda items: items)
    await session.aclose()


def test_the_extra_is_named_where_it_is_missing() -> None:
    script = (
        "import sys; sys.modules['cryptography'] = None\n"  # what Python takes for: not to be had
        "import recollect\n"
        "try: import recollect.sessions.encryption\n"
        "except recollect.MissingExtraError as error: print(error)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (
        "EncryptedSession needs the extra 'encrypt': pip install 'recollect-memory[encrypt]'" in ended.stdout
    )


@in_event_loop
async def test_encryption_within_encryption() -> None:
    session = EncryptedSession("s", encrypted(InMemorySession("s"), "inner"), "outer", cipher="aes-gcm")
    await session.add_items([message(n) for n in range(3)])
    assert await session.pop_item() == message(2)
    await session.transform_items(lambda items: items[1:])
    assert texts(await session.get_items()) == ["1"]
