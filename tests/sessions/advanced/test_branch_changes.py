"""What changes a branch changes that branch alone, and leaves nothing behind that no branch shows."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agents import RunContextWrapper, Usage

from recollect import (
    SessionMetadata,
    compress_history,
    repair,
    reset_session,
    undo_items,
    undo_turn,
)
from recollect.testing.contract import in_event_loop

from .database import (
    Database,
    Item,
    assert_consistent,
    branch_names,
    change,
    histories,
    rows,
    said,
    tool_turn,
    turns,
)

ORPHAN = {"type": "function_call_output", "call_id": "nobody", "output": "?"}
SHARED = [*turns(1), ORPHAN, *turns(2)]
OWN = [*turns(3), *tool_turn("q4", "t", "c")]


class Result:
    """What a run gives, as far as usage is concerned."""

    def __init__(self, requests: int) -> None:
        self.context_wrapper = RunContextWrapper(None, usage=Usage(requests=requests))


async def branched(session: Any) -> None:
    """Three branches that share two turns, each with two of its own; the second is current."""
    await session.add_items([*SHARED, *turns(5, 6)])
    for name in ("b", "c"):
        await session.switch_to_branch("main")
        await session.create_branch_from_turn(3, name)
        await session.add_items(OWN)
    await session.switch_to_branch("b")


CHANGES: dict[str, tuple[Callable[[Any], Awaitable[Any]], list[Item]]] = {
    "a pop": (lambda session: session.pop_item(), [*SHARED, *OWN[:-1]]),
    "clearing": (lambda session: session.clear_branch(), []),
    "replacing": (lambda session: session.replace_items(turns(9)), turns(9)),
    "replacing by what is there": (lambda session: session.replace_items([*SHARED, *OWN]), [*SHARED, *OWN]),
    "transforming": (lambda session: session.transform_items(lambda items: items[1:]), [*SHARED, *OWN][1:]),
    "undoing an item": (undo_items, [*SHARED, *OWN[:-1]]),
    "undoing two with a call": (lambda session: undo_items(session, 2), [*SHARED, *OWN[:3]]),
    "undoing a turn": (undo_turn, [*SHARED, *OWN[:2]]),
    "repairing": (repair, [*turns(1, 2), *OWN]),
    "compressing": (lambda session: compress_history(session, 3), OWN[-3:]),
    "resetting": (lambda session: reset_session(session, turns(8)), turns(8)),
}


@in_event_loop
async def test_a_change_of_a_branch_is_one_of_that_branch_alone(database: Database) -> None:
    for kind, (do, expected) in CHANGES.items():
        async with database.open(kind) as session:
            await branched(session)
            before = await histories(session)
            outlines = [await session.get_conversation_by_turns(name) for name in ("main", "c")]
            await do(session)
            assert await histories(session) == {**before, "b": expected}, kind
            assert outlines == [await session.get_conversation_by_turns(name) for name in ("main", "c")], kind
            assert await session.current_branch() == "b", kind
            await assert_consistent(session)
            await session.add_items(turns(7))
            assert await histories(session) == {**before, "b": [*expected, *turns(7)]}, kind
            await assert_consistent(session)


@in_event_loop
async def test_what_a_branch_shares_can_be_taken_from_it_down_to_nothing(database: Database) -> None:
    async with database.open() as session:
        await branched(session)
        before = await histories(session)
        for item in reversed([*SHARED, *OWN]):
            assert await session.pop_item() == item
        assert await session.pop_item() is None
        assert await histories(session) == {**before, "b": []}
        await assert_consistent(session)


# --- clearing ---


@in_event_loop
async def test_a_branch_is_cleared_by_its_name_and_stays(database: Database) -> None:
    async with database.open() as session:
        await branched(session)
        for clear in (session.clear_branch, lambda name: session.clear_branch(branch_id=name)):
            await clear("c")
            found = await histories(session)
            assert (found["b"], found["c"]) == ([*SHARED, *OWN], [])
        await session.clear_session(all_branches=False)
        assert (await session.get_items(), await session.current_branch()) == ([], "b")
        assert await session.get_items(branch_id="main") == [*SHARED, *turns(5, 6)]
        await assert_consistent(session)


@in_event_loop
async def test_the_only_branch_is_cleared_and_the_session_stays(database: Database) -> None:
    async with database.open() as session:
        await with_usage(session, 1)
        await session.set_metadata(SessionMetadata(title="t"))
        await session.clear_branch()
        assert (await session.get_items(), await session.get_session_usage()) == ([], None)
        assert (await session.get_metadata()).title == "t"


@in_event_loop
async def test_a_branch_that_is_none_cannot_be_cleared(database: Database) -> None:
    async with database.open() as session:
        await session.clear_branch()
        await session.clear_branch("main")
        for _ in range(2):
            for name in ("nobody", "", 5):
                with pytest.raises(ValueError, match="branch"):
                    await session.clear_branch(name)
            await session.add_items(turns(1))


@in_event_loop
async def test_clearing_the_session_takes_everything_with_it(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        await session.set_metadata(SessionMetadata(title="t"))
        await session.clear_session()
        assert await session.list_branches() == []
        assert await leftovers(session) == {}


@in_event_loop
async def test_clearing_all_branches_leaves_nothing_in_any_table(database: Database) -> None:
    async with database.open() as session:
        await branched(session)
        await session.create_branch_from_turn(1, "empty")
        await session.set_metadata(SessionMetadata(title="t"))
        await session.set_note("k", {"n": 1}, 0)
        await session.add_batch(turns(7), "batch")
        await session.store_run_usage(Result(requests=1))
        assert set(await leftovers(session)) == {*TABLES_OF_A_SESSION}
        await session.clear_session()
        assert await leftovers(session) == {}
        assert await session.current_branch() == "main"
        await session.add_items(turns(1))
        assert await histories(session) == {"main": turns(1)}


TABLES_OF_A_SESSION = (
    "sessions", "messages", "structure", "usage", "branches", "runs", "metadata", "batches", "notes"
)  # fmt: skip


async def leftovers(session: Any) -> dict[str, int]:
    """How many rows of the session each table has, if any."""
    found = {}
    for table in TABLES_OF_A_SESSION:
        ((count,),) = await rows(session, f"SELECT count(*) FROM {{{table}}} WHERE session_id = ?1", "s")
        found[table] = count
    return {table: count for table, count in found.items() if count}


@in_event_loop
async def test_an_unknown_session_can_be_cleared_and_asked(database: Database) -> None:
    async with database.open() as session:
        await session.clear_session()
        await session.clear_session(all_branches=True)
        await session.switch_to_branch("main")
        assert await session.pop_item() is None
        assert await session.current_branch() == "main"
        assert await session.get_items(at_turn=0) == []
        assert await session.get_conversation_by_turns() == {}
        assert await session.get_tool_usage() == []
        assert await session.get_session_usage() is None
        assert await session.get_turn_usage() == []
        assert await session.get_turn_usage(1) == {}
        assert await leftovers(session) == {}


# --- usage goes with its turns ---


async def costs(session: Any, branch: str | None = None) -> dict[int, int]:
    """The requests of each turn."""
    return {turn["user_turn_number"]: turn["requests"] for turn in await session.get_turn_usage(None, branch)}


async def with_usage(session: Any, *numbers: int) -> None:
    for number in numbers:
        await session.add_items(turns(number))
        await session.store_run_usage(Result(requests=number))


@in_event_loop
async def test_the_usage_of_a_turn_goes_with_the_last_of_its_items(database: Database) -> None:
    async with database.open() as session:
        await with_usage(session, 1, 2)
        await session.pop_item()
        assert await costs(session) == {1: 1, 2: 2}
        await session.pop_item()
        assert await costs(session) == {1: 1}
        await with_usage(session, 7)
        assert await costs(session) == {1: 1, 2: 7}


@in_event_loop
async def test_the_usage_of_turns_that_stay_stays(database: Database) -> None:
    """Whatever was removed before them: a repair or a correction writes the turns after it again."""
    async with database.open() as session:
        await session.add_items([*turns(1), ORPHAN])
        await session.store_run_usage(Result(requests=1))
        await with_usage(session, 2, 3)
        assert (await repair(session)).removed == 1
        assert await session.get_items() == turns(1, 2, 3)
        assert await costs(session) == {1: 1, 2: 2, 3: 3}
        await undo_turn(session)
        assert await costs(session) == {1: 1, 2: 2}


@in_event_loop
async def test_the_usage_of_a_branch_goes_with_the_branch(database: Database) -> None:
    async with database.open() as session:
        await with_usage(session, 1, 2)
        await session.create_branch_from_turn(2, "b")
        await with_usage(session, 5)
        assert await costs(session) == {2: 5}
        await session.delete_branch("b", force=True)
        assert await costs(session) == {1: 1, 2: 2}
        await session.create_branch_from_turn(2, "b")
        assert await costs(session) == {}
        await session.switch_to_branch("main")
        await session.clear_branch()
        assert await costs(session) == {}
        assert await session.get_session_usage() is None


# --- rows that are not as they should be ---


@in_event_loop
async def test_corrupt_rows_never_hide_the_rest(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    async with database.open() as session:
        await session.add_items([said("user", "bad 1"), *turns(1), said("user", "bad 2"), *turns(2)])
        await session.create_branch_from_turn(4, "b")
        await session.switch_to_branch("main")
        ids = [row[0] for row in await rows(session, "SELECT id FROM {messages} WHERE session_id = ?1", "s")]
        bad = [sorted(ids)[0], sorted(ids)[3]]
        for row_id in bad:
            await change(session, "UPDATE {messages} SET message_data = '{{not json' WHERE id = ?1", row_id)
        with caplog.at_level(logging.WARNING):
            assert await session.get_items() == turns(1, 2)
            assert [turn["turn"] for turn in await session.get_conversation_turns()] == [2, 4]
        told = [record.getMessage() for record in caplog.records]
        assert told == [f"row {row_id} is corrupt and was left out" for row_id in bad] * 2
        assert await session.get_items(limit=3) == [turns(1)[1], *turns(2)]
        assert await session.get_items(at_turn=3) == turns(1)
        assert (await session.diff_branches("b")).only_in_second == turns(2)
        assert [await session.pop_item() for _ in range(3)] == [turns(2)[1], turns(2)[0], turns(1)[1]]
        assert await session.get_items(branch_id="b") == turns(1)


@in_event_loop
async def test_a_corrupt_end_is_popped_with_the_item_before_it_on_one_branch_alone(
    database: Database,
) -> None:
    async with database.open() as session:
        await session.add_items([*turns(1), said("assistant", "bad"), *turns(2)])
        await change(session, "UPDATE {messages} SET message_data = '7' WHERE message_data LIKE ?1", "%bad%")
        await session.create_branch_from_turn(2, "b")
        assert await session.pop_item() == turns(1)[1]
        assert await histories(session) == {"main": turns(1, 2), "b": turns(1)[:1]}
        await session.switch_to_branch("main")
        for item in reversed(turns(1, 2)):
            assert await session.pop_item() == item
        await assert_consistent(session)


@in_event_loop
async def test_turns_after_items_that_were_removed_where_they_stood(database: Database) -> None:
    """A revision removes items of all branches and moves nothing: a turn may be missing in the middle."""
    async with database.open() as session:
        await session.add_items(turns(1, 2, 3, 4))
        await session.create_branch_from_turn(4, "b")
        gone = turns(2)
        await session.revise_items(lambda items: [None if item in gone else item for item in items])
        assert await histories(session) == {"main": turns(1, 3, 4), "b": turns(1, 3)}
        assert [turn["full_content"] for turn in await session.get_conversation_turns()] == ["q1", "q3"]
        assert await session.get_items(at_turn=1) == turns(1)
        numbers = [turn["turn"] for turn in await session.get_conversation_turns("main")]
        assert [await session.get_items(branch_id="main", at_turn=number) for number in numbers] == [
            turns(1), turns(1, 3), turns(1, 3, 4)
        ]  # fmt: skip
        await session.create_branch_from_turn(numbers[1], "c")
        assert await session.get_items() == turns(1)
        assert await branch_names(session) == ["main", "b", "c"]
