"""What is kept over closing, what others see at once, and histories that a plain session has written."""

from typing import Any

import agents
from agents.extensions.memory import AdvancedSQLiteSession as SDKAdvancedSession

from recollect import SQLiteSession, undo_items
from recollect.testing.contract import in_event_loop

from .database import (
    FileDatabase,
    SharedDatabase,
    assert_consistent,
    change,
    histories,
    said,
    tool_turn,
    turns,
)
from .workers import Worker, at_once

# --- the current branch ---


@in_event_loop
async def test_the_current_branch_is_kept_over_closing(shared_database: SharedDatabase) -> None:
    async with shared_database.open() as session:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await session.add_items(turns(3))
    async with shared_database.open() as session:
        assert await session.current_branch() == "b"
        assert await session.get_items() == turns(1, 3)
        await session.switch_to_branch("main")
    async with shared_database.open() as session:
        assert await session.current_branch() == "main"
        assert await session.get_items() == turns(1, 2)


@in_event_loop
async def test_another_handle_sees_every_change_at_once(shared_database: SharedDatabase) -> None:
    async with shared_database.open() as one, shared_database.open() as other:
        await one.add_items(turns(1, 2))
        await other.create_branch_from_turn(1, "b")
        assert await one.current_branch() == "b"
        await one.add_items(turns(3))
        assert await other.get_items() == turns(3)
        await one.switch_to_branch("main")
        assert await other.pop_item() == turns(2)[1]
        await other.delete_branch("b")
        assert await histories(one) == {"main": turns(1, 2)[:3]}


@in_event_loop
async def test_another_process_sees_the_branch_and_is_seen(shared_database: SharedDatabase) -> None:
    async with shared_database.open() as session:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        assert at_once([Worker(shared_database, "tell")]) == [["b 2"]]
        at_once([Worker(shared_database, "branch", "from another process")])
        assert await session.current_branch() == "from another process"
        assert await session.get_items() == [said("user", "hello")]
        assert set(await histories(session)) == {"main", "b", "from another process"}


# --- histories of plain sessions ---


@in_event_loop
async def test_a_plain_history_is_adopted(shared_database: SharedDatabase) -> None:
    history = [said("system", "be brief"), *turns(1), *tool_turn("q2", "add", "c"), *turns(3)]
    async with shared_database.open_plain() as plain:
        await plain.add_items(history)
    async with shared_database.open() as session:
        assert await session.get_items() == history
        assert await session.get_tool_usage() == [("add", 1, 2)]
        assert [turn["turn"] for turn in await session.get_conversation_turns()] == [1, 2, 3]
        await session.create_branch_from_turn(2, "b")
        assert await session.get_items() == history[:3]
        await assert_consistent(session)


READS: dict[str, Any] = {
    "items": lambda session: session.get_items(limit=2),
    "positions": lambda session: session.read_before(None, 2),
    "branches": lambda session: session.list_branches(),
    "turns": lambda session: session.get_conversation_turns(),
    "outlines": lambda session: session.get_conversation_by_turns(),
    "the past": lambda session: session.get_items(at_turn=1),
    "a pop": lambda session: session.pop_item(),
    "a branch": lambda session: session.create_branch_from_turn(2, "b"),
    "undoing": undo_items,
}


@in_event_loop
async def test_whatever_is_asked_first_a_plain_history_is_there(shared_database: SharedDatabase) -> None:
    for name, ask in READS.items():
        async with shared_database.open_plain(name) as plain, shared_database.open(name) as session:
            await plain.add_items(turns(1, 2))
            assert await ask(session), name
            expected = turns(1, 2)[:3] if name in ("a pop", "undoing") else turns(1, 2)
            assert await session.get_items(branch_id="main") == expected, name
            await assert_consistent(session)


@in_event_loop
async def test_what_a_plain_session_appends_in_between_is_adopted(shared_database: SharedDatabase) -> None:
    async with shared_database.open() as session, shared_database.open_plain() as plain:
        await session.add_items(turns(1))
        await plain.add_items(turns(2))
        assert await session.get_items(limit=3) == [turns(1)[1], *turns(2)]
        await plain.add_items(turns(3))
        await session.add_items(turns(4))
        assert await session.get_items() == turns(1, 2, 3, 4)
        assert await plain.get_items() == turns(1, 2, 3, 4)
        await assert_consistent(session)


@in_event_loop
async def test_what_a_plain_session_appends_goes_to_the_main_branch(shared_database: SharedDatabase) -> None:
    async with shared_database.open() as session, shared_database.open_plain() as plain:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await plain.add_items(turns(3))
        await session.add_items(turns(4))
        await plain.add_items(turns(5))
        assert await histories(session) == {"main": turns(1, 2, 3, 5), "b": turns(1, 4)}
        assert await session.current_branch() == "b"
        await assert_consistent(session)


@in_event_loop
async def test_what_our_plain_session_takes_away_is_gone_from_every_branch(
    shared_database: SharedDatabase,
) -> None:
    async with shared_database.open() as session, shared_database.open_plain() as plain:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await session.add_items(turns(3))
        assert await plain.pop_item() == turns(3)[1]
        assert await histories(session) == {"main": turns(1, 2), "b": turns(1, 3)[:3]}
        await session.add_items([said("assistant", "again")])
        await assert_consistent(session)
        await plain.clear_session()
        assert await session.list_branches() == []


@in_event_loop
async def test_plain_histories_with_rows_that_are_no_items(shared_database: SharedDatabase) -> None:
    async with shared_database.open_plain() as plain, shared_database.open() as session:
        await plain.add_items([*turns(1), said("user", "bad"), *turns(2)])
        await change(
            plain, "UPDATE {messages} SET message_data = '[1, 2]' WHERE message_data LIKE ?1", "%bad%"
        )
        assert await session.get_items() == turns(1, 2)
        assert await session.get_items(limit=3) == [turns(1)[1], *turns(2)]
        outline = await session.get_conversation_by_turns()
        assert [len(outline[turn]) for turn in (1, 2)] == [3, 2]
        await session.create_branch_from_turn(2, "b")
        assert await session.pop_item() == turns(1)[1]
        assert await session.get_items(branch_id="main") == turns(1, 2)
        await assert_consistent(session)


# --- the same in files that the SDK's classes use too ---


@in_event_loop
async def test_a_plain_history_of_the_sdk_that_its_advanced_session_has_hidden(file: FileDatabase) -> None:
    """Plain first, then the SDK's advanced session, which never shows what it did not write: then ours."""
    plain = agents.SQLiteSession("s", file.path)
    await plain.add_items(turns(1))  # type: ignore[arg-type]
    theirs = SDKAdvancedSession(session_id="s", db_path=file.path, create_tables=True)
    await theirs.add_items(turns(2))  # type: ignore[arg-type]
    assert await theirs.get_items() == turns(2)
    async with file.open() as session:
        assert await session.get_items() == turns(1, 2)
        assert [turn["turn"] for turn in await session.get_conversation_turns()] == [1, 2]
        await assert_consistent(session)
    assert await theirs.get_items() == turns(1, 2), "now the SDK shows it as well"
    await theirs.pop_item()
    assert await plain.get_items() == turns(1, 2)[:3], "and its clean-up leaves it alone"
    theirs.close()
    plain.close()


@in_event_loop
async def test_plain_and_advanced_sessions_of_the_sdk_write_in_turns(file: FileDatabase) -> None:
    theirs = SDKAdvancedSession(session_id="s", db_path=file.path, create_tables=True)
    plain = agents.SQLiteSession("s", file.path)
    async with file.open() as session:
        for number in range(1, 10, 3):
            await theirs.add_items(turns(number))  # type: ignore[arg-type]
            await plain.add_items(turns(number + 1))  # type: ignore[arg-type]
            assert await session.get_items() == turns(*range(1, number + 2))
            await session.add_items(turns(number + 2))
        assert await session.get_items() == await theirs.get_items() == await plain.get_items()
        assert await theirs.get_items() == turns(*range(1, 10))
        await assert_consistent(session)
    theirs.close()
    plain.close()


@in_event_loop
async def test_what_the_plain_session_of_the_sdk_takes_away(file: FileDatabase) -> None:
    """It leaves the structure as it is. Whoever comes next must count neither items nor turns of it."""
    plain = agents.SQLiteSession("s", file.path)
    async with file.open() as session:
        await session.add_items(turns(1, 2, 3))
        for _ in range(3):
            await plain.pop_item()
        assert (await session.list_branches())[0]["message_count"] == 3
        assert sorted(await session.get_conversation_by_turns()) == [1, 2]
        await plain.pop_item()
        await session.add_items(turns(4))
        assert await session.get_items() == turns(1, 4)
        assert [turn["turn"] for turn in await session.get_conversation_turns()] == [1, 2]
        await plain.pop_item()
        await plain.add_items(turns(5))  # type: ignore[arg-type]
        assert await session.get_items() == [*turns(1, 4)[:3], *turns(5)]
        assert await session.pop_item() == turns(5)[1]
        await assert_consistent(session)
        await plain.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
    plain.close()


@in_event_loop
async def test_a_file_moved_from_plain_to_advanced_and_back(file: FileDatabase) -> None:
    async with SQLiteSession("s", file.path) as plain:
        await plain.add_items(turns(1))
    async with file.open() as session:
        await session.add_items(turns(2))
    async with SQLiteSession("s", file.path) as plain:
        assert await plain.get_items() == turns(1, 2)
        await plain.add_items(turns(3))
        await plain.pop_item()
    async with file.open() as session:
        assert await session.get_items() == turns(1, 2, 3)[:-1]
        await assert_consistent(session)
