"""One function, a URL for each backend; and the manager on a server."""

from pathlib import Path

import pytest

from recollect import (
    InMemorySession,
    OpenAIConversationsSession,
    RedisSession,
    SessionManager,
    SQLAlchemySession,
    SQLiteSession,
    open_session,
)
from recollect.testing.contract import in_event_loop, message, texts


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("{folder}/a.db", SQLiteSession),
        ("sqlite:///{folder}/a.db", SQLiteSession),
        (":memory:", SQLiteSession),
        ("sqlite+aiosqlite:///{folder}/a.db", SQLAlchemySession),
        ("postgresql://user@127.0.0.1:1/x", SQLAlchemySession),
        ("postgresql+psycopg://user@127.0.0.1:1/x", SQLAlchemySession),
        ("redis://127.0.0.1:1", RedisSession),
        ("memory://", InMemorySession),
    ],
)
@in_event_loop
async def test_the_url_says_which_session_it_is(url: str, kind: type, tmp_path: Path) -> None:
    session = open_session(url.format(folder=tmp_path), "s")
    assert type(session) is kind
    assert session.session_id == "s"
    await session.aclose()  # type: ignore[attr-defined]


@in_event_loop
async def test_the_id_of_an_openai_session_is_its_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-used")
    session = open_session("openai://", "conv_1")
    assert type(session) is OpenAIConversationsSession
    assert session.session_id == "conv_1"
    await session.aclose()


@in_event_loop
async def test_options_reach_the_session(tmp_path: Path) -> None:
    session = open_session(str(tmp_path / "a.db"), "s", session_settings={"limit": 1}, durability="normal")
    await session.add_items([message("a"), message("b")])
    assert texts(await session.get_items()) == ["b"]


@pytest.mark.parametrize("url", ["ftp://user:my-secret@example.com/x", "nonsense://user:my-secret@x"])
def test_the_url_of_something_else_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises((ValueError, ImportError)) as refused:
        open_session(url, "s")
    assert "my-secret" not in str(refused.value)


@in_event_loop
async def test_a_manager_lists_and_cleans_up_on_a_server(postgres_url: str) -> None:
    manager = SessionManager(
        postgres_url, create_tables=True, sessions_table="managed_sessions", messages_table="managed_messages"
    )
    for user in ("ada", "bob", "cy"):
        session = manager.get_session(user)
        assert manager.get_session(user) is session
        await session.add_items([message(f"I am {user}")])
    page = await manager.list_sessions(limit=2)
    rest = await manager.list_sessions(limit=2, cursor=page.next_cursor)
    found = [*page.sessions, *rest.sessions]
    assert sorted(info.session_id for info in found) == ["ada_default", "bob_default", "cy_default"]
    assert all(info.item_count == 1 and info.updated_at and info.updated_at.tzinfo for info in found)
    assert [info.session_id for info in (await manager.list_sessions(user_id="bob")).sessions] == [
        "bob_default"
    ]
    assert await manager.cleanup_old_sessions(days=1) == 0
    manager.close_session("ada")
    assert await manager.cleanup_old_sessions(days=0) == 3
    assert (await manager.list_sessions()).sessions == []
    assert await manager.get_session("ada").get_items() == []
    manager.close()
