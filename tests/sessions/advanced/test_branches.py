"""Making branches, switching between them, deleting and listing them: every answer and every refusal."""

import json
from typing import Any

import pytest

from recollect.testing.contract import HOSTILE_IDS, in_event_loop

from .database import (
    Database,
    SharedDatabase,
    assert_consistent,
    branch_names,
    histories,
    rows,
    said,
    tool_turn,
    turns,
)

ODD_NAMES = [*HOSTILE_IDS[:10], "Main", "main ", "x" * 255, "é" * 255, "None", "0"]
SYSTEM = [{"role": "system", "content": "be brief"}]


async def refused(session: Any, call: Any) -> str:
    """The message of the `ValueError` that a call ends with, after a check that it changed nothing."""
    before = await session.list_branches(), await histories(session)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the callers look at the message
        await call
    assert (await session.list_branches(), await histories(session)) == before
    return str(error.value)


# --- making ---


@in_event_loop
async def test_a_branch_holds_everything_before_the_turn_and_is_current(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(SYSTEM + turns(1, 2, 3))
        assert await session.create_branch_from_turn(2, "other") == "other"
        assert await session.current_branch() == "other"
        assert await session.get_items() == SYSTEM + turns(1)
        assert await session.get_items(branch_id="main") == SYSTEM + turns(1, 2, 3)
        await session.add_items(turns(4))
        assert await session.get_items() == SYSTEM + turns(1, 4)
        assert await session.get_items(limit=3) == [*turns(1)[1:], *turns(4)]
        assert await session.get_items(branch_id="main", limit=1) == turns(3)[1:]
        await assert_consistent(session)


@in_event_loop
async def test_a_branch_from_turn_1_holds_what_stands_before_the_first_turn(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(SYSTEM + turns(1))
        await session.create_branch_from_turn(1, "anew")
        assert await session.get_items() == SYSTEM


@in_event_loop
async def test_a_branch_that_is_empty_is_listed_and_can_be_switched_to(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(1, "empty")
        assert await session.get_items() == []
        await session.switch_to_branch("main")
        assert await session.get_items() == turns(1, 2)
        await session.switch_to_branch("empty")
        empty = (await session.list_branches())[1]
        assert empty.pop("created_at") is not None
        assert empty == {"branch_id": "empty", "message_count": 0, "user_turns": 0, "is_current": True}
        await session.add_items(turns(5))
        assert await session.get_conversation_by_turns() == {
            1: [{"type": "user", "tool_name": None}, {"type": "assistant", "tool_name": None}]
        }
        await assert_consistent(session)


@in_event_loop
async def test_branches_without_a_name_get_names_of_their_own(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2))
        made = []
        for _ in range(3):
            await session.switch_to_branch("main")
            made.append(await session.create_branch_from_turn(2))
        assert len(set(made)) == 3
        assert all(name.startswith("branch_from_turn_2_") for name in made)
        assert sorted(await branch_names(session)) == sorted(["main", *made])


@in_event_loop
async def test_a_branch_of_a_branch_of_a_branch(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2, 3))
        expected = {"main": turns(1, 2, 3)}
        for depth in range(1, 4):
            await session.create_branch_from_turn(depth + 1, f"b{depth}")
            await session.add_items(turns(depth * 10, depth * 10 + 1))
            expected[f"b{depth}"] = await session.get_items()
        assert expected["b3"] == turns(1, 10, 20, 30, 31)
        assert await histories(session) == expected
        assert [turn["turn"] for turn in await session.get_conversation_turns()] == [1, 2, 3, 4, 5]
        await session.delete_branch("b1")
        await session.delete_branch("b2")
        assert await histories(session) == {"main": turns(1, 2, 3), "b3": expected["b3"]}
        await assert_consistent(session)


@in_event_loop
async def test_a_turn_that_is_not_there_makes_no_branch(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(SYSTEM + turns(1, 2))
        for turn in (0, -1, 3, 10**6, 2**31, 2**70, True, False, None, "1", 1.0):
            message = await refused(session, session.create_branch_from_turn(turn, "b"))
            assert repr(turn) in message
        assert await session.current_branch() == "main"


@in_event_loop
async def test_without_a_user_turn_there_is_nothing_to_branch_from(database: Database) -> None:
    async with database.open() as session:
        await refused(session, session.create_branch_from_turn(1))
        await session.add_items([*SYSTEM, said("assistant", "hello"), *tool_turn("", "t", "c")[1:]])
        await refused(session, session.create_branch_from_turn(1))
        await session.add_items(turns(1))
        await session.create_branch_from_turn(1, "b")
        assert len(await session.get_items()) == 5


@in_event_loop
async def test_a_turn_of_another_branch_is_not_a_turn_of_this_one(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2, 3))
        await session.create_branch_from_turn(2, "short")
        message = await refused(session, session.create_branch_from_turn(3))
        assert "'short'" in message


# --- names ---


@in_event_loop
async def test_names_that_are_refused(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        for name in ("", " ", "\n\t", 5, True, b"b", "nul \0", "half \ud83d", "x" * 256):
            await refused(session, session.create_branch_from_turn(1, name))
            await refused(session, session.create_branch_from_content("q1", name))


@in_event_loop
async def test_names_that_are_taken_are_refused(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(1, "empty")
        await session.switch_to_branch("main")
        await session.create_branch_from_turn(2, "filled")
        for name in ("main", "empty", "filled"):
            assert repr(name) in await refused(session, session.create_branch_from_turn(1, name))
            assert repr(name) in await refused(session, session.create_branch_from_content("q1", name))


@in_event_loop
async def test_names_that_look_odd_are_names_like_others(database: Database) -> None:
    async with database.open() as session, database.open("other") as other:
        for each in (session, other):
            await each.add_items(turns(1, 2))
        expected = {"main": turns(1, 2)}
        for number, name in enumerate(ODD_NAMES):
            await session.switch_to_branch("main")
            assert await session.create_branch_from_turn(2, name) == name
            await session.add_items(turns(number))
            expected[name] = turns(1, number)
        assert await histories(session) == expected
        for name in ODD_NAMES:
            await session.switch_to_branch(name)
            assert await session.current_branch() == name
            await session.delete_branch(name, force=True)
            del expected[name]
            assert await histories(session) == expected
        assert await histories(other) == {"main": turns(1, 2)}


# --- switching and deleting ---


@in_event_loop
async def test_a_branch_that_is_not_there(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        for name in ("nobody", "MAIN", "%", "", None, 7, "nul \0", "half \ud83d"):
            await refused(session, session.switch_to_branch(name))
            await refused(session, session.delete_branch(name))
            await refused(session, session.delete_branch(name, force=True))
            await refused(session, session.diff_branches(name))
            await refused(session, session.diff_branches("main", "" if name is None else name))


@in_event_loop
async def test_a_branch_that_is_not_there_is_read_as_empty(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(tool_turn("q", "t", "c"))
        for name in ("nobody", "", "x" * 1000):
            assert [await read(name) for read in reads_of_a_branch(session)] == [[], [], [], {}, [], None, []]
        for unfit in (7, "nul \0", "half \ud83d"):  # no branch can have such a name
            for read in reads_of_a_branch(session):
                await refused(session, read(unfit))


def reads_of_a_branch(session: Any) -> list[Any]:
    return [
        lambda name: session.get_items(branch_id=name),
        session.get_conversation_turns,
        lambda name: session.find_turns_by_content("q", name),
        session.get_conversation_by_turns,
        session.get_tool_usage,
        session.get_session_usage,
        lambda name: session.get_turn_usage(branch_id=name),
    ]


@in_event_loop
async def test_the_main_branch_cannot_be_deleted(database: Database) -> None:
    async with database.open() as session:
        await refused(session, session.delete_branch("main"))
        await session.add_items(turns(1, 2))
        for force in (False, True):
            assert "main" in await refused(session, session.delete_branch("main", force=force))
        await session.create_branch_from_turn(2, "b")
        await refused(session, session.delete_branch("main", force=True))


@in_event_loop
async def test_the_current_branch_is_deleted_only_with_force_and_then_main_is_current(
    database: Database,
) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await session.add_items(turns(3))
        assert "force" in await refused(session, session.delete_branch("b"))
        await session.delete_branch("b", force=True)
        assert await session.current_branch() == "main"
        assert await session.get_items() == turns(1, 2)
        assert await branch_names(session) == ["main"]
        await assert_consistent(session)


@in_event_loop
async def test_deleting_another_branch_leaves_the_current_one_current(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2, 3))
        await session.create_branch_from_turn(2, "one")
        await session.create_branch_from_turn(1, "two")
        await session.delete_branch("one")
        assert await session.current_branch() == "two"
        await session.delete_branch("two", force=True)
        assert await session.current_branch() == "main"


@in_event_loop
async def test_the_name_of_a_deleted_branch_is_free_again(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2, 3))
        for turn in (3, 2, 1):
            await session.create_branch_from_turn(turn, "b")
            await session.add_items(turns(turn * 10))
            assert await session.get_items() == turns(*range(1, turn), turn * 10)
            await session.delete_branch("b", force=True)
        assert await histories(session) == {"main": turns(1, 2, 3)}
        await assert_consistent(session)


@in_event_loop
async def test_deletion_deletes_what_no_other_branch_shows_and_nothing_else(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await session.add_items(turns(3, 4))
        await session.create_branch_from_turn(3, "c")  # shares the turn 3 with b alone
        await session.delete_branch("b")
        assert await session.get_items() == turns(1, 3)
        ((count,),) = await rows(session, "SELECT count(*) FROM {messages} WHERE session_id = ?1", "s")
        assert count == len(turns(1, 2, 3)), "the fourth turn was b's alone"
        await session.delete_branch("c", force=True)
        ((count,),) = await rows(session, "SELECT count(*) FROM {messages} WHERE session_id = ?1", "s")
        assert count == len(turns(1, 2))
        await assert_consistent(session)


# --- listing ---


@in_event_loop
async def test_a_list_of_branches_has_every_field(database: Database) -> None:
    async with database.open() as session:
        assert await session.list_branches() == []
        await session.add_items(SYSTEM + turns(1, 2, 3))
        await session.create_branch_from_turn(3, "b")
        await session.add_items(turns(4, 5))
        branches = await session.list_branches()
        times = [branch.pop("created_at") for branch in branches]
        assert branches == [
            {"branch_id": "main", "message_count": 7, "user_turns": 3, "is_current": False},
            {"branch_id": "b", "message_count": 9, "user_turns": 4, "is_current": True},
        ]
        assert all(isinstance(time, str) and len(time) == len("2025-01-01 00:00:00") for time in times)


@in_event_loop
async def test_the_main_branch_is_listed_first_and_also_when_it_is_empty(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        await session.create_branch_from_turn(1, "a")
        await session.switch_to_branch("main")
        await session.clear_branch()
        assert await branch_names(session) == ["main", "a"]
        assert [branch["is_current"] for branch in await session.list_branches()] == [True, False]
        await session.switch_to_branch("a")
        await session.switch_to_branch("main")


@in_event_loop
async def test_sessions_have_branches_of_their_own(shared_database: SharedDatabase) -> None:
    async with shared_database.open("one") as one, shared_database.open("two") as two:
        for session in (one, two):
            await session.add_items(turns(1, 2))
        await one.create_branch_from_turn(2, "b")
        assert await two.current_branch() == "main"
        await two.create_branch_from_turn(1, "b")
        await two.add_items(turns(9))
        await one.delete_branch("b", force=True)
        await one.clear_session()
        assert await histories(two) == {"main": turns(1, 2), "b": turns(9)}
        assert await two.current_branch() == "b"
        await assert_consistent(two)


# --- branches from what was said ---


@in_event_loop
async def test_a_branch_from_the_first_turn_that_contains_a_text(database: Database) -> None:
    async with database.open() as session:
        await session.add_items([*turns(1), *tool_turn("The 100% Café", "t", "c"), *turns(3)])
        await session.add_items([*tool_turn("the café again", "t", "d")])
        assert await session.create_branch_from_content("CAFÉ", "b") == "b"
        assert await session.get_items() == turns(1)
        await refused(session, session.create_branch_from_content("café"))
        await session.switch_to_branch("main")
        assert (await session.create_branch_from_content("q3")).startswith("branch_from_turn_3_")


@in_event_loop
async def test_a_text_to_find_that_is_none(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        for text in (None, 5, b"q"):
            await refused(session, session.find_turns_by_content(text))
            await refused(session, session.create_branch_from_content(text))


@in_event_loop
async def test_what_only_the_assistant_said_is_not_found(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        await refused(session, session.create_branch_from_content("a1"))
        assert await session.find_turns_by_content("a1") == []


@in_event_loop
async def test_a_text_is_found_as_it_is_whatever_it_means_elsewhere(database: Database) -> None:
    odd = [
        "%",
        "_",
        "\\",
        "'",
        '"',
        "\n",
        "\u2028",
        "é",
        "ß",
        "中",
        "😀",
        ".*",
        "[",
        "\0",
        "\ud83d",
        "/",
        "Q\tZ",
    ]
    async with database.open() as session:
        await session.add_items([said("user", f"a{text}b") for text in odd])
        for turn, text in enumerate(odd, 1):
            assert [found["turn"] for found in await session.find_turns_by_content(text)] == [turn]
            upper = await session.find_turns_by_content(f"A{text}B".upper().replace("SS", "ß"))
            assert [found["turn"] for found in upper] == [turn]
        assert await session.find_turns_by_content("content") == [], "a name of a field is no content"
        await session.add_items([said("user", "long " * 20_000)])
        (long,) = await session.find_turns_by_content("LONG " * 15_000)
        assert long["turn"] == len(odd) + 1


# --- turns and tools ---


@in_event_loop
async def test_turns_have_every_field(database: Database) -> None:
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "data:x"}]
    long = "word " * 50
    async with database.open() as session:
        await session.add_items([*SYSTEM, said("user", long), {"role": "user", "content": parts}])
        found = await session.get_conversation_turns()
        assert all(turn.pop("timestamp") for turn in found)
        assert found == [
            {"turn": 1, "content": long[:100] + "...", "full_content": long, "can_branch": True},
            {"turn": 2, "content": json.dumps(parts), "full_content": parts, "can_branch": True},
        ]
        (match,) = await session.find_turns_by_content("look")
        assert match == {**found[1], "timestamp": match["timestamp"]}
        (match,) = await session.find_turns_by_content("word")
        assert match["content"] == match["full_content"] == long, "a match is not shortened"
        assert [turn["turn"] for turn in await session.find_turns_by_content("")] == [1, 2]
        await session.create_branch_from_turn(2, "b")
        assert len(await session.get_conversation_turns()) == 1
        assert len(await session.get_conversation_turns("main")) == 2
        assert await session.find_turns_by_content("look") == []
        assert len(await session.find_turns_by_content("look", "main")) == 1


@in_event_loop
async def test_tools_are_counted_by_turn_and_branch(database: Database) -> None:
    async with database.open() as session:
        await session.add_items([*tool_turn("1", "add", "a"), *tool_turn("2", "add", "b")])
        await session.add_items([*tool_turn("", "add", "c")[1:3], *tool_turn("", "look", "d")[1:3]])
        assert await session.get_tool_usage() == [("add", 1, 1), ("add", 2, 2), ("look", 1, 2)]
        await session.create_branch_from_turn(2, "b")
        assert await session.get_tool_usage() == [("add", 1, 1)]
        assert await session.get_tool_usage("main") == [("add", 1, 1), ("add", 2, 2), ("look", 1, 2)]
        await session.add_items(tool_turn("3", "pay", "e"))
        assert await session.get_tool_usage() == [("add", 1, 1), ("pay", 1, 2)]
        assert (await session.get_conversation_by_turns())[2] == [
            {"type": "user", "tool_name": None},
            {"type": "function_call", "tool_name": "pay"},
            {"type": "function_call_output", "tool_name": None},
            {"type": "assistant", "tool_name": None},
        ]


# --- comparing ---


@in_event_loop
async def test_branches_are_compared(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(SYSTEM + turns(1, 2, 3))
        await session.create_branch_from_turn(2, "b")
        await session.add_items(turns(4))
        diff = await session.diff_branches("main")
        assert (diff.first, diff.second) == ("main", "b")
        assert (diff.common_items, diff.common_turns) == (3, 1)
        assert (diff.only_in_first, diff.only_in_second) == (turns(2, 3), turns(4))
        turned = await session.diff_branches("b", "main")
        assert (turned.only_in_first, turned.only_in_second) == (turns(4), turns(2, 3))
        same = await session.diff_branches("b", "b")
        assert (same.common_items, same.common_turns) == (5, 2)
        assert same.only_in_first == same.only_in_second == []


@in_event_loop
async def test_branches_that_part_within_a_turn_share_the_turns_before_it(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2, 3))
        await session.create_branch_from_turn(3, "b")
        await session.pop_item()
        await session.add_items([said("assistant", "another answer")])
        diff = await session.diff_branches("main", "b")
        assert (diff.common_items, diff.common_turns) == (3, 1)
        assert diff.only_in_first == [*turns(2)[1:], *turns(3)]
        assert diff.only_in_second == [said("assistant", "another answer")]


@in_event_loop
async def test_branches_that_share_nothing_and_the_same_words_said_again(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1))
        await session.create_branch_from_turn(1, "b")
        diff = await session.diff_branches("main")
        assert (diff.common_items, diff.common_turns, diff.only_in_second) == (0, 0, [])
        await session.add_items(turns(1))
        diff = await session.diff_branches("main")
        assert (diff.common_items, diff.only_in_first, diff.only_in_second) == (0, turns(1), turns(1))


# --- as it was ---


@in_event_loop
async def test_a_branch_as_it_was_at_a_turn(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(SYSTEM + turns(1, 2, 3))
        await session.create_branch_from_turn(2, "b")
        await session.add_items(turns(4, 5))
        assert await session.get_items(at_turn=0) == SYSTEM
        assert await session.get_items(at_turn=2) == SYSTEM + turns(1, 4)
        assert await session.get_items(at_turn=3) == SYSTEM + turns(1, 4, 5)
        assert await session.get_items(at_turn=2, branch_id="main") == SYSTEM + turns(1, 2)
        assert await session.get_items(limit=3, at_turn=2) == [*turns(1)[1:], *turns(4)]


@in_event_loop
async def test_a_past_that_never_was(database: Database) -> None:
    async with database.open() as session:
        await session.add_items(turns(1, 2))
        for turn in (-1, 3, 2**31 - 1, 2**70, True, "1", 1.5):
            assert repr(turn) in await refused(session, session.get_items(at_turn=turn))
