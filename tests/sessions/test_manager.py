"""The manager: a handle for each pair, listings that miss nothing, and cleaning up exactly what is old."""

import asyncio
import itertools
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import (
    SessionClosedError,
    SessionInfo,
    SessionManager,
    SessionMetadata,
    SessionPage,
    SQLiteSession,
)
from recollect.testing.contract import in_event_loop, message, texts

from ..histories import quick


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def manager(path: Path) -> Iterator[SessionManager]:
    manager = SessionManager(path)
    yield manager
    manager.close()


def run_sql(path: Path, sql: str, *parameter_sets: tuple[Any, ...]) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys=ON")
        if not parameter_sets:
            return connection.execute(sql).fetchall()
        connection.executemany(sql, parameter_sets)
        return []


def days_ago(days: float) -> str:
    """A time as SQLite's CURRENT_TIMESTAMP writes it."""
    return f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d %H:%M:%S}"


async def add_sessions(manager: SessionManager, path: Path, times: dict[str, str]) -> None:
    """Make a session with one item for each user, updated at the given time."""
    for user_id in times:
        await manager.get_session(user_id).add_items([message(user_id)])
    set_time = "UPDATE agent_sessions SET updated_at = ? WHERE session_id = ?"
    run_sql(path, set_time, *((time, f"{user_id}_default") for user_id, time in times.items()))


def ids(page: SessionPage) -> list[str]:
    return [info.session_id for info in page.sessions]


async def all_pages(manager: SessionManager, **options: Any) -> list[list[str]]:
    pages, cursor = [], None
    while True:
        page = await manager.list_sessions(cursor=cursor, **options)
        pages.append(ids(page))
        cursor = page.next_cursor
        if cursor is None:
            return pages


# --- handles ---


@in_event_loop
async def test_a_pair_has_one_handle(manager: SessionManager) -> None:
    session = manager.get_session("ann", "support")
    assert manager.get_session("ann", "support") is session
    assert manager.get_session("ann") is manager.get_session("ann", "default")
    assert len({id(manager.get_session(*pair)) for pair in [("ann",), ("bob",), ("ann", "support")]}) == 3
    await session.add_items([message("a")])
    assert await manager.get_session("ann").get_items() == []
    assert texts(await manager.get_session("ann", "support").get_items()) == ["a"]


@in_event_loop
async def test_a_closed_handle_is_replaced_and_what_was_stored_is_there(manager: SessionManager) -> None:
    session = manager.get_session("ann")
    await session.add_items([message("a")])
    manager.close_session("ann")
    with pytest.raises(SessionClosedError):
        await session.get_items()
    again = manager.get_session("ann")
    assert again is not session
    assert texts(await again.get_items()) == ["a"]
    again.close()
    third = manager.get_session("ann")
    assert third is not again, "also if the user closed it"
    assert texts(await third.get_items()) == ["a"]


@in_event_loop
async def test_closing_one_session_leaves_the_others(manager: SessionManager) -> None:
    kept = manager.get_session("ann"), manager.get_session("bob", "support")
    manager.get_session("ann", "support")
    manager.close_session("ann", "support")
    manager.close_session("ann", "support")
    manager.close_session("nobody")
    assert [session.closed for session in kept] == [False, False]
    assert manager.get_session("ann") is kept[0]


@in_event_loop
async def test_closing_all_sessions_closes_all_and_deletes_nothing(manager: SessionManager) -> None:
    sessions = [manager.get_session(user_id) for user_id in "abc"]
    await sessions[0].add_items([message("a")])
    manager.close_all_sessions()
    assert [session.closed for session in sessions] == [True] * 3
    manager.close_all_sessions()
    assert texts(await manager.get_session("a").get_items()) == ["a"]


@in_event_loop
async def test_threads_get_the_same_handle(manager: SessionManager) -> None:
    handles = await asyncio.gather(*(asyncio.to_thread(manager.get_session, "ann") for _ in range(20)))
    assert len(set(map(id, handles))) == 1


@pytest.mark.parametrize("bad", ["", None, 7])
def test_user_and_type_must_be_text(manager: SessionManager, bad: Any) -> None:
    with pytest.raises(ValueError, match="user_id must be a non-empty string"):
        manager.get_session(bad)
    with pytest.raises(ValueError, match="session_type must be a non-empty string"):
        manager.get_session("ann", bad)
    with pytest.raises(ValueError, match="user_id"):
        manager.close_session(bad)


# --- ids ---


def test_ids_are_readable(manager: SessionManager) -> None:
    assert manager.get_session("ann").session_id == "ann_default"
    assert manager.get_session("ann_lee", "support").session_id == "ann_lee_support"


@in_event_loop
async def test_hostile_pairs_do_not_share_a_session(manager: SessionManager) -> None:
    pairs = [("a_b", "c"), ("a", "b_c"), ("a", "b%5Fc"), ("a_b%5F", "c"), ("a", "b%255Fc")]
    for pair in pairs:
        await manager.get_session(*pair).add_items([message(pair)])
    for pair in pairs:
        assert texts(await manager.get_session(*pair).get_items()) == [str(pair)]


def test_no_two_short_pairs_share_an_id(manager: SessionManager) -> None:
    names = ["".join(letters) for length in (1, 2, 3) for letters in itertools.product("a_%", repeat=length)]
    pairs = list(itertools.product(names, repeat=2))
    assert len({manager.get_session(*pair).session_id for pair in pairs}) == len(pairs) == 39 * 39


names = st.text("ab_%25F:'\"é会", min_size=1, max_size=8) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
)


@quick
@given(st.tuples(names, names), st.tuples(names, names))
def test_different_pairs_have_different_ids(one: tuple[str, str], other: tuple[str, str]) -> None:
    manager = SessionManager("never opened.db")
    same_id = manager.get_session(*one).session_id == manager.get_session(*other).session_id
    manager.close()
    assert same_id == (one == other)


# --- where ---


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
@in_event_loop
async def test_a_path_or_a_url_names_the_file(path: Path, form: str) -> None:
    manager = SessionManager(form.format(path))
    await manager.get_session("ann").add_items([message("a")])
    assert ids(await manager.list_sessions()) == ["ann_default"]
    manager.close()
    assert path.exists()


@in_event_loop
async def test_a_url_may_name_a_relative_path(path: Path) -> None:
    manager = SessionManager(f"sqlite:///{os.path.relpath(path)}")
    await manager.get_session("ann").add_items([message("a")])
    manager.close()
    assert path.exists()


@pytest.mark.parametrize(
    "nowhere", [":memory:", "sqlite:///:memory:", "sqlite:///", "", "memory://", "openai://"]
)
def test_a_store_whose_sessions_cannot_be_listed_is_refused(nowhere: str) -> None:
    with pytest.raises(ValueError, match="needs a file"):
        SessionManager(nowhere)


@in_event_loop
async def test_two_managers_on_one_file_see_the_same_sessions(path: Path, manager: SessionManager) -> None:
    other = SessionManager(f"sqlite:///{path}")
    await manager.get_session("ann").add_items([message("a")])
    assert texts(await other.get_session("ann").get_items()) == ["a"]
    await other.get_session("bob").add_items([message("b")])
    assert sorted(ids(await manager.list_sessions())) == ["ann_default", "bob_default"]
    other.close()
    assert texts(await manager.get_session("bob").get_items()) == ["b"], "closing one leaves the other"
    assert len(ids(await manager.list_sessions())) == 2


@in_event_loop
async def test_closing_a_manager_twice_is_harmless_to_others(path: Path) -> None:
    async with SQLiteSession("s", path) as session:
        handles = session._engine.handles  # type: ignore[attr-defined]
        manager = SessionManager(path)
        manager.close()
        manager.close()
        assert session._engine.handles == handles  # type: ignore[attr-defined]


@in_event_loop
async def test_a_closed_manager_says_so(path: Path) -> None:
    manager = SessionManager(path)
    session = manager.get_session("ann")
    manager.close()
    assert session.closed
    with pytest.raises(RuntimeError, match="manager is closed"):
        await manager.list_sessions()
    with pytest.raises(RuntimeError, match="manager is closed"):
        await manager.cleanup_old_sessions()


# --- listing ---


@in_event_loop
async def test_a_listing_tells_counts_times_and_metadata(manager: SessionManager, path: Path) -> None:
    earliest = datetime.now(UTC).replace(microsecond=0)
    await manager.get_session("ann").add_items([message(n) for n in range(3)])
    await manager.get_session("bob").set_metadata(SessionMetadata("bob", "helper", "标题", {"n": [1]}))
    latest = datetime.now(UTC)
    run_sql(path, "UPDATE agent_sessions SET created_at = '2024-02-29 23:59:58' WHERE session_id LIKE 'ann%'")
    page = await manager.list_sessions()
    assert page.next_cursor is None
    ann, bob = sorted(page.sessions, key=lambda info: info.session_id)
    assert earliest <= ann.updated_at <= latest
    assert ann == SessionInfo(
        "ann_default",
        datetime(2024, 2, 29, 23, 59, 58, tzinfo=UTC),
        ann.updated_at,
        3,
        SessionMetadata(user_id="ann"),
    )
    assert (bob.item_count, bob.metadata) == (0, SessionMetadata("bob", "helper", "标题", {"n": [1]}))
    for time in (ann.created_at, ann.updated_at, bob.created_at, bob.updated_at):
        assert time.utcoffset() == timedelta(0)


@in_event_loop
async def test_the_latest_used_come_first(manager: SessionManager, path: Path) -> None:
    await add_sessions(
        manager, path, {user: days_ago(days) for user, days in zip("abc", (2, 1, 3), strict=True)}
    )
    assert ids(await manager.list_sessions()) == ["b_default", "a_default", "c_default"]
    await manager.get_session("c").add_items([message("again")])
    assert ids(await manager.list_sessions()) == ["c_default", "b_default", "a_default"]


@in_event_loop
async def test_there_is_nothing_to_list_in_a_new_file(manager: SessionManager) -> None:
    assert await manager.list_sessions() == SessionPage([], None)
    assert await manager.cleanup_old_sessions() == 0


@pytest.mark.parametrize("limit", [1, 3, 7, 20, 21, 1000])
@in_event_loop
async def test_pages_cover_every_session_once(manager: SessionManager, path: Path, limit: int) -> None:
    """Also those of equal times, of which there are many here, and ids that are odd."""
    users = [*(f"user {n}" for n in range(16)), "会话-😀", "%", "'; --", '"']
    await add_sessions(manager, path, {user: days_ago(n // 6) for n, user in enumerate(users)})
    pages = await all_pages(manager, limit=limit)
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert 0 < len(pages[-1]) <= limit
    found = [session_id for page in pages for session_id in page]
    assert sorted(found) == sorted(f"{user}_default" for user in users)
    assert found == ids(await manager.list_sessions())


@in_event_loop
async def test_a_page_holds_100_unless_told(manager: SessionManager, path: Path) -> None:
    await manager.list_sessions()
    run_sql(path, "INSERT INTO agent_sessions (session_id) VALUES (?)", *((f"s{n}",) for n in range(250)))
    assert [len(page) for page in await all_pages(manager)] == [100, 100, 50]


@in_event_loop
async def test_a_listing_filters_by_user_and_agent(manager: SessionManager) -> None:
    for user_id, kind, agent_id in (("ann", "x", "a1"), ("ann", "y", "a2"), ("bob", "x", "a1")):
        session = manager.get_session(user_id, kind)
        await session.set_metadata(SessionMetadata(user_id, agent_id))
    await manager.get_session("ann_", "x").add_items([message("a")])

    async def found(**filters: str) -> list[str]:
        return sorted(itertools.chain(*await all_pages(manager, limit=1, **filters)))

    assert await found(user_id="ann") == ["ann_x", "ann_y"]
    assert await found(agent_id="a1") == ["ann_x", "bob_x"]
    assert await found(user_id="ann", agent_id="a1") == ["ann_x"]
    assert await found(user_id="bob", agent_id="a2") == []
    assert await found(user_id="nobody") == []
    assert await found(user_id="") == []
    assert len(await found()) == 4


@in_event_loop
async def test_sessions_of_others_in_the_file_are_listed_too(manager: SessionManager, path: Path) -> None:
    async with SQLiteSession("made without a manager", path) as session:
        await session.add_items([message("a")])
    (info,) = (await manager.list_sessions()).sessions
    assert (info.session_id, info.metadata) == ("made without a manager", SessionMetadata())


@pytest.mark.parametrize("cursor", ["", "nonsense", "bm9uc2Vuc2U=", "W10=", "Nw==", "é", "%%%", "bnVsbA=="])
@in_event_loop
async def test_a_bad_cursor_is_refused(manager: SessionManager, cursor: str) -> None:
    with pytest.raises(ValueError, match="not a cursor of an earlier page"):
        await manager.list_sessions(cursor=cursor)


@pytest.mark.parametrize(("limit", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
@in_event_loop
async def test_a_page_needs_room(manager: SessionManager, limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="limit must"):
        await manager.list_sessions(limit=limit)


@pytest.mark.parametrize("bad", [None, "yesterday"])
@in_event_loop
async def test_a_session_with_a_bad_time_does_not_hide_the_rest(
    manager: SessionManager, path: Path, bad: str | None
) -> None:
    await add_sessions(manager, path, {"good": days_ago(1)})
    run_sql(path, "INSERT INTO agent_sessions VALUES ('bad', ?, ?)", (bad, bad))
    found = {info.session_id: info for info in (await manager.list_sessions()).sessions}
    assert found.keys() == {"good_default", "bad"}
    assert (found["bad"].created_at, found["bad"].updated_at) == (None, None)
    assert found["good_default"].updated_at is not None


# --- cleaning up ---


def rows_of(path: Path, session_id: str) -> list[int]:
    """How many rows each table has of a session."""
    tables = ("agent_sessions", "agent_messages", *(f"recollect_agent_{name}" for name in OF_A_SESSION))
    sql = "SELECT count(*) FROM {} WHERE session_id = '{}'"
    return [run_sql(path, sql.format(table, session_id))[0][0] for table in tables]


OF_A_SESSION = ("sessions_metadata", "messages_batches")


@in_event_loop
async def test_what_was_not_updated_for_so_long_is_deleted_and_nothing_else(
    manager: SessionManager, path: Path
) -> None:
    ages = {"new": 0, "young": 29.99, "just old": 30.01, "old": 31, "ancient": 4000}
    await add_sessions(manager, path, {user: days_ago(days) for user, days in ages.items()})
    for user in ages:
        session = manager.get_session(user)
        before = run_sql(path, f"SELECT updated_at FROM agent_sessions WHERE session_id = '{user}_default'")
        await session.add_batch([message("in a batch")], "batch")
        set_time = "UPDATE agent_sessions SET updated_at = ? WHERE session_id = ?"
        run_sql(path, set_time, (before[0][0], f"{user}_default"))
    assert rows_of(path, "old_default") == rows_of(path, "young_default") == [1, 2, 1, 1]
    assert await manager.cleanup_old_sessions() == 3
    assert sorted(ids(await manager.list_sessions())) == ["new_default", "young_default"]
    for user in ("just old", "old", "ancient"):
        assert rows_of(path, f"{user}_default") == [0, 0, 0, 0]
    for user in ("new", "young"):
        assert rows_of(path, f"{user}_default") == [1, 2, 1, 1]
        assert texts(await manager.get_session(user).get_items()) == [user, "in a batch"]
        assert await manager.get_session(user).get_metadata() == SessionMetadata(user_id=user)
    assert await manager.cleanup_old_sessions() == 0


@pytest.mark.parametrize(
    ("days", "deleted"), [(0, 3), (0.5, 3), (1.5, 2), (2.5, 1), (7, 0), (10**6, 0), (1e300, 0)]
)
@in_event_loop
async def test_how_long_can_be_told(manager: SessionManager, path: Path, days: float, deleted: int) -> None:
    await add_sessions(manager, path, {user: days_ago(days) for user, days in (("a", 1), ("b", 2), ("c", 3))})
    assert await manager.cleanup_old_sessions(days) == deleted
    assert ids(await manager.list_sessions()) == ["a_default", "b_default", "c_default"][: 3 - deleted]


@in_event_loop
async def test_many_sessions_are_deleted_in_several_steps(manager: SessionManager, path: Path) -> None:
    await manager.get_session("kept").add_items([message("a")])
    old = [(f"old {n}", days_ago(40)) for n in range(450)]
    run_sql(path, "INSERT INTO agent_sessions (session_id, updated_at) VALUES (?, ?)", *old)
    run_sql(
        path,
        "INSERT INTO agent_messages (session_id, message_data) VALUES (?, '{}')",
        *((session_id,) for session_id, _ in old),
    )
    assert await manager.cleanup_old_sessions() == 450
    assert ids(await manager.list_sessions()) == ["kept_default"]
    assert run_sql(path, "SELECT count(*) FROM agent_messages") == [(1,)]


@in_event_loop
async def test_a_session_that_is_used_again_is_not_old(manager: SessionManager, path: Path) -> None:
    await add_sessions(manager, path, {"ann": days_ago(99)})
    await manager.get_session("ann").add_items([message("I am back")])
    assert await manager.cleanup_old_sessions() == 0
    assert len(await manager.get_session("ann").get_items()) == 2


@in_event_loop
async def test_a_handle_of_a_deleted_session_starts_anew(manager: SessionManager, path: Path) -> None:
    await add_sessions(manager, path, {"ann": days_ago(99)})
    session = manager.get_session("ann")
    assert await manager.cleanup_old_sessions() == 1
    assert await session.get_items() == []
    await session.add_items([message("again")])
    assert texts(await session.get_items()) == ["again"]
    assert ids(await manager.list_sessions(user_id="ann")) == ["ann_default"]


@pytest.mark.parametrize("days", [-1, -0.001, float("nan"), float("inf"), float("-inf")])
@in_event_loop
async def test_a_senseless_number_of_days_deletes_nothing(
    manager: SessionManager, path: Path, days: float
) -> None:
    await add_sessions(manager, path, {"ann": days_ago(99)})
    with pytest.raises(ValueError, match="days must be 0 or more"):
        await manager.cleanup_old_sessions(days)
    assert len(ids(await manager.list_sessions())) == 1
