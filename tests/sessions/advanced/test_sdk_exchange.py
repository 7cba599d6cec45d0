"""One file, two libraries: the SDK's own advanced session reads what ours wrote, and the reverse.

Where the two differ, they do so on purpose, and each difference is a test below:

- a branch from turn 1, empty so far: the SDK does not list it and cannot switch to it;
- the names of deleted branches: the SDK never gives them free;
- the current branch: the SDK keeps it in the object, ours in the file;
- calls of a local shell and of image generation are tools, and not in the SDK; a call without a name goes by
  its type; the name of a person is no tool;
- another run in the same turn is added to the first, and replaces it in the SDK.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import RunContextWrapper, Usage
from agents.extensions.memory import AdvancedSQLiteSession as SDKSession
from hypothesis import given
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from recollect.testing.contract import ODD_ITEMS, in_event_loop

from ...histories import CALL_KINDS, call_and_output, handoff, histories, quick
from .database import (
    FileDatabase,
    Item,
    MemoryDatabase,
    assert_consistent,
    branch_names,
    said,
    tool_turn,
    turns,
)

SYSTEM = [said("system", "be brief")]
CALLS = [item for kind in CALL_KINDS for item in call_and_output(kind, f"call_{kind}", "words")]
TOOLS: list[Item] = [
    *(item for item in CALLS if item["type"] != "local_shell_call"),
    *handoff("call_handoff"),
    {"type": "web_search_call", "id": "ws"},
    {"type": "file_search_call", "id": "fs", "queries": []},
    {"type": "code_interpreter_call", "id": "ci"},
    {"type": "mcp_call", "id": "m1", "name": "ask", "server_label": "files"},
    {"type": "mcp_call", "id": "m2", "name": "files", "server_label": "files"},
    {"type": "mcp_call", "id": "m3", "server_label": "files"},
    {"type": "mcp_call", "id": "m4", "name": "ask"},
    {"type": "function_call", "call_id": "n1", "name": "look", "namespace": "shop", "arguments": "{}"},
    {"type": "function_call", "call_id": "n2", "name": "look", "namespace": "look", "arguments": "{}"},
    {"type": "compaction", "id": "cmp"},
    {"type": "item_reference", "id": "ref"},
    {"type": "message", "role": "developer", "content": "x"},
]


def sdk_session(file: FileDatabase) -> Any:
    return SDKSession(session_id="s", db_path=file.path, create_tables=True)


def result(number: int) -> Any:
    """What a run gives, as far as usage is concerned."""
    usage = Usage(
        requests=1,
        input_tokens=number,
        output_tokens=number,
        total_tokens=2 * number,
        input_tokens_details=InputTokensDetails(cached_tokens=number, cache_write_tokens=0),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=number),
    )
    return SimpleNamespace(context_wrapper=RunContextWrapper(None, usage=usage), raw_responses=[])


async def views(session: Any, branch: str | None = None) -> dict[str, Any]:
    """All that a session tells of a branch."""
    return {
        "items": await session.get_items(branch_id=branch),
        "newest": await session.get_items(3, branch),
        "by turns": await session.get_conversation_by_turns(branch),
        "turns": comparable(await session.get_conversation_turns(branch)),
        "found": await session.find_turns_by_content("Q2", branch),
        "tools": sorted(await session.get_tool_usage(branch)),
        "usage": await session.get_session_usage(branch),
        "costs": await session.get_turn_usage(None, branch),
        "cost": await session.get_turn_usage(2, branch),
    }


def comparable(found: list[Item]) -> list[Item]:
    """Turns without the preview of content in parts."""
    for turn in found:
        if isinstance(turn["full_content"], list):
            del turn["content"]
    return found


async def assert_same_views(ours: Any, theirs: Any) -> None:
    for branch in ("main", *await branch_names(ours)):
        assert await views(ours, branch) == await views(theirs, branch), branch
    assert await ours.get_session_usage() == await theirs.get_session_usage()
    assert await listed(ours) == await listed(theirs)
    await assert_consistent(ours)


async def listed(session: Any) -> dict[str, tuple[int, int]]:
    branches = await session.list_branches()
    assert all(branch["created_at"] for branch in branches)
    return {branch["branch_id"]: (branch["message_count"], branch["user_turns"]) for branch in branches}


async def fill(session: Any) -> None:
    """Turns with tools and usage, and two branches, one of them a branch of the other."""
    await session.add_items([*SYSTEM, *turns(1)])
    await session.store_run_usage(result(1))
    await session.add_items([*tool_turn("q2", "add", "c1"), *ODD_ITEMS])
    await session.store_run_usage(result(2))
    await session.create_branch_from_turn(2, "b")
    await session.add_items([*tool_turn("q2 again", "look", "c2"), *turns(3)])
    await session.store_run_usage(result(3))
    await session.create_branch_from_turn(3, "c")
    await session.add_items(tool_turn("q3", "pay", "c3"))
    await session.store_run_usage(result(4))


@in_event_loop
async def test_the_sdk_reads_what_we_wrote(file: FileDatabase) -> None:
    async with file.open() as ours:
        await fill(ours)
        theirs = sdk_session(file)
        await assert_same_views(ours, theirs)
        theirs.close()


@in_event_loop
async def test_we_read_what_the_sdk_wrote(file: FileDatabase) -> None:
    theirs = sdk_session(file)
    await fill(theirs)
    async with file.open() as ours:
        await assert_same_views(ours, theirs)
        assert await ours.current_branch() == "main", "where the SDK was, the SDK alone knows"
    theirs.close()


@in_event_loop
async def test_both_give_the_same_for_the_same(tmp_path: Path) -> None:
    """Each in a file of its own."""
    theirs = sdk_session(FileDatabase(tmp_path / "theirs.db"))
    async with FileDatabase(tmp_path / "ours.db").open() as ours:
        for session in (ours, theirs):
            await fill(session)
        for branch in (None, "main", "b", "c"):
            assert timeless(await views(ours, branch)) == timeless(await views(theirs, branch))
        assert await listed(ours) == await listed(theirs)
    theirs.close()


def timeless(found: dict[str, Any]) -> dict[str, Any]:
    for turn in (*found["turns"], *found["found"]):
        assert turn.pop("timestamp")
    return found


@in_event_loop
async def test_both_write_one_branch_in_turns(file: FileDatabase) -> None:
    theirs = sdk_session(file)
    async with file.open() as ours:
        for branch in ("main", "b"):
            if branch == "b":
                await theirs.create_branch_from_turn(3, "b")
                await ours.switch_to_branch("b")
            for number in range(1, 5):
                writer = ours if number % 2 else theirs
                await writer.add_items(tool_turn(f"q{number}", "add", f"{branch}{number}"))
                await writer.store_run_usage(result(number))
                assert await ours.pop_item() == await theirs_last(theirs)
            await assert_same_views(ours, theirs)
        assert await ours.get_items() == await theirs.get_items()
    theirs.close()


async def theirs_last(theirs: Any) -> Item:
    """An item that the SDK takes away and writes again: both must go on from it."""
    last = said("assistant", "there")
    assert (await theirs.get_items())[-1] != last, "ours took it already"
    await theirs.add_items([last])
    return last


@in_event_loop
async def test_both_branch_and_write_on_several_branches(file: FileDatabase) -> None:
    theirs = sdk_session(file)
    async with file.open() as ours:
        await ours.add_items(turns(1, 2, 3))
        await theirs.create_branch_from_turn(3, "theirs")
        await theirs.add_items(turns(4))
        await ours.create_branch_from_turn(2, "ours")
        await ours.add_items(turns(5))
        await theirs.add_items(turns(6))
        await theirs.switch_to_branch("ours")
        await theirs.add_items(turns(7))
        await ours.switch_to_branch("theirs")
        await ours.create_branch_from_turn(4, "both")
        await ours.add_items(turns(8))
        await theirs.switch_to_branch("both")
        assert await theirs.pop_item() == turns(8)[1]
        await assert_same_views(ours, theirs)
        assert await ours.get_items(branch_id="ours") == turns(1, 5, 7)
        assert await ours.get_items(branch_id="theirs") == turns(1, 2, 4, 6)
        assert await ours.get_items() == [*turns(1, 2, 4), *turns(8)[:1]]
    theirs.close()


@in_event_loop
async def test_each_deletes_what_the_other_has_made(file: FileDatabase) -> None:
    theirs = sdk_session(file)
    async with file.open() as ours:
        await ours.add_items(turns(1, 2))
        await theirs.create_branch_from_turn(2, "theirs")
        await theirs.add_items(turns(3))
        await theirs.switch_to_branch("main")
        await ours.delete_branch("theirs")
        assert await theirs.get_items() == turns(1, 2)
        assert await branch_names(theirs) == ["main"]
        await ours.create_branch_from_turn(2, "ours")
        await ours.add_items(turns(4))
        await theirs.delete_branch("ours")
        assert await ours.get_items() == [], "an empty branch now: only the SDK knows that it is no more"
        assert await ours.get_items(branch_id="main") == turns(1, 2)
        await ours.delete_branch("ours", force=True)
        await assert_same_views(ours, theirs)
    theirs.close()


@in_event_loop
async def test_when_a_branch_of_the_sdk_was_made_is_not_when_we_first_used_it(file: FileDatabase) -> None:
    theirs = sdk_session(file)
    await theirs.add_items(turns(1, 2))
    await theirs.create_branch_from_turn(2, "b")
    async with file.open() as ours:
        await ours.get_items()
        connection = theirs._get_connection()
        connection.execute("UPDATE message_structure SET created_at = '2020-02-02 02:02:02'")
        connection.commit()
        await ours.switch_to_branch("b")
        assert {branch["created_at"] for branch in await ours.list_branches()} == {"2020-02-02 02:02:02"}
    theirs.close()


# --- the same outline of every item ---


@in_event_loop
async def test_every_kind_of_item_has_the_same_outline() -> None:
    for item in [*TOOLS, *ODD_ITEMS]:
        theirs: Any = SDKSession(session_id="s", create_tables=True)
        async with MemoryDatabase().open() as ours:
            for session in (ours, theirs):
                await session.add_items([said("user", "q"), item])
            assert await ours.get_conversation_by_turns() == await theirs.get_conversation_by_turns(), item
            assert await ours.get_tool_usage() == await theirs.get_tool_usage(), item
        theirs.close()


@quick
@given(histories())
def test_any_history_has_the_same_outline(items: list[Item]) -> None:
    items = [item for item in items if item.get("type") != "local_shell_call"]

    @in_event_loop
    async def compare() -> None:
        theirs: Any = SDKSession(session_id="s", create_tables=True)
        async with MemoryDatabase().open() as ours:
            for session in (ours, theirs):
                await session.add_items(items)
            assert await ours.get_items() == await theirs.get_items()
            assert await ours.get_conversation_by_turns() == await theirs.get_conversation_by_turns()
            assert sorted(await ours.get_tool_usage()) == sorted(await theirs.get_tool_usage())
        theirs.close()

    compare()


# --- where they differ, on purpose ---


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    theirs = sdk_session(FileDatabase(tmp_path / "theirs.db"))
    ours = FileDatabase(tmp_path / "ours.db").open()
    yield ours, theirs
    ours.close()
    theirs.close()


@in_event_loop
async def test_difference_an_empty_branch_is_there(pair: Any) -> None:
    ours, theirs = pair
    for session in pair:
        await session.add_items(turns(1))
        await session.create_branch_from_turn(1, "empty")
        await session.switch_to_branch("main")
    assert (await branch_names(ours), await branch_names(theirs)) == (["main", "empty"], ["main"])
    with pytest.raises(ValueError, match="does not exist"):
        await theirs.switch_to_branch("empty")
    await ours.switch_to_branch("empty")


@in_event_loop
async def test_difference_names_are_free_again(pair: Any) -> None:
    ours, theirs = pair
    for session in pair:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await session.delete_branch("b", force=True)
    with pytest.raises(ValueError, match="already been used"):
        await theirs.create_branch_from_turn(2, "b")
    assert await ours.create_branch_from_turn(2, "b") == "b"


@in_event_loop
async def test_difference_the_current_branch_is_kept(pair: Any, tmp_path: Path) -> None:
    for session in pair:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
    again = sdk_session(FileDatabase(tmp_path / "theirs.db"))
    assert await again.get_items() == turns(1, 2)
    again.close()
    async with FileDatabase(tmp_path / "ours.db").open() as reopened:
        assert await reopened.get_items() == turns(1)


@in_event_loop
async def test_clearing_clears_all_branches(pair: Any) -> None:
    for session in pair:
        await session.add_items(turns(1, 2))
        await session.create_branch_from_turn(2, "b")
        await session.clear_session()
        assert await session.get_items() == await session.get_items(branch_id="main") == []
        assert await session.list_branches() == []


@in_event_loop
async def test_turns_are_described_alike(pair: Any) -> None:
    parts = [{"type": "input_text", "text": "words " * 30}, {"type": "input_image", "image_url": "é"}]
    for session in pair:
        await session.add_items([{"role": "user", "content": text} for text in (parts, "word" * 100)])
    for ask in (
        lambda session: session.get_conversation_turns(),
        lambda session: session.find_turns_by_content("words"),
        lambda session: session.find_turns_by_content("word"),
        lambda session: session.find_turns_by_content(""),
        lambda session: session.find_turns_by_content("input_text"),
    ):
        ours, theirs = [[{**turn, "timestamp": 0} for turn in await ask(session)] for session in pair]
        assert ours == theirs


@pytest.mark.parametrize("kind", ["shell_call", "apply_patch_call", "tool_search_call", "mcp_call"])
@in_event_loop
async def test_tools_without_a_stored_name_are_counted(file: FileDatabase, kind: str) -> None:
    """Older versions of the SDK left the name of some tools empty."""
    theirs = SDKSession(session_id="s", db_path=file.path, create_tables=True)
    await theirs.add_items([{"role": "user", "content": "hi"}, {"type": kind, "call_id": "1"}])
    theirs.close()
    with closing(sqlite3.connect(file.path)) as connection:
        connection.execute("UPDATE message_structure SET tool_name = NULL")
        connection.commit()
    async with file.open() as ours:
        assert await ours.get_tool_usage() == [("tool_search" if "search" in kind else kind, 1, 1)]


@in_event_loop
async def test_difference_more_calls_are_tools(pair: Any) -> None:
    ours, theirs = pair
    for session in pair:
        await session.add_items([
            {"role": "user", "name": "bob", "content": "hi"},
            {"type": "local_shell_call", "call_id": "1", "action": {}},
            {"type": "image_generation_call", "id": "2"},
            {"type": "function_call", "call_id": "3", "arguments": "{}"},
        ])  # fmt: skip
    assert await theirs.get_tool_usage() == [(None, 1, 1)]
    assert await ours.get_tool_usage() == [
        ("local_shell_call", 1, 1), ("image_generation_call", 1, 1), ("function_call", 1, 1)
    ]  # fmt: skip
    assert (await theirs.get_conversation_by_turns())[1][0] == {"type": "user", "tool_name": "bob"}
    assert (await ours.get_conversation_by_turns())[1][0] == {"type": "user", "tool_name": None}


@in_event_loop
async def test_difference_runs_in_one_turn_add_up(pair: Any) -> None:
    ours, theirs = pair
    for session in pair:
        await session.store_run_usage(result(100))
        await session.add_items(turns(1))
        for number in (1, 2):
            await session.store_run_usage(result(number))
    assert (await theirs.get_turn_usage(1))["input_tokens"] == 2
    assert (await ours.get_turn_usage(1))["input_tokens"] == 3
    assert await theirs.get_turn_usage(0) == await ours.get_turn_usage(0) == {}, "there was no turn"
